"""Odd arguments: every argument of every public call, found by its signature, with values that nobody should give."""

from __future__ import annotations

import datetime as dt
import decimal
import inspect
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

import acep_approx
from acep_approx import (
    Afa,
    Budget,
    HistoryGraph,
    Match,
    QuerySet,
    Wide,
    afa_function,
    compile_query,
    compile_rules,
    event,
    look,
    seq,
)
from acep_approx.events import TimeFormat, follow, open_source
from acep_approx.query import parse, parse_cel, parse_rules
from acep_approx.results import events_at
from tests.odd_calls import OddCall
from tests.odd_columns import DAY


class Anything:
    """A class that can be called with anything: what functions of somebody raise is not ours."""

    def __init__(self, *given: Any, **more: Any) -> None:
        pass


EVENTS = [{"ts": ts, "type": "AB"[ts % 2], "user": "u", "x": ts * 7 % 5, "id": ts} for ts in range(12)]
TEXT = "PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 5"
QUERY = compile_query(TEXT)
KEYED = compile_query("PATTERN SEQ(A a, B b) WHERE [user] WITHIN 5")
RULES_TEXT = """
TABLE t (id text, n int DEFAULT 0, KEY (id))
RULE r ON PATTERN A a WITHIN 1 DO UPDATE t SET n = old.n + 1 AT (a.user); CALL f(a.x) END
RULE q ON PATTERN SEQ(A a, B b) WITHIN 5
"""
RULES = compile_rules(RULES_TEXT)
RISING = compile_rules(f"RULE r ON {TEXT}")
"""A rule with partial matches, so that there is something to learn."""
ROLES = ("time", "key", "type", "unit", "start", "time_format")
FILES = ("format", "on_malformed", "rejects", "on_late", "late")
LAYOUT = (
    "delimiter",
    "encoding",
    "columns",
    "decimal",
    "line_format",
    "time_format",
    "thousands",
    "null",
    "column_types",
)
REVISING = ("watermark", "emit", "op", "source", "sequence", "idle", "changelog")
SPENDING = ("history", "policy", "audit", "seed", "learn", "full_work")
MORE: dict[str, tuple[str, ...]] = {
    "Query.match_within": (*ROLES, *FILES, "sort", "limit", "merge", "bind", "key_idle"),
    "Query.matcher": (*REVISING, *SPENDING, "state_cap"),
    "Query.follow": ("watermark", "id", "bind", "output", "time", "unit", "delimiter", "column_types"),
    "QuerySet": ("budget", "learn", "nonsense"),
    "QuerySet.match": ("sort", "on_progress", *FILES, *LAYOUT),
    "QuerySet.batches": ("sort", "on_misfit", *FILES),
    "QuerySet.follow": ("until_idle", "format", "on_malformed", "rejects", "kafka"),
    "RuleSet.start": ("budget", "learn", "nonsense"),
    "RuleSet.train": (*ROLES[:4], "nonsense"),
    "QuerySet.tune": ("format", "nonsense"),
    "RuleSet.run": ("store", "at", "calls", "checkpoint", "driver", *ROLES[:4], "time_format"),
    "HistoryGraph.fit": (*ROLES[:4], "time_format", "sort"),
    "HistoryGraph.partial_fit": ROLES[:4],
    "Query.train": (*ROLES[:4], "time_format", "sort", "nonsense"),
    "look": (*FILES[:3], *LAYOUT),
    "open_source": LAYOUT,
    "follow": LAYOUT,
    "events_at": FILES,
    "QueryBuilder.returning": ("v",),
    "PatternBuilder.returning": ("v",),
    "Afa.returning": ("v",),
}
"""The names that stand behind ``**`` of a call."""
INTERNAL = {"resumed", "opens", "is_in_order", "is_one_file", "also_asked", "on_schema", "rows of a source"}
"""Arguments that this package alone gives."""


NOT_TRIED = {
    "Afa.function": "afa_function itself",
    "Matcher.begin": "takes what this package makes",
    "Matcher.bind": "takes what this package makes",
    "Matcher.from_saved": "takes what this package makes",
    "Matcher.from_state": "takes a plan; Query.from_state is tried",
    "Matcher.look_for_types": "takes what this package makes",
    "Matcher.run": "takes what this package makes",
    "Matcher.take": "takes what this package makes",
    "Matcher": "takes a plan; Query.matcher is tried",
    "Matches": "made by Query.match",
    "Matches.asking": "takes what this package makes",
    "Matches.begun": "takes what this package makes",
    "Matches.found_by": "takes what this package makes",
    "Query": "made by compile_query",
    "QuerySet.check": "takes what this package makes",
    "QuerySet.expect": "takes what this package makes",
    "QuerySet.expect_no_more": "takes what this package makes",
    "QuerySet.spark": "refuses all",
    "Matcher.reads": "takes what this package makes",
    "Matcher.use": "takes what this package makes",
    "QuerySet.reads": "takes what this package makes",
    "QuerySet.use": "takes what this package makes",
    "RuleSet": "made by compile_rules",
    "Histories": "made by QuerySet.train",
    "Histories.of": "takes what this package makes",
    "Histories.read": "takes what this package makes",
    "RuleHistory.of": "takes what this package makes",
    "RuleHistory.read": "takes what this package makes",
    "RuleHistory.get": "of every mapping",
    "RuleSet.spark": "refuses all",
    "HistoryGraph.check": "takes what this package makes",
    "HistoryGraph.fingerprint": "takes what this package makes",
    "HistoryGraph.integer_gap": "takes what this package makes",
    "HistoryGraph.same_window": "takes what this package makes",
    "HistoryGraph.take": "takes what this package makes",
    "HistoryGraph.take_window": "takes what this package makes",
}
"""Public calls with arguments that are not tried, and why."""


def public_calls() -> Iterator[str]:
    """The calls that ``acep_approx`` has, with methods of its classes, as far as they take arguments."""
    for name in acep_approx.__all__:
        one = getattr(acep_approx, name)
        if not inspect.isclass(one):
            yield name
        elif not issubclass(one, BaseException):
            if inspect.signature(one).parameters:
                yield name
            yield from (f"{name}.{method}" for method in dir(one) if _takes_arguments(one, method))


def _takes_arguments(one: type, method: str) -> bool:
    call = getattr(one, method)
    if method.startswith("_") or not callable(call):
        return False
    is_bound = inspect.ismethod(call) or isinstance(inspect.getattr_static(one, method), staticmethod)
    return len(inspect.signature(call).parameters) > (not is_bound)


def odd_values(folder: Path) -> dict[str, Any]:
    """What nobody should give, by name."""
    here = folder / "some.jsonl"
    here.write_text('{"ts": 1, "type": "A"}\n')
    values: list[Any] = [None, True, False, 0, 5, -1, 2**63, 2**70, -(2**70), 1.5, float("nan"), float("inf"), 1e300]
    values += ["", " ", "x", "ts", "5", "-1", "1 h", "9" * 400, "\ud800", "a\0b", "x" * 5000, "none", "\n"]
    values += ["/no/such/place"]
    values += [b"x", bytearray(b"x"), [], [None], ["x"], ["x", "x"], [[]], {}, {"a": 1}, {1: 2}, {"x": None}]
    values += [(), ("x",), {"x"}, range(3), iter([]), Path("x"), Path(), folder, here, "~", 2j, object(), Anything]
    values += [np.int64(3), np.float64("nan"), np.str_("x"), np.bool_(True), np.array([1]), np.array(5), np.array([])]
    values += [np.datetime64("2024-01-01"), np.timedelta64(1, "s"), pd.NaT, pd.NA, pd.Timestamp("2024-01-01")]
    values += [pd.Series([1]), pd.DataFrame({"x": [1]}), pa.scalar(1), pa.array([1]), pa.table({"x": [1]})]
    values += [pa.int64(), pa.schema([])]
    values += [DAY, DAY.date(), dt.time(1), dt.timedelta(1), dt.timedelta(-1), dt.timedelta.max]
    values += [decimal.Decimal("1.5"), decimal.Decimal("NaN"), QUERY, KEYED.plan, TimeFormat("%Y-%m-%d")]
    values += [ValueError("x"), ...]
    return {f"{value!r:.40}" + f" #{number}": value for number, value in enumerate(values)}


class Subject:
    """A public call, with arguments that are right.

    Parameters
    ----------
    name : str
        As people write it, ``Query.match``.
    find : callable
        Makes what is called, anew each time.
    given : tuple
        Arguments by place.
    named : dict, optional
        Arguments by name that each call gets.
    then : callable, optional
        Uses what comes of it.
    """

    def __init__(
        self,
        name: str,
        find: Callable[[], Callable[..., Any]],
        *given: Any,
        named: dict[str, Any] | None = None,
        then: Callable[[Any], Any] | None = None,
    ) -> None:
        self.name, self.find, self.given, self.named = name, find, given, named or {}
        self.then = then or used

    def calls(self, odd: dict[str, Any]) -> Iterator[OddCall]:
        """With each argument odd, the others right."""
        parameters = inspect.signature(self.find()).parameters
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        places = [name for name, one in parameters.items() if one.kind in kinds]
        right = dict(zip(places, self.given, strict=False)) | self.named
        for name, one in parameters.items():
            for kind, value in odd.items() if name not in INTERNAL else ():
                label = f"{self.name}({name}={kind})"
                if one.kind is one.VAR_POSITIONAL:
                    yield OddCall(label, partial(self._many, right, value))
                elif one.kind is not one.VAR_KEYWORD:
                    yield OddCall(label, partial(self._one, right, name, value))
        for name in MORE.get(self.name, ()) if any(p.kind is p.VAR_KEYWORD for p in parameters.values()) else ():
            for kind, value in odd.items():
                yield OddCall(f"{self.name}(**{name}={kind})", partial(self._one, right, name, value))

    def _one(self, right: dict[str, Any], name: str, value: Any) -> Any:
        call = self.find()
        first = [
            key
            for key, one in inspect.signature(call).parameters.items()
            if one.kind is one.POSITIONAL_ONLY
        ]
        given = right | {name: value}
        return self.then(call(*(given.pop(key) for key in first if key in given), **given))

    def _many(self, right: dict[str, Any], value: Any) -> Any:
        return self.then(self.find()(*right.values(), value))


def used(made: Any) -> Any:
    """What people do with what they get: whatever is lazy is computed here."""
    if isinstance(made, acep_approx.Query):
        return str(made), made.explain()
    if isinstance(made, acep_approx.Matches):
        return made.to_arrow()
    if isinstance(made, acep_approx.Matcher) or hasattr(made, "punctuate"):
        return made.push(EVENTS), made.finish()
    if hasattr(made, "results") and hasattr(made, "stop"):
        made.stop()
        return [*made]
    if isinstance(made, Iterator):
        return [*made]
    if isinstance(made, QuerySet):
        return made.add(TEXT), made.match(EVENTS)
    if hasattr(made, "syntax") and callable(made.syntax):
        return str(made)
    return repr(made)


def subjects(folder: Path) -> list[Subject]:
    """All public calls that take arguments."""
    growing = folder / "growing.jsonl"
    growing.write_text('{"ts": 1, "type": "A", "x": 1}\n{"ts": 2, "type": "B", "x": 2}\n')
    state, set_state = QUERY.matcher().state_bytes(), a_set().state_bytes()
    rule_state, saved = RULES.start().state_bytes(), folder / "history"
    graph = HistoryGraph(QUERY).fit(EVENTS * 1)
    graph.save(saved)
    fitted = lambda: HistoryGraph(QUERY).fit(EVENTS)  # noqa: E731
    budgeted = lambda: QUERY.match_within(EVENTS, "2 runs", log_shed=True)  # noqa: E731
    within = lambda: QUERY.matcher(budget="2 runs")  # noqa: E731
    revised = lambda: QUERY.matcher(watermark=2)  # noqa: E731
    plain = lambda: seq(event("A", "a"), event("B", "b"))  # noqa: E731
    built = lambda: plain().within(5)  # noqa: E731
    machine = lambda: Afa(registers={"n": int}).arc("p", "q", on="A", name="a").final("q")  # noqa: E731
    found = lambda: a_set().match(EVENTS)  # noqa: E731
    some_found = lambda: a_set().match_within(EVENTS, "2 runs")  # noqa: E731
    ran = lambda: RULES.run(EVENTS)  # noqa: E731
    matches = lambda: QUERY.match(EVENTS)  # noqa: E731
    one = lambda: next(iter(matches()))  # noqa: E731
    live = {"until_idle": 0}
    return [
        Subject("compile_query", lambda: compile_query, TEXT),
        Subject("compile_rules", lambda: compile_rules, RULES_TEXT),
        Subject("look", lambda: look, EVENTS, then=str),
        Subject("seq", lambda: seq),
        Subject("either", lambda: acep_approx.either),
        Subject("all_of", lambda: acep_approx.all_of),
        Subject("absent", lambda: acep_approx.absent),
        Subject("event", lambda: event, "A", "a"),
        Subject("afa_function", lambda: afa_function, named={"version": 1, "returns": float}, then=declared),
        Subject("afa_function()", lambda: afa_function(version=1, returns=float)),
        Subject("Budget", lambda: Budget, 5.0, "runs", then=spent),
        Subject("Budget.parse", lambda: Budget.parse, "5 runs"),
        Subject("TimeFormat", lambda: TimeFormat, "%Y-%m-%d", then=timed),
        Subject("open_source", lambda: open_source, EVENTS, then=lambda source: [*source.batches()]),
        Subject("open_source of a file", lambda: open_source, growing, then=lambda source: [*source.batches()]),
        Subject("follow", lambda: follow, growing, named=live, then=stopped),
        Subject("events_at", lambda: events_at, EVENTS, [0, 1]),
        Subject("parse", lambda: parse, TEXT),
        Subject("parse_cel", lambda: parse_cel, "SELECT x FROM A"),
        Subject("parse_rules", lambda: parse_rules, RULES_TEXT),
        Subject("HistoryGraph", lambda: HistoryGraph, QUERY, then=lambda graph: graph.fit(EVENTS)),
        Subject("HistoryGraph.fit", lambda: HistoryGraph(QUERY).fit, EVENTS),
        Subject("HistoryGraph.partial_fit", lambda: fitted().partial_fit, EVENTS),
        Subject("HistoryGraph.load", lambda: HistoryGraph.load, saved, QUERY),
        Subject("HistoryGraph.save", lambda: fitted().save, folder / "other"),
        Subject("HistoryGraph.get_params", lambda: HistoryGraph(QUERY).get_params),
        Subject("HistoryGraph.set_params", lambda: HistoryGraph(QUERY).set_params, named={"gap": 3}),
        Subject("HistoryGraph.worth", lambda: fitted().worth),
        Subject("Query.match", lambda: QUERY.match, EVENTS),
        Subject("Query.match of a file", lambda: QUERY.match, growing),
        Subject("Query.match_within", lambda: QUERY.match_within, EVENTS, "2 runs"),
        Subject("Query.matcher", lambda: QUERY.matcher),
        Subject("Query.matcher, late", lambda: QUERY.matcher, named={"watermark": 2, "id": "id"}),
        Subject("Query.follow", lambda: QUERY.follow, growing, named=live),
        Subject("Query.from_state", lambda: QUERY.from_state, state),
        Subject("Query.explain", lambda: QUERY.explain),
        Subject("Query.explain, within", lambda: QUERY.explain, named={"budget": "2 runs"}),
        Subject("Query.why", lambda: QUERY.why, EVENTS, named={"around": 3}),
        Subject("Query.why of a key", lambda: KEYED.why, EVENTS, named={"around": 3, "key": "u"}),
        Subject("Query.spark", lambda: QUERY.spark),
        Subject("Query.tune", lambda: QUERY.tune, EVENTS, named={"budgets": ["50%"]}),
        Subject("Query.train", lambda: QUERY.train, EVENTS, named={"gap": -1}),
        Subject("Matcher.push", lambda: QUERY.matcher().push, EVENTS),
        Subject("Matcher.push, later", later, EVENTS),
        Subject("Matcher.finish", lambda: begun(QUERY.matcher()).finish),
        Subject("Matcher.pass_time", lambda: begun(QUERY.matcher()).pass_time, 99),
        Subject("RevisedMatcher.push", lambda: revised().push, EVENTS),
        Subject("RevisedMatcher.punctuate", lambda: begun(revised()).punctuate, 99),
        Subject("BudgetedMatcher.push", lambda: within().push, EVENTS),
        Subject("BudgetedMatcher.record", lambda: begun(within()).record),
        Subject("BudgetedMatcher.report", lambda: begun(within()).report, folder / "report.html"),
        Subject("BudgetedMatcher.refreshed", lambda: begun(within()).refreshed, QUERY),
        Subject("BudgetedMatcher.pass_time", lambda: begun(within()).pass_time, 99),
        Subject("Matches.head", lambda: matches().head),
        Subject("Matches.table", lambda: matches().table),
        Subject("Wide", lambda: Wide, then=lambda bind: matches(bind=bind).to_arrow()),
        Subject("Matches[]", lambda: matches().__getitem__, 0),
        Subject("Matches.no_match", lambda: matches().no_match),
        Subject("Matches.page", lambda: matches().page, folder / "page.html"),
        Subject("Match[]", lambda: one().__getitem__, "a"),
        Subject("Match", lambda: Match, 0, 1, 2, {}, (), {}),
        Subject("Compressed.expand", lambda: matches().compressed().expand),
        Subject("BudgetedMatches.expanded", lambda: budgeted().expanded),
        Subject("BudgetedMatches.record", lambda: budgeted().record),
        Subject("BudgetedMatches.report", lambda: budgeted().report, folder / "report.html"),
        Subject("BudgetedMatches.refreshed", lambda: budgeted().refreshed, QUERY),
        Subject("QuerySet", lambda: QuerySet),
        Subject("QuerySet.add", lambda: a_set().add, TEXT),
        Subject("QuerySet.add_many", lambda: a_set().add_many, "PATTERN A a WHERE a.x > :v WITHIN 5", [{"v": 1}]),
        Subject("QuerySet.push", lambda: a_set().push, EVENTS),
        Subject("QuerySet.finish", lambda: begun(a_set()).finish),
        Subject("QuerySet.match", lambda: a_set().match, EVENTS),
        Subject("QuerySet.match_within", lambda: a_set().match_within, EVENTS, "2 runs"),
        Subject("QuerySet.explain", lambda: a_set().explain, "2 runs"),
        Subject("QuerySet.train", lambda: a_set().train, EVENTS),
        Subject("QuerySet.tune", lambda: a_set().tune, EVENTS, named={"budgets": ["50%"]}, then=str),
        Subject("Histories.save", lambda: a_set().train(EVENTS).save, folder / "histories"),
        Subject("Histories.load", lambda: acep_approx.Histories.load, folder),
        Subject("RuleSet.match_within", lambda: RISING.match_within, EVENTS, "2 runs"),
        Subject("RuleHistory", lambda: acep_approx.RuleHistory, RISING),
        Subject("RuleSet.explain", lambda: RISING.explain, "2 runs"),
        Subject("RuleSet.train", lambda: RISING.train, EVENTS),
        Subject("RuleSet.tune", lambda: RISING.tune, EVENTS, named={"budgets": ["50%"]}, then=str),
        Subject("RuleHistory.fit", lambda: acep_approx.RuleHistory(RISING).fit, EVENTS),
        Subject("RuleHistory.save", lambda: acep_approx.RuleHistory(RISING).fit(EVENTS).save, folder / "of rules"),
        Subject("RuleHistory.load", lambda: acep_approx.RuleHistory.load, folder, RISING),
        Subject("QuerySet.batches", lambda: a_set().batches, EVENTS),
        Subject("QuerySet.follow", lambda: a_set().follow, growing, named=live),
        Subject("QuerySet.pass_time", lambda: begun(a_set()).pass_time, 99),
        Subject("QuerySet.from_state", lambda: QuerySet.from_state, set_state),
        Subject("QuerySet.take_up", lambda: a_set().take_up, set_state),
        Subject("QuerySet.remove", lambda: a_set().remove, "ab"),
        Subject("QuerySet.text", lambda: a_set().text, "ab"),
        Subject("QuerySet.subscription", lambda: a_set().subscription, "ab"),
        Subject("QuerySet.graph", lambda: a_set().graph),
        Subject("QuerySet in", lambda: a_set().__contains__, "ab"),
        Subject("Subscription.on_match", lambda: a_set().subscription("ab").on_match, print),
        Subject("Found[]", lambda: found().__getitem__, "ab"),
        Subject("Found in", lambda: found().__contains__, "ab"),
        Subject("RuleSet.check", lambda: RULES.check, EVENTS),
        Subject("RuleSet.start", lambda: RULES.start, then=lambda run: run.push(EVENTS)),
        Subject("RuleSet.run", lambda: RULES.run, EVENTS),
        Subject("RuleSet.graph", lambda: RULES.graph),
        Subject("RuleSet.from_state", lambda: RULES.from_state, rule_state),
        Subject("QuerySet.record", lambda: a_set(budget="2 runs").record),
        Subject("QuerySet.report", lambda: begun(a_set(budget="2 runs")).report, folder / "report.html"),
        Subject("BudgetedFound.record", lambda: some_found().record),
        Subject("BudgetedFound.report", lambda: some_found().report, folder / "report.html"),
        Subject("RuleRun.record", lambda: begun(RULES.start(budget="2 runs")).record),
        Subject("RuleRun.report", lambda: begun(RULES.start(budget="2 runs")).report, folder / "report.html"),
        Subject("RuleOutput.report", lambda: RULES.match_within(EVENTS, "2 runs").report, folder / "report.html"),
        Subject("RuleRun.push", lambda: RULES.start().push, EVENTS),
        Subject("RuleRun.pass_time", lambda: begun(RULES.start()).pass_time, 99),
        Subject("RuleOutput[]", lambda: ran().__getitem__, "q"),
        Subject("StoreView[]", lambda: ran().store.__getitem__, "t"),
        *methods("QueryBuilder", built, OF_QUERIES),
        *methods("PatternBuilder", plain, OF_PATTERNS),
        Subject("Afa", lambda: Afa),
        *methods("Afa", machine, OF_MACHINES),
    ]


def methods(of: str, make: Callable[[], Any], given: dict[str, tuple[Any, ...]]) -> list[Subject]:
    """Some methods of what is made anew for each call."""
    return [Subject(f"{of}.{name}", lambda name=name: getattr(make(), name), *right) for name, right in given.items()]


OF_QUERIES: dict[str, tuple[Any, ...]] = {
    "where": ("b.x > a.x",),
    "by": (),
    "strategy": ("skip_till_any_match",),
    "within": (5,),
    "errors": (1,),
    "skip_to": ("last a",),
    "every": (5,),
    "returning": (),
}
OF_PATTERNS = OF_QUERIES | {"times": (1,), "at_least": (1,)}
OF_MACHINES: dict[str, tuple[Any, ...]] = {
    "arc": ("q", "r"),
    "epsilon": ("q", "r"),
    "timeout": ("q", "r"),
    "ignore": ("q",),
    "final": ("q",),
    "by": (),
    "within": (5,),
    "errors": (1,),
    "skip_to": ("last a",),
    "every": (5,),
    "returning": (),
}


def a_set(**options: Any) -> QuerySet:
    """Queries, one of which publishes."""
    made = QuerySet(**options)
    made.add(TEXT, id="ab")
    made.add("PATTERN A a WITHIN 5 RETURN a.x AS x PUBLISH P", id="p")
    return made


def begun(made: Any) -> Any:
    """What has seen some events."""
    made.push(EVENTS)
    return made


def later() -> Callable[..., Any]:
    """What takes the second events of a stream."""
    matcher = QUERY.matcher()
    matcher.push([{"ts": -5, "type": "A", "x": 1}])
    return matcher.push


def stopped(source: Any) -> Any:
    """What has been written so far."""
    source.stop()
    return [*source.batches()]


def declared(made: Any) -> Any:
    """A function that was declared, in use."""
    return repr(made(lambda x: x))


def spent(budget: Any) -> Any:
    """Some of the matches."""
    return QUERY.match_within(EVENTS, budget).to_arrow(), str(budget)


def timed(format_: Any) -> Any:
    """Times read by a format."""
    return QUERY.match([{"ts": "2024-01-01", "type": "A", "x": 1}], time_format=format_).to_arrow()


def argument_calls(folder: Path) -> Iterator[OddCall]:
    """Every argument of every public call, with every odd value."""
    odd = odd_values(folder)
    for subject in subjects(folder):
        yield from subject.calls(odd)
