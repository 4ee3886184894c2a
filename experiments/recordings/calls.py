"""The Python calls: queries of the corpus and random ones in every way, sets, rules, revisions, budgets, live runs.

Each call prints what it gets. Saved states may change their form: what is recorded is that a run goes on from its state
as if nothing had happened, and what comes out.
"""

from __future__ import annotations

import json
import re
import tomllib
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from acep_approx import AcepError, HistoryGraph, QuerySet, compile_query, compile_rules
from experiments.recordings import worlds
from experiments.recordings.case import Case

HERE = Path(__file__).resolve().parent
CORPUS = HERE.parent.parent / "tests" / "corpus"
TYPES = {"int64": pa.int64(), "double": pa.float64(), "string": pa.string(), "bool": pa.bool_()}
OUTPUTS = ("matches", "points", "counts", "partial")
PUSHES = (9, 4, 1)
"""In how many pieces events are pushed."""
ROWS_SHOWN = 60


# --- what is printed ------------------------------------------------------------------------------------------------


def show(title: str, work: Callable[[], Any]) -> Any:
    """Print a title, and what some work gives: a table, an object's text, or its error; returns it, or None."""
    try:
        found = work()
    except AcepError as error:
        print(f"{title}: {type(error).__name__} {error.code}: {error}\n  hint: {error.hint}")
        return None
    except (TypeError, AttributeError, ValueError, KeyError, IndexError) as error:
        print(f"{title}: {type(error).__name__}: {error}")
        return None
    print(f"{title}:", *_lines(found), sep="\n  ")
    return found


def _lines(found: Any) -> Iterator[str]:
    if isinstance(found, pa.Table):
        yield f"{found.num_rows} rows of " + ", ".join(f"{one.name}: {one.type}" for one in found.schema)
        yield from map(str, found.slice(0, ROWS_SHOWN).to_pylist())
        if found.num_rows > ROWS_SHOWN:
            yield f"... digest {hash_of(found)}"
    elif isinstance(found, Mapping):
        for name in sorted(found):
            yield f"[{name}]"
            yield from _lines(found[name])
    elif isinstance(found, list):
        yield from map(str, found)
    else:
        yield from str(found).splitlines()


def hash_of(table: pa.Table) -> str:
    """A digest of the rows of a table."""
    import hashlib

    return hashlib.sha256(repr(table.to_pylist()).encode()).hexdigest()[:16]


def joined(parts: Iterable[pa.Table]) -> pa.Table:
    """Tables one after the other; those that came before there were columns are left out."""
    some = [part for part in parts if part.num_columns]
    return pa.concat_tables(some, promote_options="permissive") if some else pa.table({})


def sizes(events: pa.Table) -> list[int]:
    """Rows of a push, so that there are ``PUSHES`` of them."""
    return sorted({max(1, -(-len(events) // number)) for number in PUSHES})


def pieces(events: pa.Table, size: int) -> list[pa.Table]:
    """Events in pieces of so many rows."""
    return [events.slice(at, size) for at in range(0, max(len(events), 1), size)]


# --- one query ------------------------------------------------------------------------------------------------------


def pushed(query: Any, events: pa.Table, size: int, *, restored: bool, **options: Any) -> pa.Table:
    """What a matcher gives, pushed in pieces; with a restart from its state after each of them, if wanted."""
    matcher, parts = query.matcher(**options), []
    for piece in pieces(events, size):
        parts.append(matcher.push(piece))
        if restored:
            matcher = query.from_state(matcher.state_bytes())
    return joined([*parts, matcher.finish()])


def streamed(query: Any, events: pa.Table, **options: Any) -> None:
    """Print what a matcher gives, and whether it is the same in any split and after any restart."""
    whole = show(f"pushed {options}", partial(pushed, query, events, 1000, restored=False, **options))
    if whole is None:
        return
    for size in sizes(events):
        try:
            other = pushed(query, events, size, restored=True, **options)
        except AcepError as error:
            print(f"  by {size} with restarts: {error.code}")
            continue
        same = "the same" if other.to_pylist() == whole.to_pylist() else f"{other.num_rows} rows, {hash_of(other)}"
        print(f"  by {size} with restarts: {same}")


def one_query(text: str, events: pa.Table, **options: Any) -> None:
    """Print all that one query gives."""
    print(text)
    query = show("compiled", lambda: compile_query(text, **options))
    if query is None:
        return
    for form in ("text", "json"):
        show(form, partial(query.explain, form))
    matches = query.match(events)
    show("matches", matches.to_arrow)
    show("points", matches.points)
    show("counts", matches.counts)
    show("by errors", lambda: [len(matches), sorted(matches.count_by_errors().items())])
    show("bundles", matches.bundles)
    show("partial", matches.partial)
    show("events", lambda: matches.head(9).events())
    show("compressed", lambda: matches.compressed().expand())
    show("first", lambda: list(matches[:3]))
    show("bound", lambda: query.match(events, bind="ts").to_arrow())
    show("no match", matches.no_match)
    for output in OUTPUTS:
        streamed(query, events, output=output)


def by_engine(text: str, events: pa.Table) -> None:
    """Print what each engine finds, merged and not."""
    for engine in ("cells", "runs"):
        query = show(engine, lambda engine=engine: compile_query(text, engine=engine))
        if query is not None:
            show("matches", query.match(events).to_arrow)
            show("counts, unmerged", query.match(events, merge="none").counts)


def revised(text: str, events: pa.Table) -> None:
    """Print what a query gives over events in disorder."""
    query = show("compiled", lambda: compile_query(text))
    if query is None:
        return
    rows = events.to_pylist()
    shifted = sorted(range(len(rows)), key=lambda n: (n + n * 7 % 5, n))
    mixed = events.take(pa.array(shifted, pa.int64()))
    late = {"watermark": 3}
    for options in (late, late | {"emit": "early"}, late | {"emit": 2, "changelog": True}):
        for output in ("matches", "points", "counts") if options is late else ("matches", "points"):
            streamed(query, mixed, output=output, **options)
    matcher = show("a matcher", lambda: query.matcher(watermark=1))
    if matcher is not None:
        show("found", lambda: joined([*map(matcher.push, pieces(mixed, 4)), matcher.finish()]))
        show("rejected", matcher.rejected)
        show("watermark", lambda: [matcher.watermark, matcher.held_events, matcher.revisions])


def budgeted(text: str, events: pa.Table) -> None:
    """Print what a budget buys."""
    query = show("compiled", lambda: compile_query(text))
    if query is None:
        return
    options: list[tuple[str, dict[str, Any]]] = [
        ("0.5 steps/event", {}), ("2 runs", {"seed": 5, "audit": 0.3}), ("1 steps/event", {"policy": "random"}),
        ("100%", {}),
    ]  # fmt: skip
    for budget, more in options:
        some = show(f"{budget} {more}", lambda budget=budget, more=more: query.match_within(events, budget, **more))
        if some is not None:
            show("matches", some.to_arrow)
            show("points", some.points)
            show("record", lambda some=some: record_of(some.record()))
    for output in ("matches", "points"):
        streamed(query, events, output=output, budget="0.5 steps/event", seed=3)


def record_of(record: Any) -> list[str]:
    """The numbers of a record that do not depend on the clock."""
    names = ("events", "work", "allowed", "made", "shed_runs", "estimated_recall", "found", "exact", "policy", "seed")
    return [f"{name} {getattr(record, name)}" for name in names if hasattr(record, name)]


# --- sets, rules ----------------------------------------------------------------------------------------------------


def a_set(texts: Mapping[str, str], events: pa.Table, **options: Any) -> None:
    """Print what a set of queries finds: whole, pushed, restored, and with queries that come and go."""

    def made(output: str) -> Any:
        desk = QuerySet(output=output, **options)
        for name, text in texts.items():
            desk.add(text, id=name)
        return desk

    for output in ("matches", "points", "counts"):
        desk = show(f"set of {output}", lambda output=output: made(output))
        if desk is None:
            return
        show("levels", lambda desk=desk: [desk.levels(), sorted(desk.streams())])
        show("all", lambda desk=desk: desk.match(events).to_arrow())
        show("by query", lambda desk=desk: dict(desk.match(events)))
        for size in sizes(events):
            show(f"pushed by {size}", partial(_pushed_set, made(output), events, size))
    show("come and go", lambda: _changing_set(made("matches"), events, list(texts)))


def _pushed_set(desk: Any, events: pa.Table, size: int) -> pa.Table:
    parts = []
    for piece in pieces(events, size):
        parts.append(desk.push(piece).to_arrow())
        desk = QuerySet.from_state(desk.state_bytes())
    return joined([*parts, desk.finish().to_arrow()])


def _changing_set(desk: Any, events: pa.Table, ids: list[str]) -> pa.Table:
    parts = []
    for number, piece in enumerate(pieces(events, 7)):
        if number == 2:
            desk.remove(ids[0], cascade=True)
        if number == 4:
            desk.add("PATTERN SEQ(ANY a, ANY b) WITHIN 2", id="any")
        parts.append(desk.push(piece).to_arrow())
    return joined([*parts, desk.finish().to_arrow()])


def some_rules(text: str, events: pa.Table, tables: Mapping[str, Any], *, at: bool = False) -> None:
    """Print what rules do: whole, pushed by each driver, restored, and in a file."""
    print(text)
    rules = show("compiled", lambda: compile_rules(text))
    if rules is None:
        return
    store = {name: rows for name, rows in tables.items() if rows}
    show("explained", rules.explain)
    show("whole", lambda: _outcome(rules.run(events, store=store)))
    for driver in ("auto", "stepping"):
        for size in sizes(events):
            show(f"{driver} by {size}", partial(_pushed_rules, rules, events, store, size, driver))
    if at:
        show("in a file", lambda: _stored_rules(rules, events, store))


def _outcome(out: Any) -> dict[str, Any]:
    found = {f"rule {name}": out[name] for name in out}
    found |= {f"changes of {name}": out.changes[name] for name in out.changes}
    found |= {f"table {name}": out.store[name].to_pylist() for name in out.store}
    return {**found, "calls": [str(one) for one in out.calls]}


def _pushed_rules(rules: Any, events: pa.Table, store: Any, size: int, driver: str) -> list[str]:
    run, lines = rules.start(store=store, driver=driver), []
    for piece in pieces(events, size):
        out = run.push(piece)
        lines += [f"{name} {row}" for name in out for row in out[name].to_pylist()]
        lines += [f"{name} {row}" for name in out.changes for row in out.changes[name].to_pylist()]
        run = rules.from_state(run.state_bytes())
    out = run.finish()
    lines += [f"{name} {row}" for name in out for row in out[name].to_pylist()]
    return [*lines, str(run.counters), *(f"{name} {run.store[name].to_pylist()}" for name in run.store)]


def _stored_rules(rules: Any, events: pa.Table, store: Any) -> list[str]:
    half, lines = len(events) // 2, []
    for part in (events.slice(0, half), events):
        with rules.start(store=store, at="kept.db") as run:
            out = run.push(part.slice(run.offset))
            lines += [f"{name} {row}" for name in out for row in out[name].to_pylist()]
            lines += [f"{name} {run.store[name].to_pylist()}" for name in run.store]
    return lines


# --- where queries and events come from -----------------------------------------------------------------------------


@cache
def corpus() -> dict[str, dict[str, Any]]:
    """The cases of the corpus."""
    return {
        f"{path.stem}: {case['name']}": case
        for path in sorted(CORPUS.glob("*.toml"))
        for case in tomllib.loads(path.read_text(encoding="utf-8"))["case"]
    }


@cache
def drawn() -> dict[str, list[dict[str, Any]]]:
    """Random queries and rules with their streams."""
    return json.loads((HERE / "drawn.json").read_text(encoding="utf-8"))


def events_of(case: Mapping[str, Any]) -> pa.Table:
    """The events of a case of the corpus: ts, type, and their attributes; x and g are always there."""
    rows: list[dict[str, Any]] = []
    for word in case["events"].split():
        found = re.fullmatch(r"(-?\d+):(\w+)(?:\{(.*)\})?", word)
        assert found, word
        pairs = [pair.split("=") for pair in found[3].split(",")] if found[3] else []
        rows.append({"ts": int(found[1]), "type": found[2]} | {name: _value(text) for name, text in pairs})
    names = dict.fromkeys(name for row in rows for name in row)
    table = pa.table({name: [row.get(name) for row in rows] for name in names})
    for name, kind in (("x", pa.int64()), ("g", pa.string())):
        if name not in names:
            table = table.append_column(name, pa.nulls(len(rows), kind))
    return table


def _value(text: str) -> int | float | str:
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    return float(text) if re.fullmatch(r"-?\d+\.\d+", text) else text


def stream_of(world: Mapping[str, Any]) -> pa.Table:
    """The events of a drawn world."""
    return pa.table(
        {name: pa.array([row[name] for row in world["rows"]], TYPES[kind]) for name, kind in world["types"].items()}
    )


def letters() -> pa.Table:
    """The events that most command lines read."""
    rows = worlds.letters(160, 1)
    return pa.table({name: [row[n] for row in rows] for n, name in enumerate(worlds.LETTER_NAMES)})


# --- the calls --------------------------------------------------------------------------------------------------------


def corpus_case(name: str) -> None:
    """A case of the corpus, in every way."""
    case = corpus()[name]
    one_query(case["query"], events_of(case))
    by_engine(case["query"], events_of(case))


def corpus_revised(name: str) -> None:
    """A case of the corpus over events in disorder, and in a budget."""
    revised(corpus()[name]["query"], events_of(corpus()[name]))
    budgeted(corpus()[name]["query"], events_of(corpus()[name]))


def drawn_pattern(number: int) -> None:
    """A random pattern, in every way."""
    world = drawn()["patterns"][number]
    one_query(world["text"], stream_of(world))
    by_engine(world["text"], stream_of(world))


def drawn_revised(number: int) -> None:
    """A random pattern over events in disorder, and in a budget."""
    world = drawn()["patterns"][number]
    print(world["text"])
    revised(world["text"], stream_of(world))
    budgeted(world["text"], stream_of(world))


def drawn_cel(number: int) -> None:
    """A random query in CEL, in every way."""
    world = drawn()["cel"][number]
    events = stream_of(world)
    one_query(world["text"], events)
    query = show("once more", lambda: compile_query(world["text"]))
    if query is None:  # it is several automata, which a set runs
        a_set({"all": world["text"]}, events)
        return
    streamed(query, events, watermark=2)
    show("with starts", lambda: query.match(events, start="start").to_arrow())
    show("in a window", lambda: compile_query(world["text"], within="6").match(events, start="start").to_arrow())


def drawn_rules(number: int) -> None:
    """Random rules, by each driver."""
    world = drawn()["rules"][number]
    some_rules(world["text"], stream_of(world), world["tables"], at=number % 4 == 0)


def drawn_set(number: int) -> None:
    """Some random patterns of one stream as a set, with two templates."""
    worlds_ = drawn()["patterns"][number * 6 : number * 6 + 6]
    texts = {f"q{n}": world["text"] for n, world in enumerate(worlds_)}
    a_set(texts, stream_of(worlds_[0]))


def letters_query(name: str) -> None:
    """A query of the command lines from Python: revised, budgets, pages, why."""
    text, events = worlds.QUERIES[name], letters()
    streamed(compile_query(text), events, output="counts")
    streamed(compile_query(text), events, output="matches", id="id")
    streamed(compile_query(text), events, output="points", bind=["id", "x"])
    revised(text, events)
    budgeted(text, events)
    for around, key in ((20, "k"), (60, "l"), (90, "m")):
        show(f"why around {around}", lambda a=around, k=key: compile_query(text).why(events, around=a, key=k))
    show("why", lambda: compile_query(text).why(events))
    show("page", lambda: compile_query(text).match(events).page())


def letters_set(output: str) -> None:
    """A set with patterns, CEL, templates, levels; late events, a clock that is passed on, removal."""
    desk = QuerySet(output=output, reorder=3)
    desk.add(
        "PATTERN SEQ(A a, B b) WHERE [key] AND b.x > a.x WITHIN 6 RETURN b.x AS x, b.key AS key PUBLISH Up", id="up"
    )
    desk.add("PATTERN SEQ(Up u, Up v) WHERE v.x > u.x WITHIN 9 RETURN v.x AS x", id="twice")
    desk.add("SELECT x_1 AS low, x FROM A NEXT{$2.key = $1.key AND $2.x > $1.x} B", id="cel")
    rows = [{"low": n % 4, "who": "klm"[n % 3]} for n in range(40)]
    desk.add_many("PATTERN SEQ(A a, B b) WHERE [key] AND a.key = :who AND b.x > :low WITHIN 5", rows, id="many")
    events = letters()
    mixed = events.take(sorted(range(len(events)), key=lambda n: (n + n * 7 % 6, n)))
    for piece in pieces(mixed, 23):
        show("pushed", lambda piece=piece: desk.push(piece).to_arrow())
    show("late", desk.late)
    show("passed", lambda: desk.pass_time(200).to_arrow())
    show("graph", desk.graph)
    again = QuerySet.from_state(desk.state_bytes())
    again.remove("up", cascade=True)
    show("ids", lambda: [again.text("cel"), again.levels()])
    show("finished", lambda: again.finish().to_arrow())


def learning() -> None:
    """A budget that learns, saved and taken up, with a history."""
    rows = worlds.rising(3000, 4)
    events = pa.table({name: [row[n] for row in rows] for n, name in enumerate(("ts", "type", "key"))})
    events = events.append_column("x", pa.array([float(row[3]) for row in rows]))
    query = compile_query(worlds.QUERIES["rising.acep"])
    history = HistoryGraph(query).fit(events.slice(0, 1500))
    show("history", lambda: [history.points_, history.events_, history.steps_per_event_])
    for policy in ("history", "coverage", "scores", "most-advanced", "oldest", "random"):
        some = show(policy, lambda policy=policy: query.match_within(
            events.slice(1500), "20%", history=history, policy=policy, log_shed=True))  # fmt: skip
        if some is not None:
            show("points", some.points)
            show("record", lambda some=some: record_of(some.record()))
            show("shed", some.shed)
            show("expanded", some.expanded)
    some = query.match_within(events, "2 steps/event", learn=True, seed=2)
    show("points", some.points)
    show("learned", some.learning)
    show("refreshed", lambda: [some.refreshed(query).points_, some.refreshed(query).learned_ is not None])
    for options in ({"history": history, "budget": "20%"}, {"budget": "2 steps/event", "learn": True}):
        matcher, parts = query.matcher(**options), []
        for piece in pieces(events, 400):
            parts.append(matcher.push(piece))
            matcher = query.from_state(matcher.state_bytes(), history=options.get("history"))
        parts.append(matcher.finish())
        show("restarted", lambda parts=parts: joined(parts))
        show("record", lambda matcher=matcher: record_of(matcher.record()))


def corrections() -> None:
    """Updates, retractions, punctuations, sources and sequence numbers, pushed row by row and restored."""
    rows = worlds.story(3)
    table = pa.table({name: [row[n] for row in rows] for n, name in enumerate(worlds.STORY_NAMES)})
    for name in ("cells.acep", "runs.acep", "negend.acep", "next.acep", "machine.acep", "same.acep", "apart.acep"):
        query = compile_query(worlds.QUERIES[name])
        for options in ({"emit": "early"}, {"emit": 6}, {"changelog": True}, {}):
            print(name, options)
            streamed(query, table, watermark=20, id="id", **options)
    query = compile_query("PATTERN SEQ(A a, B b) WITHIN 9")
    matcher = query.matcher(op="op", emit="final", id="id")
    for piece in pieces(table, 30):
        show("pushed", lambda piece=piece: matcher.push(piece))
        show("punctuated", lambda: matcher.punctuate(matcher.watermark + 9 if matcher.watermark else 9))
        show("of some", lambda: matcher.punctuate(200, where="type = 'A'"))
    show("rejected", matcher.rejected)
    show("revisions", lambda: str(matcher.revisions))
    for options in ({"source": "key", "watermark": 2}, {"source": "key", "watermark": 2, "idle": 4}):
        other = query.matcher(**options)
        show(f"{options}", lambda other=other: joined([*map(other.push, pieces(table, 5)), other.finish()]))
        show("holding", lambda other=other: str(other.holding))


def live_runs() -> None:
    """A file that is followed, with a checkpoint, from Python."""
    Path("f.csv").write_text("ts,type,x\n1,A,1\n2,B,2\n3,A,3\n", encoding="utf-8")
    query = compile_query("PATTERN SEQ(A a, B b) WITHIN 20")
    for more in ("", "4,B,1\n5,A,2\n", "6,B,9\n"):
        with Path("f.csv").open("a", encoding="utf-8") as file:
            file.write(more)
        for options in ({}, {"output": "points"}, {"watermark": 1}, {"watermark": 9, "emit": "early"}):
            place = "state/" + "-".join(map(str, options.values()))
            show(f"followed {options}", lambda o=options, p=place: joined(
                query.follow("f.csv", until_idle="0 s", checkpoint=p, **o)))  # fmt: skip
        desk = QuerySet()
        desk.add("PATTERN SEQ(A a, B b) WITHIN 20", id="pair")
        desk.add("PATTERN A a WHERE a.x > 1 WITHIN 2", id="one")
        show("a set", lambda desk=desk: joined(
            one.to_arrow() for one in desk.follow("f.csv", until_idle="0 s", checkpoint="state/set")))  # fmt: skip


def rules_of_files(name: str) -> None:
    """The rules of the command lines from Python."""
    calls: list[str] = []
    if name == "hygiene.acep":
        import pyarrow.csv

        events = pyarrow.csv.read_csv(pa.BufferReader(worlds.TEXTS["ward.csv"].encode()))
        tables: dict[str, Any] = {"room": [{"id": "r1", "ward": "a"}, {"id": "r2", "ward": "a"}]}
    else:
        events, tables = letters(), {}
    some_rules(worlds.RULES[name], events, tables, at=True)
    rules = compile_rules(worlds.RULES[name])
    note = {one: lambda call: calls.append(str(call)) for one in ("badge", "pairs", "ring")}
    show("called", lambda: _outcome(rules.run(events, store=tables, calls={
        one: note[one] for one in note if one in worlds.RULES[name]})))  # fmt: skip
    print(*calls, sep="\n")


def refusals() -> None:
    """What Python refuses of what does not go together."""
    query = compile_query("PATTERN SEQ(A a, B b) WHERE [g] WITHIN 5")
    cel = compile_query("SELECT x FROM A NEXT B")
    events = [{"ts": 1, "type": "A", "g": "u", "x": 1}, {"ts": 2, "type": "B", "g": "u", "x": 2}]
    late = ({"watermark": 3}, {"emit": "early"}, {"op": "x"}, {"sequence": "x"}, {"changelog": True}, {"source": "g"})
    other: tuple[dict[str, Any], ...] = (
        {"budget": "20%"}, {"budget": "9 runs"}, {"budget": "9 runs", "learn": True}, {"output": "partial"},
        {"output": "bundles"}, {"output": "compressed"}, {"output": "counts"}, {"bind": "x"}, {"key_idle": 5},
        {"start": "x"}, {"merge": "some"}, {"id": "x"}, {"on_malformed": "skip"}, {"history": "h"}, {"seed": 3},
        {"output": "all"}, {"idle": 3}, {"nothing": 1},
    )  # fmt: skip
    for name, some in (("pattern", query), ("cel", cel)):
        for one in (*late, *other, *(a | b for a in late for b in other)):
            show(f"{name} {one}", lambda s=some, o=one: joined([(m := s.matcher(**o)).push(events), m.finish()]))
    desk = QuerySet()
    machine = worlds.QUERIES["machine.acep"]
    no_such: Any = QuerySet
    for number, work in enumerate((
        lambda: desk.add(machine), lambda: no_such(output="bundles"), lambda: no_such(output="partial"),
        lambda: desk.match_within(events, "9 runs"), desk.spark, lambda: desk.remove("nobody"),
        lambda: desk.add("ab"), lambda: desk.match(events, watermark=3), lambda: desk.match(events, bind="x"),
        lambda: compile_rules(worlds.RULES["still.acep"]).match_within(events, "9 runs"),
        lambda: compile_rules(worlds.RULES["still.acep"]).spark(),
        lambda: compile_rules(worlds.RULES["still.acep"]).start(watermark=3),
        lambda: compile_rules(worlds.RULES["wrongrules.acep"]),
        lambda: query.from_state(b"none"), lambda: query.from_state(cel.matcher().state_bytes()),
        lambda: QuerySet.from_state(b"none"), lambda: query.match_within(events, "much"),
        lambda: query.match(events, bind="nope").to_arrow(), lambda: query.match(events[::-1]).to_arrow(),
        lambda: query.match(events, time="nope").to_arrow(), lambda: query.match("nowhere.csv").to_arrow(),
    )):  # fmt: skip
        show(f"refused {number}", work)


def warm() -> None:
    """Run a little of everything without a word: kernels are loaded then."""
    import contextlib
    import io

    events = letters().slice(0, 20)
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ("cells.acep", "runs.acep", "apart.acep", "machine.acep", "fold.cel"):
            query = compile_query(worlds.QUERIES[name])
            matches = query.match(events)
            for work in (matches.to_arrow, matches.points, matches.counts, matches.partial, matches.compressed):
                show("warm", work)
            streamed(query, events)
            for options in ({"watermark": 3}, {"watermark": 3, "emit": "early"}, {"budget": "1 steps/event"}):
                show("warm", partial(pushed, query, events, 20, restored=False, **options))
        a_set({name: worlds.QUERIES[name] for name in ("cells.acep", "runs.acep", "next.cel")}, events)
        some_rules(worlds.RULES["counting.acep"], events, {})


def quietly(work: Callable[[], None]) -> Callable[[], None]:
    """Warnings are shown without the place in the sources that gave them."""

    def run() -> None:
        warnings.showwarning = lambda message, category, *_, **__: print(f"{category.__name__}: {message}")
        warnings.simplefilter("always")
        work()

    return run


def _all_calls() -> Iterator[tuple[str, Callable[[], None]]]:
    for name in corpus():
        yield f"corpus/{name}", partial(corpus_case, name)
    for name in list(corpus())[::3]:
        yield f"corpus/{name} in disorder", partial(corpus_revised, name)
    for number in range(len(drawn()["patterns"])):
        yield f"drawn/pattern {number}", partial(drawn_pattern, number)
        if number % 2 == 0:
            yield f"drawn/pattern {number} in disorder", partial(drawn_revised, number)
    for number in range(len(drawn()["cel"])):
        yield f"drawn/cel {number}", partial(drawn_cel, number)
    for number in range(len(drawn()["rules"])):
        yield f"drawn/rules {number}", partial(drawn_rules, number)
    for number in range(len(drawn()["patterns"]) // 6):
        yield f"drawn/set {number}", partial(drawn_set, number)
    for name in worlds.LETTERS:
        yield f"python/{name}", partial(letters_query, name)
    for output in ("matches", "points", "counts"):
        yield f"python/set of {output}", partial(letters_set, output)
    for name in ("hygiene.acep", "counting.acep", "still.acep"):
        yield f"python/rules {name}", partial(rules_of_files, name)
    yield "python/learning", learning
    yield "python/corrections", corrections
    yield "python/live", live_runs
    yield "python/refusals", refusals


CALLS = {name: quietly(work) for name, work in _all_calls()}
"""All calls by name."""


def all_calls() -> list[Case]:
    """The calls as cases."""
    return [Case(re.sub(r"[^\w./+=-]+", "_", name), (f"@call {name}",)) for name in CALLS]
