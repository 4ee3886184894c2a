"""What a run learned while it went on: a section of the report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from acep_approx.budget.ledger import place_words
from acep_approx.pages.budget.learning_charts import learning_curve, reliability
from acep_approx.pages.budget.lines import learning_facts
from acep_approx.pages.budget.times import thinned
from acep_approx.pages.drawing import cut, moment, percent, table
from acep_approx.pages.shell import facts

if TYPE_CHECKING:
    from acep_approx.budget.ledger import Learning, RunRecord, SelectedFeature

MOST_ROWS, MOST_TEXT = 40, 160


def learned(record: RunRecord) -> Iterator[str]:
    """What was learned, whether it comes true, and what it cost; nothing where the run did not learn.

    Parameters
    ----------
    record : RunRecord

    Yields
    ------
    str
        Pieces of HTML.
    """
    known = record.learning
    if known is None:
        return
    yield "<h2>What was learned</h2>"
    yield (
        '<p class="soft">While the stream ran, what runs are worth was learned from tests of live runs, and from a '
        "cohort that was matched exactly beside the run, for its budget. What was shed was never looked at.</p>"
    )
    yield facts(learning_facts(record, known))
    if record.pieces:
        yield f"<figure>{learning_curve(record, known)}</figure>"
    yield from _rescored(record, known)
    yield from _chances(known)
    yield from _alarms(record, known)
    yield from _features(known)


def _rescored(record: RunRecord, known: Learning) -> Iterator[str]:
    if not known.revalued:
        return
    rows = [
        [
            moment(one.tick, is_time=record.is_time),
            *(f"{number:,}" for number in (one.events, one.points, one.tests, one.work, one.explored, one.alarms)),
        ]
        for one in thinned(known.revalued, MOST_ROWS)
    ]
    head = ["runs rescored at", "events", "match points", "tests seen", "run-steps", "of the cohort", "drift alarms"]
    shown = table(head, rows, caption="all counted from the beginning")
    yield f"<details><summary>as a table</summary>{shown}</details>"


def _chances(known: Learning) -> Iterator[str]:
    if not known.cases:
        return
    yield (
        '<p class="soft">Before the outcome of a run of the cohort was known, its chance to lead to a match point was '
        "foretold. On the dashed line it came true as often as foretold; circles are as large as their number of "
        "cases.</p>"
    )
    rows = [[percent(tenth.foretold), percent(tenth.reached), f"{tenth.cases:,}"] for tenth in known.tenths]
    beside = table(["foretold", "came true", "cases"], rows, caption="chances, by tenths", texts=0)
    yield f'<div class="pair"><figure>{reliability(known)}</figure>{beside}</div>'


def _alarms(record: RunRecord, known: Learning) -> Iterator[str]:
    if not known.alarms:
        return
    rows = [[moment(one.tick, is_time=record.is_time), one.where] for one in known.alarms[-MOST_ROWS:]]
    caption = "drift: where what was foretold no longer fitted"
    if len(rows) < len(known.alarms):
        caption += f" (the last {len(rows)} of {len(known.alarms):,})"
    yield table(["alarm at", "state"], rows, caption=caption, texts=2)


def _features(known: Learning) -> Iterator[str]:
    if not known.features:
        yield "<p>Nothing that runs remember was found to tell them apart: only how far they are, and what is left.</p>"
        return
    rows = [[place_words(one.state, one.errors), one.feature, _ranges(one)] for one in known.features[:MOST_ROWS]]
    caption = "the features by which the runs of a state are told apart; pace: the arrival rate of events of their key"
    yield table(["state", "by", "in ranges"], rows, caption=caption, texts=3)


def _ranges(one: SelectedFeature) -> str:
    return cut("; ".join(one.ranges), MOST_TEXT)
