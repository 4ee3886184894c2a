"""SASE+ queries, and automata written by hand that say the same."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from tests.rich_worlds import Row


class Pair(NamedTuple):
    """A query and a machine: texts without the clauses that both have."""

    name: str
    query: str
    machine: str
    clauses: str
    where: str = ""
    """Of the machine alone."""


PAIRS = (
    Pair(
        "skip till any match",
        "SEQ(A a, B b)",
        "q0 -> q1 ON A a  q1 -> q2 ON B b  IGNORE q1  FINAL q2",
        "WITHIN 6",
    ),
    Pair(
        "Kleene plus",
        "SEQ(A a, B+ b[], C c)",
        "q0 -> q1 ON A a  q1 -> q2 ON B b  q2 -> q2 ON B b  q2 -> q3 ON C c  IGNORE q1, q2  FINAL q3",
        "WHERE [g] WITHIN 8",
    ),
    Pair(
        "a condition across events",
        "SEQ(A a, B b) WHERE b.x > a.x",
        "REGISTERS low INT  q0 -> q1 ON A a SET low = a.x  q1 -> q2 ON B b WHEN b.x > low  IGNORE q1  FINAL q2",
        "WITHIN 8",
    ),
    Pair(
        "partition contiguity",
        "SEQ(A a, B b) WHERE partition_contiguity { [g] }",
        "q0 -> q1 ON A a  q1 -> q2 ON B b  FINAL q2",
        "WITHIN 8",
        "WHERE [g]",
    ),
    Pair(
        "a rising run",
        "SEQ(A+ a[], B b) WHERE partition_contiguity { a[i].x >= a[i-1].x AND b.x < a[a.LEN].x }",
        """REGISTERS last INT  q0 -> q1 ON A a SET last = a.x  q1 -> q1 ON A a WHEN x >= last SET last = x
        q1 -> q2 ON B b WHEN x < last  FINAL q2""",
        "WITHIN 20",
    ),
    Pair(
        "strict contiguity",
        "SEQ(ANY a, ANY b, ANY c) WHERE strict_contiguity { c.y > a.y }",
        """REGISTERS low FLOAT  q0 -> q1 ON ANY a SET low = y  q1 -> q2 ON ANY b  q2 -> q3 ON ANY c WHEN c.y > low
        FINAL q3""",
        "WITHIN 8",
    ),
    Pair(
        "skip till next match",
        "SEQ(A a, B b, C c) WHERE skip_till_next_match { b.x > 0 }",
        """q0 -> q1 ON A a  q1 -> q2 ON B b WHEN x > 0  q2 -> q3 ON C c
        IGNORE q1 WHEN type != 'B' OR x IS NULL OR x <= 0  IGNORE q2 WHEN type != 'C'  FINAL q3""",
        "WITHIN 9",
    ),
    Pair(
        "skip till next match, with a condition across events",
        "SEQ(A a, B b, C c) WHERE skip_till_next_match { [g] AND b.x > a.x }",
        """REGISTERS low INT  q0 -> q1 ON A a SET low = x  q1 -> q2 ON B b WHEN x > low  q2 -> q3 ON C c
        IGNORE q1, q2 OTHERWISE  FINAL q3""",
        "WITHIN 9",
        "WHERE [g]",
    ),
    Pair(
        "an event may be missing",
        "SEQ(A a, B b, C c)",
        "q0 -> q1 ON A a  q1 -> q2 ON B b  q2 -> q3 ON C c  IGNORE q1, q2  FINAL q3",
        "WITHIN 6 ERRORS 1",
    ),
    Pair(
        "two may be missing, one is dear",
        "SEQ(A a, B+ b[], C c, ANY d)",
        """q0 -> q1 ON A a  q1 -> q2 ON B b  q2 -> q2 ON B b  q2 -> q3 ON C c  q3 -> q4 ON ANY d
        IGNORE q1, q2, q3  FINAL q4""",
        "WITHIN 5 ERRORS 2 WEIGHTS (b = 2)",
    ),
    Pair(
        "a choice",
        "SEQ(A a, (B b | C c))",
        "q0 -> q1 ON A a  q1 -> q2 ON B b  q1 -> q2 ON C c  IGNORE q1  FINAL q2",
        "WHERE [g] WITHIN 8 ERRORS 1",
    ),
    Pair(
        "an event that need not be there",
        "SEQ(A a, B? b, C c)",
        "q0 -> q1 ON A a  q1 -> q2 ON B b  q1 -> q2 EPSILON  q2 -> q3 ON C c  IGNORE q1, q2  FINAL q3",
        "WITHIN 6 ERRORS 1",
    ),
    Pair(
        "a sum",
        "SEQ(A a, B+ b[]) WHERE sum(b[].x) > 3",
        """REGISTERS total = 0  q0 -> q1 ON A a
        q1 -> q2 ON B b WHEN b.x IS NULL  q1 -> q2 ON B b WHEN b.x IS NOT NULL SET total = total + b.x
        q2 -> q2 ON B b WHEN b.x IS NULL  q2 -> q2 ON B b WHEN b.x IS NOT NULL SET total = total + b.x
        q2 -> q3 EPSILON WHEN total > 3  IGNORE q1, q2  FINAL q3""",
        "WITHIN 8",
    ),
    Pair(
        "none between",
        "SEQ(A a, ~(C n), B b)",
        "q0 -> q1 ON A a  q1 -> q2 ON B b  IGNORE q1 WHEN type != 'C'  FINAL q2",
        "WHERE [g] WITHIN 8",
    ),
    Pair(
        "none until the window closes",
        "SEQ(A a, B b, ~(C n))",
        "q0 -> q1 ON A a  q1 -> q2 ON B b  q2 -> q3 TIMEOUT  IGNORE q1  IGNORE q2 WHEN type != 'C'  FINAL q3",
        "WHERE [g] WITHIN 5",
    ),
    Pair(
        "none until the window of events closes",
        "SEQ(A a, B b, ~(C n))",
        """q0 -> q1 ON A a  q1 -> q2 ON B b  q2 -> q3 TIMEOUT
        IGNORE q1  IGNORE q2 ON A  IGNORE q2 ON B  IGNORE q2 ON D  FINAL q3""",
        "WITHIN 4 events",
    ),
    Pair(
        "two or three",
        "SEQ(A{2,3} a[], B b)",
        """q0 -> q1 ON A a  q1 -> q2 ON A a  q2 -> q3 ON A a  q2 -> q3 EPSILON  q3 -> q4 ON B b
        IGNORE q1, q2, q3  FINAL q4""",
        "WITHIN 5 events ERRORS 1",
    ),
    Pair(
        "values of what is bound",
        "SEQ(A a, B+ b[])",
        "q0 -> q1 ON A a  q1 -> q2 ON B b  q2 -> q2 ON B b  IGNORE q1, q2  FINAL q2",
        "WITHIN 6 RETURN a.x AS x, count(b[]) AS n, sum(b[].y) AS total, last(b[].s) AS word",
    ),
    Pair(
        "no overlap",
        "SEQ(A a, B b, C c)",
        "q0 -> q1 ON A a  q1 -> q2 ON B b  q2 -> q3 ON C c  IGNORE q1, q2  FINAL q3",
        "WITHIN 9 NON OVERLAP",
    ),
)


def stream_of(seed: int, size: int) -> tuple[Row, ...]:
    """Events of few types and keys, so that most queries find several matches."""
    dice, tick, rows = Random(seed), 0, []
    for _ in range(size):
        tick += dice.choice((0, 1, 1, 1, 2))
        values = {"x": dice.choice((0, 1, 2, 3, None)), "y": dice.choice((0.5, 1.0, 2.5, None))}
        names = {"type": dice.choice("AAABBBCCD"), "s": dice.choice(("u", "v", None)), "g": dice.choice("ppq")}
        rows.append({"ts": tick, **values, **names})
    return tuple(rows)


def texts(pair: Pair) -> tuple[str, str]:
    """The query and the machine, with all their clauses."""
    return f"PATTERN {pair.query} {pair.clauses}", f"PATTERN AUTOMATON ({pair.machine}) {pair.where} {pair.clauses}"
