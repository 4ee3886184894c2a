"""The page of one budget that queries, or rules, share: that of a single run, and who did what with the budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from acep_approx.budget.audit import NOTHING, RecallEstimate
from acep_approx.budget.ledger import Shed
from acep_approx.budget.rules_ledger import RulesRecord
from acep_approx.budget.set_ledger import PartRecord, SetRecord, SharedRecord, worst
from acep_approx.diagrams.fragments import tiles
from acep_approx.diagrams.text_layout import one_line
from acep_approx.events.counts import counted
from acep_approx.pages.budget.charts import MANY_STEPS, found_per_work, recall_lanes
from acep_approx.pages.budget.lines import need_words, spent
from acep_approx.pages.budget.page import interval, load_section, shed_section
from acep_approx.pages.drawing import cut, percent, table
from acep_approx.pages.shell import facts, page, write_page
from acep_approx.visible import escape

MOST_ROWS, MOST_WORST, MOST_NAMES, MOST_NAME = 40, 12, 12, 40
"""Rows of a table, estimates in the picture, names in a line, and characters of a name."""
LEAST = 1e-3
"""A share below which an interval says only how much it is at most."""
ALL_ROWS = "pandas.DataFrame(record.rows())"


def write_shared_report(record: SharedRecord, path: str | Path) -> None:
    """Write the page.

    Parameters
    ----------
    record : SharedRecord
        What the run wrote down about itself.
    path : str or Path
        Where to; a file there is replaced.

    Raises
    ------
    UsageError
        ``ACEP-U012``: the file cannot be written.
    """
    write_page(shared_report_html(record), path)


def shared_report_html(record: SharedRecord) -> str:
    """The page as text.

    Parameters
    ----------
    record : SharedRecord

    Returns
    -------
    str
        HTML that needs no network and no script. Its size is bounded, however many queries there are.
    """
    of = record.source or _these(record)
    head = [f"<h1>{escape(of)} under a budget of {escape(record.budget)}</h1>", *_numbers(record), _facts(record)]
    sections = (text for part in _PARTS for text in part(record))
    return page(f"Run under a budget: {of}", [*head, *sections])


def shared_sections(record: SharedRecord) -> Iterator[str]:
    """The same for a page that shows the matches already.

    Parameters
    ----------
    record : SharedRecord

    Yields
    ------
    str
        Pieces of HTML.
    """
    yield f"<h2>A budget of {escape(record.budget)}</h2>"
    yield from _numbers(record)
    yield _facts(record)
    for part in _PARTS:
        yield from part(record)


def numbers(record: SharedRecord) -> list[tuple[str, str]]:
    """Numbers to know, each with what it is: of rules how much is certain, recall, work, what was shed and found."""
    first = []
    if isinstance(record, RulesRecord) and record.certain is not None:
        first.append((percent(record.certain), "of the matches are in the exact answer for sure"))
    return [*first, _recall_tile(record), *spent(record)]


def _these(record: SharedRecord) -> str:
    return _some(record, len(record.estimates) + len(record.exact))


def _some(record: SharedRecord, number: int) -> str:
    return f"{number:,} {record.things[number != 1]}"


def _numbers(record: SharedRecord) -> Iterator[str]:
    yield f'<p class="soft">One budget for {_these(record)}, run by {counted(len(record.parts), "engine")}.</p>'
    yield f"<p><b>Is a budget needed?</b> Exact run: {escape(need_words(record))}.</p>"
    yield tiles(numbers(record))


def _recall_tile(record: SharedRecord) -> tuple[str, str]:
    found, low, high = record.recall
    if not record.shed_runs:
        return "100%", "recall: nothing was shed"
    if low is None or high is None:
        return "unknown", "recall of all (too little was audited of some)"
    between = f"{percent(low)} to {percent(high)}" if low >= LEAST else f"at most {percent(high)}"
    return (between, "recall of all") if found is None else (percent(found), f"estimated recall of all ({between})")


def _facts(record: SharedRecord) -> str:
    known = [("policy", f"{record.policy}, seed {record.seed}")]
    if record.exact:
        shown = ", ".join(cut(one_line(name), MOST_NAME) for name in record.exact[:MOST_NAMES])
        more = f" and {len(record.exact) - MOST_NAMES:,} more" if len(record.exact) > MOST_NAMES else ""
        known.append(("nothing is shed of", f"{shown}{more}: they need no partial matches"))
    if record.audit_work is not None:
        share = f", {percent(record.audit_work / record.work)} of the work" if record.work else ""
        known.append(("audit", f"{record.audit_work:,} run-steps{share}"))
    if record.seconds is not None:
        speed = f", {record.events / record.seconds:,.0f} events/s" if record.seconds > 0 else ""
        known.append(("time", f"{record.seconds:,.2f} s{speed}"))
    return facts(known)


# --- who did what ---------------------------------------------------------------------------------------------------


def _parts(record: SharedRecord) -> Iterator[str]:
    yield "<h2>How the budget was shared</h2>"
    if not record.parts:
        yield "<p>No engine has partial matches, so there was nothing to share.</p>"
        return
    is_of_rules = isinstance(record, RulesRecord)
    runs = "rule" if is_of_rules else "query, or all that are of one template"
    yield (
        '<p class="soft">Parts of the budget move to where a run-step brings most: towards one price of what match '
        f"points count for. An engine runs a {runs}. Prices of engines are in units of their own; what "
        f"{MANY_STEPS:,} of their run-steps found can be compared.</p>"
    )
    shown, names = record.parts[:MOST_ROWS], _names(record)
    head = ["engine", "WORTH" if is_of_rules else "weight", "of the budget", "run-steps", "allowed", "used"]
    head += ["runs shed", "match points", f"of {MANY_STEPS:,} run-steps", "recall"]
    rows = [[names[part.name], *_part_row(record, part)] for part in shown]
    first, others = rows[:MOST_WORST], rows[MOST_WORST:]
    yield _named(table(head, first, caption="those with most work first"))
    if others:
        more = _named(table(head, others, caption=""))
        yield f"<details><summary>the next {len(others):,}</summary>{more}</details>"
    if len(shown) < len(record.parts):
        rest = sum(part.piece.work for part in record.parts[MOST_ROWS:]) / max(record.work, 1)
        left = len(record.parts) - len(shown)
        yield f'<p class="soft">{left:,} others, with {percent(rest)} of the work, are left out.</p>'


def _named(rows: str) -> str:
    """A table whose first column is wide enough for names."""
    return f'<div class="named">{rows}</div>'


def _names(record: SharedRecord) -> dict[str, str]:
    """What engines are called: as their query or rule; those of a template as its first query and how many more."""
    queries: dict[str, list[str]] = {}
    for query in record.queries if isinstance(record, SetRecord) else ():
        queries.setdefault(query.part or "", []).append(query.id)
    found = {}
    for part in record.parts:
        first, *others = queries.get(part.name) or [part.name]
        found[part.name] = cut(one_line(first), MOST_NAME) + (f" and {len(others):,} more" if others else "")
    return found


def _part_row(record: SharedRecord, part: PartRecord) -> list[str]:
    piece, readers = part.piece, ", with its readers" if part.name in _protected(record) else ""
    used = percent(min(piece.work / piece.bound, 1.0)) if piece.bound else "none"
    return [
        f"{part.weight:.3g}{readers}",
        percent(min(piece.bound / record.allowed, 1.0)) if record.allowed else "none",
        f"{piece.work:,}",
        f"{piece.bound:,}",
        used,
        f"{piece.shed:,}",
        f"{piece.points:,}",
        f"{float(found_per_work(piece.points, piece.work)):.3g}",
        _recall_text(part.recall),
    ]


def _protected(record: SharedRecord) -> set[str]:
    """The rules of which match points count for others, too."""
    rules = record.rules if isinstance(record, RulesRecord) else ()
    return {rule.name for rule in rules if rule.protected}


def _recall_text(known: RecallEstimate | None) -> str:
    if known is None or known.low is None or known.high is None or known.high - known.low >= NOTHING:
        return "unknown"
    if known.is_certain:
        return percent(known.recall or 0.0)
    return interval(known) if known.recall is None else f"{percent(known.recall)} ({interval(known)})"


def _certain(record: SharedRecord) -> Iterator[str]:
    if not isinstance(record, RulesRecord):
        return
    yield "<h2>What is certain</h2>"
    yield (
        '<p class="soft">A match is certain if the exact run has it, too. It is in doubt where the rule reads what '
        "rules write that may have missed matches, and where one that was missed could stand in its place.</p>"
    )
    rows = []
    for rule in sorted(record.rules, key=lambda one: one.certain - one.matches)[:MOST_ROWS]:
        share = percent(rule.certain / rule.matches) if rule.matches else "no match"
        doubt = "; ".join(map(str, rule.doubts)) or "it reads nothing that rules may have missed to write"
        rows.append([rule.name, doubt, f"{rule.matches:,}", f"{rule.certain:,}", share])
    left = len(record.rules) - len(rows)
    caption = "those with most in doubt first" + (f"; {left:,} others are left out" if left else "")
    yield table(["rule", "reads", "matches", "certain", "share"], rows, caption=caption, texts=2)


def _recalls(record: SharedRecord) -> Iterator[str]:
    known, every = worst(record.estimates), len(record.estimates)
    if not every or not record.shed_runs:
        return
    yield f"<h2>Recall of {record.things[1]}</h2>"
    if not known:
        yield f"<p>Too little was audited to tell that of any of {_some(record, every)}: a larger audit says more.</p>"
    else:
        shown = known[:MOST_WORST]
        first = f"the {len(shown):,} that miss most" if len(shown) < len(known) else "those that miss most first"
        unknown = f" Of {every - len(known):,} it is unknown: too little was audited." if len(known) < every else ""
        yield (
            f'<p class="soft">Of {len(known):,} of {_some(record, every)} enough was audited to estimate it; shown are '
            f"{first}. A band is where recall lies, {percent(shown[0][1].level)} sure.{unknown}</p>"
        )
        yield f'<div class="pair"><figure>{recall_lanes(shown)}</figure>{_recall_rows(shown)}</div>'
    if isinstance(record, SetRecord):
        yield from _query_rows(record, [name for name, _ in known])


def _recall_rows(shown: Sequence[tuple[str, RecallEstimate]]) -> str:
    rows = [
        [cut(one_line(name), MOST_NAME), percent(one.recall or 0.0), interval(one), f"{one.points + one.ends:,}"]
        for name, one in shown
    ]
    return table(["name", "recall", "between", "audited"], rows, caption="")


def _query_rows(record: SetRecord, first: Sequence[str]) -> Iterator[str]:
    """All queries that shed, those that miss most first; as many as a page holds."""
    rank, names = {name: place for place, name in enumerate(first)}, _names(record)
    shedding = sorted((one for one in record.queries if one.part), key=lambda one: rank.get(one.id, len(rank)))
    shown = shedding[:MOST_ROWS]
    rows = [
        [
            cut(one_line(one.id), MOST_NAME),
            names.get(one.part or "", ""),
            f"{one.weight:g}",
            "shared" if one.found is None else f"{one.found:,}",
            _recall_text(one.recall),
        ]
        for one in shown
    ]
    caption, left = "those that miss most first, then in their order", len(shedding) - len(shown)
    inside = _named(table(["query", "engine", "weight", "match points", "recall"], rows, caption=caption, texts=2))
    yield f"<details><summary>each query</summary>{inside}</details>"
    if left:
        has = f"{left:,} others are left out: {ALL_ROWS}, or --report FILE.csv, has a row for each"
        yield f'<p class="soft">{has}.</p>'


def _shed(record: SharedRecord) -> Iterator[str]:
    names = _names(record)
    shed = [Shed(names[part.name], one.reason, one.runs) for part in record.parts for one in part.shed]
    yield from shed_section(shed, "engine", "the engine that had them")


_PARTS = (load_section, _parts, _certain, _recalls, _shed)
"""Sections behind the head."""
