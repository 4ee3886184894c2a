"""A plan in words: which engine, why, what it tests when, what it remembers and merges, what would be cheaper.

Of a query in CEL its states and edges, what runs wait for, and whether anything ends them; and its automaton as data:
the AIR of Cayuga, as JSON. Source: Demers et al., CIDR 2007, section 4.3: the Automaton Internal Representation between
the compiler of queries and the engine. Theirs is XML; here it is for people and programs that look at a query, and
nothing reads it back.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from acep_approx.automaton.automaton import START
from acep_approx.automaton.dominance import Better, preferences
from acep_approx.automaton.lengths import may_be_followed
from acep_approx.automaton.registers import RegisterAutomaton
from acep_approx.automaton.resolve import Condition, Register, equality
from acep_approx.automaton.states import NO_EVENT, PLACE, Step
from acep_approx.automaton.words import (
    Edge,
    Place,
    computes,
    edges,
    end_tests,
    ignore_text,
    kept_sets,
    letter_text,
    letters_text,
    places,
    register_text,
    state_names,
    step_moves,
    step_tests,
    strategy_of,
    stream_of,
    streams_read,
    thresholds,
)
from acep_approx.errors import UsageError
from acep_approx.kernels.runs.pools import COLUMNS
from acep_approx.planning.many_matches import REMEDY, why_many
from acep_approx.planning.planner import LINK_BYTES, UNBOUNDED, CellsCost, Plan, RunsCost
from acep_approx.query.printer import to_text
from acep_approx.query.shape import is_static, negated_sequences, negation_windows
from acep_approx.query.syntax import Strategy
from acep_approx.visible import printable

MOST_LINES = 12
"""States or arcs of which the text says more; a drawing has them all."""
STRATEGIES: dict[Strategy, str] = {
    "skip_till_any_match": "any event may be passed over: a run that can take an event also goes on without it",
    "skip_till_next_match": "a run passes over only events that it cannot take, in a repetition those that do not "
    "go on with it",
    "partition_contiguity": "a run ends at an event of its partition that it cannot take",
    "strict_contiguity": "a run ends at an event of the stream that it cannot take",
}


_TIES = "SIMULTANEOUS: what one event of a time does is not seen by the others; runs go on or end with the time"


def explain_text(plan: Plan) -> str:
    """The plan in words.

    Parameters
    ----------
    plan : Plan

    Examples
    --------
    >>> from acep_approx import compile_query
    >>> text = explain_text(compile_query("PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 5").plan)
    >>> [line for line in text.splitlines() if "->" in line]
    ['tests    of a run, a -> b: a.x < b.x']
    """
    cost = plan.cost
    parts = _cells(cost) if isinstance(cost, CellsCost) else _runs(plan, cost)
    if plan.walks_maximal:
        parts.append(("MAXIMAL", [*_walks(plan)]))
    reasons = [f"because {reason}" for reason in _reasons(plan)]
    sections = [("engine", [f"{plan.engine} (exact)", *reasons]), *parts]
    lines = [line for label, texts in sections for line in section(label, texts)]
    return printable("\n".join([to_text(plan.query), "", *lines, *(f"advice   {note}" for note in advice(plan))]))


def advice(plan: Plan) -> list[str]:
    """What would make the query cheaper, or what to look out for."""
    notes = list(_cells_advice(plan, plan.cost) if isinstance(plan.cost, CellsCost) else _runs_advice(plan))
    if (why := why_many(plan)) is not None:
        notes.insert(0, f"{why}: {REMEDY}")
    return notes


def section(label: str, texts: list[str]) -> Iterator[str]:
    """Lines under a label, which stands before the first."""
    for text in texts:
        yield f"{label:<8} {text}"
        label = ""


def _walks(plan: Plan) -> Iterator[str]:
    yield "lists no match that another one contains, at a cost that does not grow with their number"
    if may_be_followed(plan.automaton):
        yield "a match waits until its window has closed if another event could follow its last one"


def _reasons(plan: Plan) -> list[str]:
    if plan.engine == "runs":
        return [f"the cells cannot answer {why}" for why in plan.why_runs] or ["it was asked for"]
    keyed = ", ".join(f"[{e.name}]" for e in plan.query.equivalences)
    across = [to_text(predicate) for predicate in plan.query.predicates if not is_static(predicate)]
    return [
        "every predicate is about one event alone, so a run is just (state, errors, start)"
        if not across
        else f"what satisfies {' AND '.join(across)} does so with more events: it is tested on maximal matches alone",
        "skip_till_any_match: of two runs in one state with as many errors, the later start does all the other can",
        f"the equivalence {keyed} splits the stream: each key has cells of its own"
        if keyed
        else "no equivalence: one set of cells for the whole stream",
    ]


# --- cells ------------------------------------------------------------------------------------------------------


def _cells(cost: CellsCost) -> list[tuple[str, list[str]]]:
    listing = (
        f"{cost.determinised} determinised states to list matches (more where one event satisfies several letters)"
        if cost.determinised is not None
        else "determinised states to list matches are made while it runs"
    )
    return [
        ("states", [f"{cost.states}, arcs {cost.arcs}, letters {cost.letters}", listing]),
        ("work", [f"{cost.work}, however many partial matches"]),
        ("memory", [f"{cost.memory} to detect; to list also 16 bytes per arc and event in the window"]),
    ]


def _cells_advice(plan: Plan, cost: CellsCost) -> Iterator[str]:
    if cost.determinised is None:
        yield "listing matches makes states while it runs; points and bundles never do"
    elif cost.determinised > 200:
        yield f"listing needs {cost.determinised} determinised states: fewer optional or repeated parts help"
    if not plan.query.equivalences:
        yield "if all events of a match share an attribute, say so with [attribute]: fewer matches"


# --- runs -------------------------------------------------------------------------------------------------------


def _runs(plan: Plan, cost: RunsCost) -> list[tuple[str, list[str]]]:
    registers = plan.registers
    assert registers is not None, "the runs engine has them"
    shortest, widest = 8 * COLUMNS, cost.bytes_per_run
    per_run = f"{shortest} bytes" if shortest == widest else f"{shortest} to {widest} bytes"
    return [
        ("strategy", [*few(_ignored(registers)), *([_TIES] if registers.is_simultaneous else [])]),
        ("states", [f"{cost.states}, arcs {cost.arcs}, letters {cost.letters}", *few(_remembered(registers))]),
        ("tests", _tests(registers)),
        *([("sets", moves)] if (moves := few(_moved(registers))) else []),
        ("merging", few(_merged(registers))),
        ("points", _backwards(plan)),
        ("work", [cost.work, *_growth(registers)]),
        (
            "memory",
            [
                f"bounded by the window: {per_run} per run; to list also {LINK_BYTES} bytes per event that a run binds",
                *(["each different text in a condition is kept once"] if any(registers.live) else []),
            ],
        ),
    ]


def _backwards(plan: Plan) -> list[str]:
    """Whether match points, and matches, can be found without following partial matches."""
    if plan.why_not_backwards is not None:
        return [f"found by following partial matches only: {plan.why_not_backwards}"]
    ends = dict.fromkeys(arcs_label(plan, path.arcs[-1]) for path in plan.paths)
    said = f"asked for alone, can be searched for backwards from {' or '.join(ends)}, which is done where it takes less"
    lists = "all matches can be listed so, too" + (", inside a load budget" if plan.is_count_window else "")
    return [said, lists] if plan.paths_are_all else [said]


def arcs_label(plan: Plan, arc: int) -> str:
    """The variable that an arc binds."""
    return plan.automaton.variables[plan.automaton.arcs[arc].label]


def _ignored(registers: RegisterAutomaton) -> Iterator[str]:
    if strategy := strategy_of(registers):
        yield f"{strategy}: {STRATEGIES[strategy]}"
        return
    for number, (name, state) in enumerate(zip(state_names(registers), registers.states, strict=True)):
        if number != START and not registers.has_words:
            yield f"{name}: ignores {ignore_text(registers, number)}"
        elif registers.steps_from[number] and number != START:
            ends = "; it ends at an event that goes before those it waits for" if state.after_in else ""
            yield f"{name}: {STRATEGIES[registers.strategy_of(state.gap)]}{ends}"


def few(lines: Iterable[str]) -> list[str]:
    """The first lines, and how many there are more."""
    every = list(dict.fromkeys(lines))
    more = len(every) - MOST_LINES
    return [*every[:MOST_LINES], f"... and {more} more"] if more > 0 else every


def _remembered(registers: RegisterAutomaton) -> Iterator[str]:
    for number, (name, live) in enumerate(zip(state_names(registers), registers.live, strict=True)):
        if number != START:
            texts = [register_text(register) for register in live]
            yield f"{name}: remembers {', '.join(texts) if texts else 'nothing of its events'}"


def _tests(registers: RegisterAutomaton) -> list[str]:
    asking = (letter for letter in registers.automaton.letters if letter.conditions or letter.unseen)
    per_event = [f"of an event: {letter_text(letter)}" for letter in asking]
    per_run = [f"of a run, {text}" for text in _on_arcs(registers)]
    return [*few(per_event), *few(per_run), *(f"of a complete match: {text}" for text in _complete(registers))]


def _on_arcs(registers: RegisterAutomaton) -> Iterator[str]:
    names = state_names(registers)
    for step in registers.steps:
        tests = list(step_tests(registers, step))
        if step.guard:
            tests.append(f"no {letters_text(registers.automaton, step.guard)} since")
        if tests:
            leads = "its end" if step.target is None else names[step.target]
            yield f"{names[step.source]} -> {leads}: {' and '.join(tests)}"
    for number, name in enumerate(names):
        if ends := end_tests(registers, number):
            yield f"which ends at {name}: {' and '.join(ends)}"


def _moved(registers: RegisterAutomaton) -> Iterator[str]:
    names = state_names(registers)
    for step in registers.steps:
        if step.target is not None and (moves := step_moves(registers, step)):
            yield f"of a run, {names[step.source]} -> {names[step.target]}: {', '.join(moves)}"


def _complete(registers: RegisterAutomaton) -> Iterator[str]:
    for condition in registers.filters:
        yield f"{to_text(condition.expression)}, because {_why_late(condition)}"
    inner = registers.automaton
    at_start = frozenset(j for arc in inner.arcs if arc.source == START for j in arc.guard)
    at_end = frozenset(j for final in inner.finals for j in final.guard)
    if at_start:
        yield f"no {_negated(registers, at_start)} before the first event, because the last event tells how far back"
    if at_end:
        windows = negation_windows(registers.query.pattern)
        is_own = not registers.query.selection.maximal and all(inner.letters[j].negated in windows for j in at_end)
        until = "that of the negation" if is_own else "its window"
        yield f"no {_negated(registers, at_end)} after the last event, so it waits until {until} has closed"
    for j in sorted((registers.late_guards & inner.guards) - at_start - at_end):
        conditions = registers.negations[str(inner.letters[j].negated)]
        tests = " and ".join(to_text(condition.expression) for condition in conditions)
        own = negation_windows(registers.query.pattern).get(str(inner.letters[j].negated))
        asked = [] if own is None else [f"within {to_text(own)}"]
        asked += [f"with {tests}"] if tests else []
        named = " ".join([f"no {_negated(registers, frozenset({j}))}", *asked])
        yield f"{named}, because only then all its events are known"


def _negated(registers: RegisterAutomaton, letters: frozenset[int]) -> str:
    """What the letters of guards exclude: of a sequence all its events."""
    inner = registers.automaton
    number = {letter.negated: j for j, letter in enumerate(inner.letters)}
    sequences = {names[-1]: names for names in negated_sequences(registers.query.pattern)}
    found = []
    for j in sorted(letters):
        names = sequences.get(str(inner.letters[j].negated), ())
        some = [number[name] for name in names] or [j]
        found.append(", then ".join(letter_text(inner.letters[i]) for i in some))
    return ", ".join(found)


def _why_late(condition: Condition) -> str:
    each = sorted(f"{name}[]" for name in condition.each)
    if len(each) > 1:
        return f"it compares all pairs of events of {' and '.join(each)}"
    return f"it is about every event of {each[0]}, and no one value sums them up" if each else "it needs them whole"


# --- merging ----------------------------------------------------------------------------------------------------


def _merged(registers: RegisterAutomaton) -> list[str]:
    states: dict[str, list[str]] = {}
    names, wishes = state_names(registers), preferences(registers)
    into: dict[int | None, list[Step]] = defaultdict(list)
    after: dict[int, list[Step]] = defaultdict(list)
    for step in registers.steps:
        into[step.target].append(step)
        after[step.source].append(step)
    for number, name in enumerate(names):
        if number != START:
            how = _merging(registers, number, into[number], after[number], wishes[number])
            states.setdefault("; ".join(how), []).append(name)
    return [f"{', '.join(some)}: {text}" for text, some in states.items()]


def _merging(
    registers: RegisterAutomaton, state: int, into: list[Step], after: list[Step], wishes: tuple[Better, ...]
) -> Iterator[str]:
    live = registers.live[state]
    if not after:
        yield "nothing comes after, no run stays"
        return
    values = _named(register for register in live if register != PLACE)
    carried = any(step.reads(step.after(register)) for register in live for step in into)
    one = f"one for all equal ({values})" if carried else "one"
    if not registers.is_passive(state):
        yield f"equal: of the runs that one event brings {one} stays; those of other events stay apart"
        return
    if PLACE in live:
        yield f"equal: of the runs that one event brings {one} stays; a negation asks when each came"
    else:
        yield f"equal, across events: one run stays{f' for all equal ({values})' if values else ''}"
        if keys := _keys(live, after):
            yield f"chain: an event meets only the runs whose {_named(keys)} it equals"
            return
    wanted = zip(live, wishes, strict=True)
    better = [f"{better} {register_text(register)}" for register, better in wanted if better != "equal"]
    if better and not registers.needs_filter:
        query = registers.query
        shows_match = not query.is_regex and (registers.automaton.errors > 0 or bool(query.outputs))
        asked = "bundles" if shows_match else "points"  # the best match of a point may be one of a worse run
        yield f"pareto, for {asked}: {', '.join(better).replace('high place', 'late place')} is better, worse runs go"


def _named(registers: Iterable[Register]) -> str:
    return ", ".join(register_text(register) for register in registers)


def _keys(live: Sequence[Register], steps: list[Step]) -> list[Register]:
    asked = [{found[0] for check in step.checks if (found := equality(check))} for step in steps]
    some = [found for found in asked if found]
    return [register for register in live if some and all(register in found for found in some)]


# --- work and advice --------------------------------------------------------------------------------------------


def _growth(registers: RegisterAutomaton) -> Iterator[str]:
    inner = range(1, len(registers.states))
    if all(registers.ignores[state] == NO_EVENT for state in inner):
        yield "runs: those of the last event only"
    elif not all(map(registers.is_passive, inner)):
        yield "runs: of each event in the window the one it began, more where an arc can be left in several ways"
    elif not any(registers.live):
        yield "runs: one per state and number of errors, because no condition looks back"
    else:
        yield "runs: before merging one for each choice of events in the window; what merging leaves, acep run tells"


def _runs_advice(plan: Plan) -> Iterator[str]:
    registers, query = plan.registers, plan.query
    assert registers is not None, "the runs engine has them"
    if not plan.why_runs:
        yield "the cells can run this query, and faster: leave the choice of the engine open"
    if not query.equivalences:
        yield "if all events of a match share an attribute, say so with [attribute]: a run meets only events of its own"
    for condition in registers.filters:
        text = to_text(condition.expression)
        yield f"{text} excludes no run on its way: compare with max(..), min(..), the first, the last or the one before"
    if registers.has_late_ends:
        yield "a negation at the end makes each match wait for one window; put it between two events if you can"
    elif registers.needs_list:
        what = "tested" if registers.needs_filter else "chosen among"
        yield f"points take as long as matches, because complete matches are {what}"
    if query.selection.maximal and not registers.has_late_ends:
        yield "MAXIMAL makes matches wait for one window, unless no event can follow their last one"


# --- queries in CEL ---------------------------------------------------------------------------------------

FORMAT = 1


def air_text(plan: Plan) -> str:
    """The automaton of a query in CEL as JSON, indented; the same for the same query.

    Raises
    ------
    UsageError
        ``ACEP-U075``: the query is not in CEL.

    Examples
    --------
    >>> from acep_approx import compile_query
    >>> state = json.loads(air_text(compile_query("FROM A NEXT{$2.x > $1.x} A WITHIN 5").plan))["states"][1]
    >>> [(edge["kind"], edge["conditions"], edge["unless"]) for edge in state["edges"]]
    [('filter', [], ['$2.x > $1.x']), ('forward', ['$2.x > $1.x'], [])]
    """
    return json.dumps(air(plan), indent=2, ensure_ascii=False)


def air(plan: Plan) -> dict[str, Any]:
    """The automaton of a query in CEL as plain values; see ``air_text``.

    In a set a query may ask for attributes that are known with the first events only: then ``streams`` and ``schema``
    are None, and there are no ``states``.
    """
    registers = plan.registers
    if registers is None or not plan.query.is_algebra:
        raise UsageError(
            "the format 'air' has the schemas and edges of queries in CEL, and this query is a pattern",
            code="ACEP-U075",
            hint="choose json (--format json), which has the automaton of any query",
        )
    window = plan.query.window
    is_known = (
        registers.query.pattern == plan.query.pattern
    )  # else it waits for attributes of streams that others publish
    states = places(registers) if is_known else []
    return {
        "air": FORMAT,
        "query": str(plan.query.pattern.text),  # type: ignore[union-attr]
        "publish": plan.query.publish,
        "window": None if window.unit == UNBOUNDED else {"amount": window.amount, "unit": window.unit},
        "fingerprint": plan.fingerprint(),
        "streams": {one: list(names) for one, names in streams_read(registers).items()} if is_known else None,
        "schema": list(states[-1].schema) if is_known else None,
        "states": [_state_data(registers, states, number) for number in range(len(states))],
    }


def _state_data(registers: RegisterAutomaton, states: list[Place], number: int) -> dict[str, Any]:
    state = states[number]
    steps = registers.leaving(number)
    return {
        "name": state.name,
        "operator": state.operator,
        "input": stream_of(registers, steps[0]) if steps else None,
        "schema": list(state.schema),
        "kept": list(state.kept),
        "bounds": list(thresholds(registers, number)) if state.operator is not None else [],
        "edges": [
            {
                "kind": edge.kind,
                "target": None if edge.target is None else states[edge.target].name,
                "conditions": list(edge.conditions),
                "unless": list(edge.unless),
                "sets": dict(edge.sets),
            }
            for edge in edges(registers, number)
        ],
    }


NO_STATES = 2
"""States of an automaton that remembers nothing: its start and its end."""
_NAMED = "(SELECT *, 1.05 * price AS bound FROM ..)"


def explain_algebra(plan: Plan) -> str:
    """The plan of a query in CEL in words.

    Parameters
    ----------
    plan : Plan

    Examples
    --------
    >>> from acep_approx import compile_query
    >>> text = explain_algebra(compile_query("FROM A NEXT{$2.x > $1.x} A WITHIN 5").plan)
    >>> [line.strip() for line in text.splitlines() if "unless" in line or "forward to end" in line]
    ['filter: stays there, unless $2.x > $1.x', 'forward to end: $2.x > $1.x; x_1 = $1.x, x = $2.x']
    """
    registers = plan.registers
    assert registers is not None, "the runs engine has them"
    states = places(registers)
    waiting = [state for state in states if state.operator is not None]
    streams = (f"{one}: {', '.join(names) or 'no attribute'}" for one, names in streams_read(registers).items())
    own = "which every operator asks to be the same: a run meets only events of its own"
    split = [] if plan.implied_key is None else [f"split by {plan.implied_key}, {own}"]
    sections = [
        ("engine", [f"{plan.engine} (exact)", "because the cells cannot answer CEL"]),
        ("window", [_window(plan)]),
        ("streams", [*few(streams), *split]),
        ("states", [line for number, state in enumerate(states) for line in _state(registers, states, number, state)]),
        *([("merging", ["equal runs that one event brings are one, which counts for all (times)"])] if waiting else []),
        ("work", [plan.cost.work, *_looked_at(registers, states)]),
        ("memory", [_memory(plan, registers)]),
    ]
    lines = [line for label, texts in sections for line in section(label, texts)]
    advice = (f"advice   {note}" for note in _advice(plan, registers, states))
    return printable("\n".join([to_text(plan.query), "", *lines, *advice]))


def _advice(plan: Plan, registers: RegisterAutomaton, states: list[Place]) -> Iterator[str]:
    yield from advice_on_windows(plan)
    for number, state in enumerate(states):
        if state.operator is None or thresholds(registers, number):
            continue
        for test in thresholds(registers, number, computed=True):
            yield (
                f"{test} is computed for each run at {state.name}: with a name for what it computes, as in "
                f"{_NAMED} {state.operator}, an event looks only at runs whose bound it passes"
            )


def advice_on_windows(plan: Plan) -> list[str]:
    """That nothing ends the runs of a query, where that is so, and what to do about it."""
    if not plan.is_unbounded:
        return []
    assert plan.registers is not None, "the runs engine has them"
    waiting = [state for state in places(plan.registers) if state.operator is not None]
    some = " and ".join(f"{state.name} for {state.waits_for}" for state in waiting)
    note = (
        f"there is no window: a run that waits at {some} stays until an event takes it on or ends it, for ever if none "
        "does, and memory grows; WITHIN 10 min behind FROM, or FILTER{DUR <= 10 min} around it all, lets it go"
    )
    return [note]


def _window(plan: Plan) -> str:
    if plan.is_unbounded:
        return "none: no run leaves because of its age"
    if plan.automaton.size == NO_STATES:
        return "none is needed: nothing waits"
    return f"results last at most {to_text(plan.query.window)}"


def _state(registers: RegisterAutomaton, states: list[Place], number: int, state: Place) -> Iterator[str]:
    holds = f"; remembers {', '.join(state.kept)}" if state.operator else ""
    if state.operator is not None:
        yield f"{state.name} ({state.operator}) waits for {state.waits_for}{holds}"
    elif number == START:
        yield "start"
    else:
        yield f"end: results have {', '.join(state.schema) or 'no attribute'}"
    steps = registers.leaving(number)
    for edge in edges(registers, number):
        takes = f"{stream_of(registers, steps[0])}" if number == START else ""
        yield f"  {_edge(registers, states, edge, takes)}"


def _edge(registers: RegisterAutomaton, states: list[Place], edge: Edge, takes: str) -> str:
    asked = " and ".join((*([takes] if takes else []), *edge.conditions))
    if edge.kind == "filter":
        return f"filter: stays there, unless {' and '.join(edge.unless) or 'one comes'}"
    if edge.kind == "kill":
        beside = f", unless {' and '.join(edge.unless)}" if edge.unless else ""
        return f"kill: ends at {asked or 'any event'}{beside}"
    assert edge.target is not None, "only a kill edge leads nowhere"
    sets = ", ".join(f"{one} = {value}" for one, value in kept_sets(registers, edge))
    target = states[edge.target].name
    name = f"rebind {target}" if edge.kind == "rebind" else f"forward to {target}"
    return f"{name}: {asked or 'any event'}{f'; {sets}' if sets else ''}"


def _looked_at(registers: RegisterAutomaton, states: list[Place]) -> Iterator[str]:
    for number, state in enumerate(states):
        if state.operator is not None:
            waits = " or ".join(thresholds(registers, number))
            beside = " of fractions" if computes(registers, number) else ""  # whole numbers may overflow
            which = f"only those that it can take by {waits}, if these are numbers{beside}" if waits else "all"
            yield f"of the runs at {state.name} an event of {state.waits_for} looks at {which}"


def _memory(plan: Plan, registers: RegisterAutomaton) -> str:
    if len(registers.states) == NO_STATES:
        return "none: nothing waits"
    shortest, widest = 8 * COLUMNS, 8 * (COLUMNS + max(map(len, registers.live)))
    sizes = f"{shortest} to {widest} bytes per run, no links between events"
    return f"{'not bounded' if plan.is_unbounded else 'bounded by the window'}: {sizes}"
