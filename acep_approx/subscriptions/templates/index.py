"""The index over constants: which queries an event may begin a run of, without a look at all others.

An equality is looked up in a hash table. Where a letter asks for none, thresholds are sorted: an event passes a prefix
or a suffix of them, and of several comparisons the one is taken that the event passes the fewest of.

Source: Demers et al., CIDR 2007, section 4.3.3 (indexes over static predicates). Deviation: there a range is looked up
in a tree; sorted arrays are made anew when queries have changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from acep_approx.arrays import Bools, Ints
from acep_approx.kernels import pairs as kernel
from acep_approx.query.syntax import Expression
from acep_approx.subscriptions.templates.template import Test

ORDERED = {
    "<": kernel.IS_BELOW,
    "<=": kernel.IS_BELOW,
    ">": kernel.IS_ABOVE,
    ">=": kernel.IS_ABOVE,
}


@dataclass(frozen=True)
class Constants:
    """The queries that there are: their rows, the constants of a test, and the kind of what a test asks of an event."""

    rows: Ints
    words: Callable[[Test], Ints]
    kind: Callable[[Expression], str]


@dataclass(frozen=True)
class Index:
    """The paths from events to queries, as ``kernels.pairs`` reads them.

    ``equal``: per letter that can begin a run the equality that it is looked up by, and the constants that there are;
    None where a letter has no such equality.
    """

    paths: Ints
    entries: Ints
    equal: tuple[tuple[Test, Ints], ...] | None

    @classmethod
    def of(cls, tests: Mapping[int, Sequence[Test]], owns: Sequence[Expression], of: Constants) -> Index:
        """Make the index.

        Parameters
        ----------
        tests : mapping of int to sequence of Test
            Of the letters that can begin a run.
        owns : sequence of Expression
            What tests ask of events, in the order of their columns.
        of : Constants

        Complexity: O(queries x log queries) for each test that it uses.
        """
        parts: list[Ints] = []
        paths: list[int] = []
        equal: list[tuple[Test, Ints]] = []
        for letter, asked in tests.items():
            found = _indexed(asked, of)
            if not found:
                used = sum(map(len, parts))
                paths += [letter, -1, kernel.IS_ANY, used, 0, used, len(of.rows)]
                parts.append(of.rows)
            for test in found:
                words, used = of.words(test), sum(map(len, parts))
                table, entries = _hashed(words, of.rows) if test.op == "=" else _sorted(words, of.rows, test, of)
                kind, size = kernel.IS_EQUAL, len(table) // kernel.HASH_ENTRY
                if test.op != "=":
                    kind, size = ORDERED[test.op] | kernel.IS_FLOAT * (of.kind(test.own) == "float"), len(table)
                paths += [letter, owns.index(test.own), kind, used, size, used + len(table), len(entries)]
                parts += [table, entries]
                if test.op == "=":
                    equal.append((test, np.unique(words)))
        entries = np.concatenate([*parts, np.zeros(1, np.int64)])
        is_equal = len(equal) == len(tests)
        return cls(np.array(paths, np.int64), entries, tuple(equal) if is_equal else None)

    def with_more(self, words: Callable[[Test], Ints]) -> Index:
        """The same, with more constants in ``equal``; ``words`` gives those of a test."""
        if self.equal is None:
            return self
        more = tuple((test, _merged(known, words(test))) for test, known in self.equal)
        return replace(self, equal=more)


def is_among(values: Ints, known: Ints) -> Bools:
    """Which values are among some that are in order. Complexity: O(values x log known)."""
    if not len(known):
        return np.zeros(len(values), np.bool_)
    found: Bools = known[np.searchsorted(known, values).clip(max=len(known) - 1)] == values
    return found


def _merged(known: Ints, more: Ints) -> Ints:
    """Some values and others, which are in order, each once."""
    new = np.unique(more[~is_among(more, known)])
    return np.insert(known, np.searchsorted(known, new), new)


def _indexed(tests: Sequence[Test], of: Constants) -> list[Test]:
    """The tests that queries are looked up by: an equality, else all comparisons that have an order."""
    equal = [test for test in tests if test.op == "=" and of.kind(test.own) in ("int", "text")]
    return equal[:1] or [test for test in tests if test.op in ORDERED and of.kind(test.own) in ("int", "float")]


def _sorted(words: Ints, rows: Ints, test: Test, of: Constants) -> tuple[Ints, Ints]:
    """Thresholds in order, and whose they are; NaN, which no event passes, is last and is left out."""
    is_float = of.kind(test.own) == "float"
    values = words.view(np.float64) if is_float else words
    order = np.argsort(values, kind="stable")
    if is_float:
        order = order[: len(order) - int(np.isnan(values).sum())]
    return words[order], rows[order]


def _hashed(words: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """A hash table over distinct words, and the rows that each has: see ``kernels.pairs``."""
    order = np.argsort(words, kind="stable")
    values, first = np.unique(words[order], return_index=True)
    end = np.append(first[1:], len(order))
    size = 4
    while size < 2 * len(values) + 1:
        size *= 2
    table = np.zeros(size * kernel.HASH_ENTRY, np.int64)
    kernel.fill_hash(table, values, first, end)
    return table, rows[order]
