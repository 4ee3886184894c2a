"""Words for gaps: examples by hand, and random worlds against brute force."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

import pytest

from acep_approx import QueryError, compile_query
from acep_approx.automaton import compile as compiling
from acep_approx.automaton import registers
from acep_approx.automaton.resolve import dynamic_conditions
from acep_approx.automaton.states import EVERYTHING
from acep_approx.query.parser import parse
from acep_approx.query.printer import to_text
from acep_approx.query.shape import without_gap_words
from acep_approx.query.syntax import GAP_WORDS, Strategy
from tests.cases import cases
from tests.gap_worlds import everywhere, gap_world, only_any
from tests.match_tables import bindings, reports
from tests.naive_partial import expected_partials
from tests.noticing import first_noticed
from tests.rich_worlds import Dice, RichWorld, rich_world, world_of
from tests.runs_engine import MERGES, agrees, agrees_in_any_split, chooses_as_brute_force, compiled
from tests.smaller_worlds import holds_for
from tests.streams import rows_of
from tests.tied_worlds import simultaneous, tied


def rows_found(pattern: str, text: str, clauses: str = "") -> list[list[int]]:
    """The rows of each match, over a stream as text: one letter for each event."""
    stream = rows_of(", ".join(f"{i} {letter}" for i, letter in enumerate(text)))
    query = compile_query(f"PATTERN {pattern} {clauses} WITHIN 99")
    return sorted([row for row, _ in bound] for bound in bindings(query.match(stream).to_arrow(), query.syntax))


# --- by hand ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "stream", "expected"),
    [
        ("SEQ(A a, STRICT B b)", "ABB", [[0, 1]]),
        ("SEQ(A a, STRICT B b)", "AXB", []),
        ("SEQ(A a, NEXT B b)", "AXBB", [[0, 2]]),
        ("SEQ(A a, ANY B b)", "AXBB", [[0, 2], [0, 3]]),
        ("SEQ(A a, NEXT B b, STRICT C c)", "AXBCC", [[0, 2, 3]]),
        ("SEQ(A a, NEXT B b, STRICT C c)", "ABXCBC", []),  # the first B counts, and nothing but a C may follow it
        ("SEQ(A a, B b, STRICT C c)", "ABXCBC", [[0, 4, 5]]),
        # a word before a repetition is about its first event, the one behind its quantifier about the others
        ("SEQ(A a, STRICT B+ b[])", "ABXB", [[0, 1], [0, 1, 3]]),
        ("SEQ(A a, B+ STRICT b[])", "ABXBB", [[0, 1], [0, 3], [0, 3, 4], [0, 4]]),
        ("SEQ(A a, (STRICT B b)+)", "ABBXB", [[0, 1], [0, 1, 2]]),
        ("SEQ(A a, STRICT B+ NEXT b[], STRICT C c)", "ABXBC", [[0, 1, 3, 4]]),
        ("(A a, STRICT B b)+ NEXT", "ABXAB", [[0, 1], [0, 1, 3, 4], [3, 4]]),
        ("(A a, B b)+ STRICT", "ABAB", [[0, 1], [0, 1, 2, 3], [0, 3], [2, 3]]),
        # a word before a group is about its first event, whichever that is; a word in it counts more
        ("SEQ(A a, STRICT (B? b, C c))", "ACC", [[0, 1]]),
        ("SEQ(A a, STRICT (B? b, C c))", "ABXC", [[0, 1, 3]]),
        ("SEQ(A a, STRICT (B? b), C c)", "AXC", [[0, 2]]),
        ("SEQ(A a, STRICT (NEXT B b | C c))", "AXBC", [[0, 2]]),
        ("SEQ(A a, (NEXT B b | ANY C c))", "ACCB", [[0, 1], [0, 2], [0, 3]]),
        # the word behind the quantifier counts between rounds, whatever stands in the part
        ("(STRICT A a, B b)+ NEXT", "ABXAB", [[0, 1], [0, 1, 3, 4], [0, 4], [3, 4]]),
        # what a gap that is NEXT cannot pass over is what a gap that is NEXT could take
        ("SEQ(A a, NEXT B+ ANY b[], NEXT C c)", "ABBC", [[0, 1, 2, 3], [0, 1, 3]]),
        ("SEQ(A a, NEXT B+ NEXT b[], ANY C c)", "ABCBC", [[0, 1, 2], [0, 1, 3, 4], [0, 1, 4]]),
        # greedy: what follows neither takes nor passes over what could be another round
        ("SEQ(A a, NEXT B+ NEXT b[], C c)", "ABBC", [[0, 1, 2, 3], [0, 1, 3]]),
        ("SEQ(A a, NEXT B+ NEXT GREEDY b[], C c)", "ABBC", [[0, 1, 2, 3]]),
        ("SEQ(A a, B+ GREEDY b[], C c)", "ABBC", [[0, 1, 2, 3], [0, 2, 3]]),
        ("SEQ(A a, B* GREEDY b[], C c)", "ABC", [[0, 1, 2]]),
        ("SEQ(A a, B? GREEDY b, C c)", "AXBC", [[0, 2, 3]]),
        ("SEQ(A a, B{1,2} GREEDY b[], B c)", "ABBB", [[0, 1, 2, 3]]),
        ("SEQ(A a, ANY+ NEXT GREEDY b[], C c)", "ABC", []),  # the last event is a round, too
        ("SEQ(A a, B+ STRICT GREEDY b[], C c)", "ABBXBC", [[0, 1, 2, 5], [0, 2, 5], [0, 4, 5]]),
        ("(A a, B+ NEXT GREEDY b[], C c)+ NEXT", "ABBC", [[0, 1, 2, 3], [0, 2, 3]]),
        # until: with such an event, or after it, no further round begins
        ("SEQ(A a, B+ UNTIL (S s) b[])", "ABSB", [[0, 1], [0, 3]]),
        ("SEQ(A a, STRICT B+ UNTIL (S s) b[], C c)", "ABBSBC", [[0, 1, 2, 5], [0, 1, 5]]),
        ("SEQ(A a, STRICT ANY+ UNTIL (S s | T t) b[])", "ABXTX", [[0, 1], [0, 1, 2]]),
        ("SEQ(A a, B{2} UNTIL (S s) b[])", "ABSBB", [[0, 3, 4]]),
        ("(A a, STRICT B b)+ UNTIL (S s)", "ABABSAB", [[0, 1], [0, 1, 2, 3], [2, 3], [5, 6]]),
        # a negation of the next event: what comes later does not count
        ("SEQ(A a, ~(STRICT B n), C c)", "ABC", []),
        ("SEQ(A a, ~(STRICT B n), C c)", "AXBC", [[0, 3]]),
        ("SEQ(A a, ~(STRICT (B n | D d)), C c)", "ADC", []),
        ("SEQ(A a, ~(STRICT B n), NEXT ANY c)", "ABC", [[0, 1]]),  # it may be bound
        ("SEQ((A a, ~(STRICT B n))+ NEXT, C c)", "AABAC", [[0, 4], [3, 4]]),
        # reluctant: a round neither takes nor passes over what could follow
        ("SEQ(A a, NEXT B+ RELUCTANT b[], C c)", "ABCBC", [[0, 1, 2], [0, 1, 4]]),
        ("SEQ(A a, NEXT B* RELUCTANT b[], C c)", "ACBC", [[0, 1], [0, 3]]),
        ("SEQ(A a, NEXT ANY+ RELUCTANT b[], NEXT C c)", "ABXCC", [[0, 1, 2, 3], [0, 1, 3]]),
    ],
)
def test_each_word(pattern: str, stream: str, expected: list[list[int]]) -> None:
    assert rows_found(pattern, stream) == expected


@pytest.mark.parametrize(("word", "expected"), [("STRICT", []), ("CONTIGUOUS", [[0, 2]])])
def test_strict_is_about_the_stream_and_contiguous_about_the_partition(word: str, expected: list[list[int]]) -> None:
    rows = [{"ts": i, "type": kind, "g": g} for i, (kind, g) in enumerate([("A", "p"), ("A", "q"), ("B", "p")])]
    query = compile_query(f"PATTERN SEQ(A a, {word} B b) WHERE [g] WITHIN 9")
    assert [[row for row, _ in bound] for bound in bindings(query.match(rows).to_arrow(), query.syntax)] == expected


def test_a_missing_event_leaves_the_word_of_the_event_behind_it() -> None:
    clauses = "WITHIN 99 ERRORS 1 WEIGHTS (a = 2, c = 2)"
    for pattern, expected in (("SEQ(A a, STRICT B b, C c)", 1), ("SEQ(A a, B b, STRICT C c)", 0)):
        assert len(compile_query(f"PATTERN {pattern} {clauses}").match(rows_of("0 A, 1 X, 2 C"))) == expected


@pytest.mark.parametrize(
    "pattern",
    ["SEQ(A a, STRICT b)", "SEQ(A a, NEXT n)", "SEQ(A a, ANY b)", "SEQ(ANY+ a[], NEXT+ n[])", "(STRICT s | ANY a)"],
)
def test_what_was_a_type_and_a_variable_is_that(pattern: str) -> None:
    query = parse(f"PATTERN {pattern} WITHIN 5")
    assert without_gap_words(query.pattern) == query.pattern
    assert to_text(query.pattern) == pattern


@pytest.mark.parametrize(
    ("pattern", "code"),
    [
        ("SEQ(STRICT A a, B b)", "ACEP-Q091"),
        ("SEQ((NEXT A a | B b), C c)", "ACEP-Q091"),
        ("SEQ(~(N n), ANY A a, B b)", "ACEP-Q091"),
        ("SEQ(A a, STRICT (~(N n)), B b)", "ACEP-Q092"),
        ("SEQ(A a, B? STRICT b)", "ACEP-Q093"),
        ("SEQ(A a, (B b){1} NEXT)", "ACEP-Q093"),
        ("SEQ(A a, STRICT B b, CONTIGUOUS C c)", "ACEP-Q920"),
        ("SEQ(A a, B+ GREEDY b[])", "ACEP-Q921"),
        ("SEQ(A a, B+ RELUCTANT b[], C? c)", "ACEP-Q921"),
        ("SEQ(A a, (~(N n), B b)+ GREEDY, C c)", "ACEP-Q922"),
        ("SEQ(A a, B+ GREEDY UNTIL (S s) b[], C c)", "ACEP-Q922"),
        ("SEQ(A a, (B? b){0,2} GREEDY, C c)", "ACEP-Q922"),
        ("SEQ(A a, B? UNTIL (S s) b)", "ACEP-Q093"),
        ("SEQ(A a, ~(STRICT B n))", "ACEP-Q095"),
        ("SEQ(~(STRICT B n), A a)", "ACEP-Q095"),
        ("SEQ(A a, ~(NEXT B n), C c)", "ACEP-Q012"),
        ("SEQ(A a, ~(STRICT B n), CONTIGUOUS C c)", "ACEP-Q920"),
        ("SEQ(A a, B+ UNTIL (S+ s[]) b[])", "ACEP-Q012"),
    ],
)
def test_what_says_nothing_is_refused(pattern: str, code: str) -> None:
    with pytest.raises(QueryError) as caught:
        compile_query(f"PATTERN {pattern} WHERE [g] WITHIN 5")
    assert caught.value.code == code
    assert caught.value.hint


def test_what_ends_a_repetition_has_conditions_of_its_own() -> None:
    found = compile_query("PATTERN SEQ(A a, STRICT B+ UNTIL (S s) b[]) WHERE s.x > 3 WITHIN 9")
    assert len(found.match(rows_of("0 A 1, 1 B 1, 2 S 1, 3 B 1, 4 S 5, 5 B 1"))) == 2
    with pytest.raises(QueryError, match="ACEP-Q094"):
        compile_query("PATTERN SEQ(A a, B+ UNTIL (S s) b[]) WHERE s.x > a.x WITHIN 9")


def test_maximal_is_refused_only_where_a_loop_may_pass_over_any_event() -> None:
    condition = "WHERE b[i].x > a.x WITHIN 5 MAXIMAL"
    assert compile_query(f"PATTERN SEQ(A a, B+ NEXT b[], ANY C c) {condition}").plan.engine == "runs"
    with pytest.raises(QueryError, match="ACEP-Q919"):
        compile_query(f"PATTERN SEQ(A a, NEXT B+ b[], NEXT C c) {condition}")


def test_the_cells_run_what_passes_over_any_event() -> None:
    assert compile_query("PATTERN SEQ(A a, ANY B+ ANY b[]) WITHIN 5").plan.engine == "cells"
    query = compile_query("PATTERN SEQ(A a, ANY B b, NEXT C c) WITHIN 5")
    assert (query.plan.engine, query.plan.why_runs) == ("runs", ("NEXT",))


def test_explain_says_what_each_state_passes_over() -> None:
    said = compile_query("PATTERN SEQ(A a, STRICT B b, (NEXT C c | ANY D d)) WITHIN 5").explain()
    assert "a: a run ends at an event of the stream" in said
    assert "b before NEXT: a run passes over only" in said
    assert "b before ANY: any event" in said


# --- as by brute force ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", range(4))
def test_listed_counted_and_detected_as_by_brute_force(part: int) -> None:
    """However runs are merged; words mixed with errors, negations, conditions across events and strategies."""
    for number in range(cases(3000, 47))[part::4]:
        holds_for(gap_world(number), agrees)


def in_any_split(number: int) -> Callable[[RichWorld], None]:
    """A check whose cuts and restarts are the same for each world that it is given."""
    merge = MERGES[number % len(MERGES)]
    return lambda world: agrees_in_any_split(world, merge, Random(number))


@pytest.mark.parametrize("part", range(2))
def test_any_split_and_any_restart_give_the_same(part: int) -> None:
    for number in range(cases(1500, 31))[part::2]:
        holds_for(gap_world(10_000 + number), in_any_split(number))


@pytest.mark.parametrize("part", range(2))
def test_what_is_listed(part: int) -> None:
    """MAXIMAL, and the clauses that go by the order of matches."""
    for number in range(cases(1000, 33))[part::2]:
        merge, world = MERGES[number % len(MERGES)], gap_world(20_000 + number, chooses=True)
        holds_for(world, partial(chooses_as_brute_force, merge=merge, dice=Random(number)))


def tied_gap_world(number: int) -> RichWorld:
    """A world with words, and events at one time that cannot follow one another."""
    world, dice = gap_world(30_000 + number), Dice(Random(number))
    return world_of(simultaneous(world.query, dice), tied(world.rows, dice))


def test_events_at_one_time() -> None:
    for number in range(cases(1000, 33)):
        holds_for(tied_gap_world(number), agrees)
        holds_for(tied_gap_world(number), in_any_split(number))


def test_partial_matches() -> None:
    """How far each event came: `broken` only where the neighbour had to be the next event."""

    def check(world: RichWorld) -> None:
        query = compiled(world)
        if query is None or query.plan.registers.filters:
            return
        if any(one.expression not in world.query.predicates for one in dynamic_conditions(world.query)):
            return  # half of a BETWEEN may be known sooner than the whole
        found = reports(query.match(world.table()).partial(), world.query)
        expected = expected_partials(world.query, world.rows)
        assert found.keys() == expected.keys()
        for first, report in found.items():
            assert report in expected[first], first

    for number in range(cases(500, 33)):
        holds_for(gap_world(40_000 + number), check)


def test_compressed_matches_spell_what_is_listed() -> None:
    for number in range(cases(300, 30)):
        world = gap_world(50_000 + number)
        query = compiled(world)
        if query is not None and not query.plan.registers.needs_filter:
            found = query.match(world.table()).compressed().expand()
            assert bindings(found, world.query) == world.expected(), world.text


@pytest.mark.parametrize("strategy", GAP_WORDS.values())
def test_one_word_everywhere_is_that_strategy(strategy: Strategy) -> None:
    """Whatever the strategy of the query is then."""
    for number in range(cases(300, 30)):
        world = rich_world(Random(number), chooses=False)
        if world.query.is_regex:
            continue
        plain = world_of(replace(world.query, strategy=strategy), world.rows)
        others = [other for other in GAP_WORDS.values() if other != strategy]
        pattern = everywhere(world.query.pattern, strategy)
        worded = world_of(replace(world.query, strategy=others[number % 3], pattern=pattern), world.rows)
        assert plain.expected() == worded.expected(), worded.text
        found = compiled(worded), compiled(plain)
        if None not in found:
            one, other = (query.match(world.table()).to_arrow().to_pylist() for query in found if query)
            assert one == other, worded.text


def test_the_cells_do_what_the_runs_do() -> None:
    """Where all words are ANY."""
    seen = 0
    for number in range(cases(1000, 79)):
        query = only_any(gap_world(60_000 + number).query)
        world = world_of(query, gap_world(60_000 + number).rows)
        try:
            cells = compile_query(world.text, engine="cells")
        except QueryError:
            continue
        seen += 1
        assert bindings(cells.match(world.table()).to_arrow(), world.query) == world.expected(), world.text
    assert seen


# --- wrong variants ---------------------------------------------------------------------------------------------------


def outer_words_win(monkeypatch: pytest.MonkeyPatch) -> None:
    """The outermost word around an event counts."""
    real = compiling.word_of

    def word_of(graph: Any, origin: int, target: int, again: int) -> Strategy | None:
        entered = [number for number in graph.inside[target] if number not in graph.inside[origin]]
        found = [graph.before[number] for number in entered if number in graph.before]
        return found[0] if found and not again else real(graph, origin, target, again)

    monkeypatch.setattr(compiling, "word_of", word_of)


def rounds_have_no_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands behind a quantifier plays no role."""
    real = compiling.word_of

    def word_of(graph: Any, origin: int, target: int, again: int) -> Strategy | None:
        return real(replace(graph, between={}), origin, target, again)

    monkeypatch.setattr(compiling, "word_of", word_of)


def rounds_enter_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The word of a part counts only before the first round."""
    real = compiling.word_of

    def word_of(graph: Any, origin: int, target: int, again: int) -> Strategy | None:
        return real(graph, origin, target, again if again in graph.between else 0)

    monkeypatch.setattr(compiling, "word_of", word_of)


def takes_hide_in_other_gaps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where another round could begin over any gap, nothing else keeps an event from being passed over."""
    real = registers._Compiler._step

    def step(self: Any, source: int, state: Any, *args: Any) -> Any:
        right = real(self, source, state, *args)
        arc = self.automaton.arcs[right.arc]
        arcs = self.automaton.arcs
        taken = {source for source, _ in self.is_taken} | {a.source for a in arcs if a.source == a.target}
        return replace(right, inhibits=right.inhibits and (arc.again or arc.source not in taken))

    monkeypatch.setattr(registers._Compiler, "_step", step)


def what_follows_passes_over_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes first is not taken by what waits, but it may be passed over."""
    real = registers._Compiler._kills
    others = lambda *args: (step for step in real(*args) if step.binding.variable is None)  # noqa: E731
    monkeypatch.setattr(registers._Compiler, "_kills", others)


def what_ends_a_repetition_is_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """An event of UNTIL ends the repetition behind it, but may be a round itself."""
    monkeypatch.setattr(compiling._Letters, "until", lambda self, atom, _: self.index(atom))


def what_follows_takes_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes first is not passed over by what waits, but it may be taken."""
    monkeypatch.setattr(registers._Compiler, "_not_open", lambda *_: [])


def rounds_are_near(monkeypatch: pytest.MonkeyPatch) -> None:
    """What could be a round over a gap in which nothing may lie is one wherever it comes."""
    monkeypatch.setattr(registers._Compiler, "_is_near", lambda *_: [])


def other_states_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a gap that is NEXT what waits for others may pass over events that only they could take."""
    monkeypatch.setattr(registers._Compiler, "_beside", lambda *_: [])


def any_event_breaks_a_negation_of_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """A negation of the next event is one of all."""
    real = registers._Compiler._kills
    everywhere = lambda one: replace(one, checks=())  # noqa: E731
    monkeypatch.setattr(registers._Compiler, "_kills", lambda *args: map(everywhere, real(*args)))


def contiguous_gaps_pass_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gap in which nothing may lie is one in which anything may."""
    monkeypatch.setattr(registers, "IGNORES", dict.fromkeys(registers.IGNORES, EVERYTHING))


WRONG = {
    outer_words_win: 47,
    rounds_have_no_word: 94,
    rounds_enter_nothing: 161,
    takes_hide_in_other_gaps: 445,
    any_event_breaks_a_negation_of_the_next: 38,
    contiguous_gaps_pass_over: 12,
    what_follows_passes_over_rounds: 188,
    what_ends_a_repetition_is_a_round: 44,
    what_follows_takes_rounds: 64,
    rounds_are_near: 282,
    other_states_do_not_count: 426,
}
"""Wrong variants, and worlds that show them."""


@pytest.mark.parametrize("mutant", WRONG)
def test_a_wrong_variant_is_noticed(mutant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    assert first_noticed(lambda number: agrees(gap_world(number)), 3000, WRONG[mutant]) >= 0
