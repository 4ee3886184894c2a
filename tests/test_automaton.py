"""The compiled form: what it is made of, that it is a value, how it is drawn, where it stops."""

from __future__ import annotations

import json
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest

from acep_approx import LimitError, UnsupportedError, UsageError, compile_query
from acep_approx.automaton.determinize import Determinised
from acep_approx.automaton.draw import draw
from acep_approx.automaton.letters import LetterReader

ROOT = Path(__file__).parent.parent
EXAMPLE_2 = "a(b|c)db WITHIN 5 ERRORS 2"


def automaton(text: str):
    """The automaton of a query."""
    return compile_query(text).automaton


# --- structure -------------------------------------------------------------------------------------------------


def test_a_sequence_is_a_chain() -> None:
    """One state per variable and the start; with k = 1 also the arcs that skip one letter."""
    plain = automaton("abcde WITHIN 5")
    assert (plain.size, len(plain.arcs), [f.cost for f in plain.finals]) == (6, 5, [0])
    loose = automaton("abcde WITHIN 5 ERRORS 1")
    assert sorted(arc.cost for arc in loose.arcs) == [0] * 5 + [1] * 4
    assert sorted(f.cost for f in loose.finals) == [0, 1]


def test_weights_are_costs() -> None:
    """Skipping b costs 2: one arc at k = 2, none at k = 1."""
    arcs = automaton("abc WITHIN 5 ERRORS 2 WEIGHTS (b = 2)").arcs
    assert {arc.skipped: arc.cost for arc in arcs if arc.cost} == {("a",): 1, ("b",): 2}
    assert all("b" not in arc.skipped for arc in automaton("abc WITHIN 5 ERRORS 1 WEIGHTS (b = 2)").arcs)


@pytest.mark.parametrize("pattern", ["a(b*)*c", "a((b*)*)*c", "a(b?)+c", "a((b|d*)+)*c", "a(b*d*)*c"])
def test_circles_of_epsilon_moves_end(pattern: str) -> None:
    """The published recursion would not."""
    assert automaton(f"{pattern} WITHIN 5 ERRORS 1").size <= 6


def test_states_of_equal_future_are_one() -> None:
    """Example 1 of Li and Ge: 39 positions where x2+ is written as xx(x)*, 17 states."""
    assert automaton("(Sa(b|d|w|r)E){2,}(Sa(g|e|u)E){2,} WITHIN 5").size == 17
    assert automaton("(ab|cb)d WITHIN 5").size == 4
    assert automaton("PATTERN SEQ((A a | B b), C c) WITHIN 5").size == 3
    assert automaton("PATTERN (A a, C c | B b, C d) WITHIN 5").size == 4, "c and d are told apart, their futures not"


def test_equal_letters_are_one_letter() -> None:
    """Distinct conditions only; each is evaluated once per batch."""
    query = "PATTERN SEQ(A a, A b, B c) WHERE a.x > 1 AND b.x > 1 AND c.x > 1 WITHIN 5"
    letters = automaton(query).letters
    assert len(letters) == 2
    assert len(LetterReader(letters).conditions) == 1


def test_a_negation_is_a_guard_on_ways_that_skip_nothing() -> None:
    """Beside a missing event a negation is void."""
    compiled = automaton("PATTERN SEQ(A a, ~(X x), B b, C c) WITHIN 5 ERRORS 1")
    guarded = [arc for arc in compiled.arcs if arc.guard]
    assert [(compiled.names[arc.source], compiled.names[arc.target], arc.cost) for arc in guarded] == [("a", "b", 0)]
    assert compiled.guards == {j for j, letter in enumerate(compiled.letters) if letter.type == "X"}


def test_determinised_sizes_are_those_known() -> None:
    """k = 0..2, over classes of one letter each; the minimal automata have as many, the last one 10."""
    known = {"abcde": (6, 10, 13), "a(b|c)db": (5, 8, 11)}
    for pattern, sizes in known.items():
        found = []
        for errors in range(3):
            subset = Determinised(automaton(f"{pattern} WITHIN 5 ERRORS {errors}"))
            subset.add_classes([1 << j for j in range(len(subset.automaton.letters))])
            found.append(len(subset))
        assert tuple(found) == sizes


# --- a value ---------------------------------------------------------------------------------------------------


def test_it_is_a_value() -> None:
    """Equal, hashable, picklable, immutable."""
    one, other = automaton(EXAMPLE_2), automaton("(a(b|c)db)   WITHIN 5 ERRORS 2")
    assert one == other == pickle.loads(pickle.dumps(one))
    assert len({one, other}) == 1
    with pytest.raises(AttributeError):
        one.size = 3  # type: ignore[misc]


def test_the_fingerprint_does_not_depend_on_the_process() -> None:
    """Same digits under any hash seed; other digits for another meaning."""
    code = (
        "from acep_approx import compile_query; "
        "print(compile_query('PATTERN SEQ(A a, ~(X x | Y y), B b) WITHIN 5 ERRORS 1').automaton.fingerprint())"
    )
    prints = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(prints) == 1
    texts = ["ab WITHIN 5", "ab WITHIN 5 ERRORS 1", "ac WITHIN 5", "a+b WITHIN 5", "ab WITHIN 5 DEFINE a AS x > 1"]
    assert len({automaton(text).fingerprint() for text in texts}) == len(texts)


# --- drawings --------------------------------------------------------------------------------------------------


def test_drawings_show_every_state_and_arc() -> None:
    """Mermaid, DOT and JSON from one structure."""
    compiled = automaton(EXAMPLE_2)
    mermaid, dot, as_json = (draw(compiled, name) for name in ("mermaid", "dot", "json"))
    assert len(re.findall(r"^  s\d+ -", mermaid, re.M)) == len(compiled.arcs)
    assert len(re.findall(r"^  s\d+ -> s\d+", dot, re.M)) == len(compiled.arcs)
    assert len(re.findall(r"^  s\d+ \[label", dot, re.M)) == compiled.size
    value = json.loads(as_json)
    assert (len(value["states"]), len(value["arcs"])) == (compiled.size, len(compiled.arcs))
    assert value["fingerprint"] == compiled.fingerprint()


def test_drawings_escape_what_users_write() -> None:
    """Quotes and angle brackets in conditions cannot break a diagram."""
    compiled = automaton("PATTERN SEQ(A a, B b) WHERE a.x <> 'say \"hi\"' WITHIN 5")
    assert '\\"hi\\"' in draw(compiled, "dot")
    assert "#quot;hi#quot;" in draw(compiled, "mermaid")
    assert "<>" not in draw(compiled, "mermaid")


def test_a_query_explains_itself() -> None:
    """Engine, reasons, sizes, advice."""
    query = compile_query("PATTERN SEQ(A a, B b) WHERE [k] WITHIN 5")
    text = query.explain()
    for piece in ("engine   cells", "because", "states   3", "bytes per key", "[k]"):
        assert piece in text
    assert "advice" in compile_query("ab WITHIN 5").explain()


# --- limits and refusals ---------------------------------------------------------------------------------------


def test_limits_are_stated() -> None:
    """Each with the number given and the number allowed."""
    letters = ", ".join(f"T{i} v{i}" for i in range(65))
    cases = {
        f"PATTERN SEQ({letters}) WITHIN 5": ("ACEP-Q903", 64),
        "(a?){999}b WITHIN 5": ("ACEP-Q904", 20_000),
    }
    for text, (code, limit) in cases.items():
        with pytest.raises(LimitError) as caught:
            compile_query(text)
        assert (caught.value.code, caught.value.limit) == (code, limit)
        assert caught.value.given > limit


@pytest.mark.parametrize(
    ("text", "piece"),
    [
        ("PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 5", "a.x < b.x, which one event alone"),
        ("PATTERN SEQ(A+ a[], B b) WHERE a[i].x > a[i-1].x WITHIN 5", "one event alone"),
        ("PATTERN SEQ(A+ a[], B b) WHERE a[1].x > 3 WITHIN 5", "one event alone"),
        ("PATTERN SEQ(A+ a[], B b) WHERE avg(a[].x) > 3 WITHIN 5", "one event alone"),
        ("PATTERN SEQ(A a, B b) WHERE skip_till_next_match { a.x > 1 } WITHIN 5", "skip_till_next_match"),
        ("PATTERN SEQ(A a, B b) WHERE strict_contiguity { a.x > 1 } WITHIN 5", "strict_contiguity"),
        ("PATTERN SEQ(A a, B b) WHERE partition_contiguity { [x] } WITHIN 5", "partition_contiguity"),
        ("PATTERN SEQ(~(X x), A a) WITHIN 5", "before the first"),
        ("PATTERN SEQ(A a, ~(X x)) WITHIN 5", "after the last"),
        ("PATTERN SEQ(A a, ~(X x), B b) WHERE x.v = a.v WITHIN 5", "one event alone"),
        ("PATTERN SEQ(A a, B b) WITHIN 5 NON OVERLAP", "NON OVERLAP"),
        ("a{30} WITHIN 5 ERRORS 16", "ERRORS 16"),
    ],
)
def test_what_the_cells_cannot_do_they_refuse(text: str, piece: str) -> None:
    """The query is right; the message says what the cells cannot do. The runs can."""
    with pytest.raises(UnsupportedError, match=piece) as caught:
        compile_query(text, engine="cells")
    assert caught.value.code == "ACEP-Q900"
    assert caught.value.exit_code == 3
    assert "runs engine" in str(caught.value)
    plan = compile_query(text).plan
    assert plan.engine == "runs"
    assert any(piece in why for why in plan.why_runs)


def test_no_such_engine() -> None:
    """The cells run what they can, the runs everything."""
    assert [compile_query("ab WITHIN 5", engine=name).plan.engine for name in ("auto", "cells", "runs")] == [
        "cells",
        "cells",
        "runs",
    ]
    with pytest.raises(UsageError, match="auto, cells or runs") as caught:
        compile_query("ab WITHIN 5", engine="fast")
    assert caught.value.code == "ACEP-U005"
