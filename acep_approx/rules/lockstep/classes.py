"""What an event says to all rules of a circle by itself: its joint class, and what is left to be asked of the store.

The letters of a rule are asked of an event as if all conditions on the store held. So a joint class says of each rule
which letters may hold, and which tests of the store decide it: there is a class of the rule for each of their outcomes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from acep_approx.arrays import Bools, Ints
from acep_approx.automaton.automaton import Letter
from acep_approx.automaton.letters import LetterReader, Masks, Truths
from acep_approx.kernels.rules.lockstep import ENTRY
from acep_approx.matching.prepare import MaskNumbers
from acep_approx.query.syntax import Expression
from acep_approx.rules.lockstep.conditions import Given, Test, Tree, decided, leaves, reduced, tree_of, when_of
from acep_approx.rules.lockstep.eligible import MOST_LETTERS, trees_of
from acep_approx.rules.pipeline import KernelRule

Truth = dict[Test | Given, bool]
"""Which leaves of trees hold."""
MOST_CONDITIONS = 8
"""Conditions on events that the rules of a panel may have together: joint classes are combinations of their truths."""


@dataclass(frozen=True)
class Member:
    """A rule of the circle, by its number in it.

    ``letters``: those of its automaton without conditions on the store, which stand in ``trees``; ``when``: what must
    hold for it to act.
    """

    number: int
    of: KernelRule
    letters: tuple[Letter, ...]
    trees: tuple[tuple[Tree, ...], ...]
    when: tuple[Tree, ...]

    @classmethod
    def made(cls, number: int, of: KernelRule, live: frozenset[str]) -> Member:
        """The member for a rule, of whose conditions some read what is ``live``."""
        letters = of.pipeline.plan.letters
        plain = [tuple(one for one in letter.conditions if isinstance(tree_of(one, live), Given)) for letter in letters]
        kept = tuple(replace(letter, conditions=some) for letter, some in zip(letters, plain, strict=True))
        when = tuple(tree_of(one, live) for one in when_of(of.rule).conditions)
        return cls(number, of, kept, tuple(trees_of(letter, live) for letter in letters), when)

    @cached_property
    def givens(self) -> tuple[Given, ...]:
        """Conditions on the event alone that stand beside those on the store."""
        trees = (*(tree for some in self.trees for tree in some), *self.when)
        found = (leaf for tree in trees for leaf in leaves(tree) if isinstance(leaf, Given))
        return tuple(dict.fromkeys(found))

    @property
    def asked(self) -> tuple[Letter, ...]:
        """All that it asks of events alone."""
        return (*self.letters, *map(self._letter_of, self.givens))

    def _letter_of(self, given: Given) -> Letter:
        """A condition beside those on the store as a letter; if one letter alone asks it, only where that may hold."""
        last = self.of.rule.last_letters
        trees = [
            (*some, *(self.when if last >> number & 1 else ())) for number, some in enumerate(self.trees)
        ]
        asking = [number for number, some in enumerate(trees) if any(given in leaves(tree) for tree in some)]
        if len(asking) != 1:
            return Letter(None, (given.condition,))
        letter = self.letters[asking[0]]
        return replace(letter, conditions=(*letter.conditions, given.condition))

    def outcomes(self, mask: int, known: Truth) -> tuple[list[Test], list[int]]:
        """What is left to be asked where some letters may hold, and the letters that do by outcome.

        Parameters
        ----------
        mask : int
            Letters that hold if the store says so.
        known : dict
            The truths of ``givens``.
        """
        asked: dict[int, list[Tree]] = {}
        for letter, trees in enumerate(self.trees):
            if mask >> letter & 1:
                left = [reduced(tree, known) for tree in trees]
                if False in left:
                    mask &= ~(1 << letter)
                else:
                    asked[letter] = [tree for tree in left if not isinstance(tree, bool)]
        tests, outcomes = _outcomes(tree for some in asked.values() for tree in some)
        masks = []
        for holds in outcomes:
            failed = [letter for letter, some in asked.items() if not all(decided(tree, holds) for tree in some)]
            masks.append(mask & ~sum(1 << letter for letter in failed))
        return tests, masks

    def acts(self, known: Truth) -> tuple[list[Test], list[bool]]:
        """What is left to be asked of WHEN, and whether the rule acts, by outcome."""
        left = [reduced(tree, known) for tree in self.when]
        if False in left:
            return [], [False]
        asked = [tree for tree in left if not isinstance(tree, bool)]
        tests, outcomes = _outcomes(asked)
        return tests, [all(decided(tree, holds) for tree in asked) for holds in outcomes]


def _outcomes(trees: Iterable[Tree]) -> tuple[list[Test], list[Truth]]:
    """The tests of trees, and all truths that they can have, by number."""
    tests = [*dict.fromkeys(leaf for tree in trees for leaf in leaves(tree) if isinstance(leaf, Test))]
    outcomes = range(1 << len(tests))
    return tests, [{test: bool(one >> place & 1) for place, test in enumerate(tests)} for one in outcomes]


class Panel:
    """Rules whose letters are asked together.

    Parameters
    ----------
    members : sequence of Member
    """

    def __init__(self, members: Sequence[Member]) -> None:
        self.members = members
        asked = dict.fromkeys(letter for member in members for letter in member.asked)
        self._reader = LetterReader(tuple(asked))
        places = {letter: place for place, letter in enumerate(asked)}
        self._bits = [[places[letter] for letter in member.asked] for member in members]
        self.numbers = MaskNumbers()

    def masks(self, truths: Truths) -> Masks:
        """What holds on each event of a batch."""
        return self._reader.masks(truths)

    def says(self, mask: int) -> Iterable[tuple[Member, int, Truth]]:
        """Which letters may hold for each member, and the truths beside the store."""
        for member, bits in zip(self.members, self._bits, strict=True):
            own = sum(1 << number for number, bit in enumerate(bits) if mask >> bit & 1)
            letters = len(member.letters)
            known: Truth = {given: bool(own >> letters + number & 1) for number, given in enumerate(member.givens)}
            if own & (1 << letters) - 1:
                yield member, own & (1 << letters) - 1, known


def panels_of(members: Sequence[Member]) -> list[Panel]:
    """Members together as far as there is room for their letters, and not too many combinations, in order."""
    found: list[list[Member]] = []
    for member in members:
        together = [*found[-1], member] if found else [member]
        asked = {letter for one in together for letter in one.asked}
        conditions = {condition for letter in asked for condition in letter.conditions}
        if found and len(asked) <= MOST_LETTERS and len(conditions) <= MOST_CONDITIONS:
            found[-1].append(member)
        else:
            found.append([member])
    return [Panel(some) for some in found]


@dataclass
class Entries:
    """What joint classes say to rules, as lists that grow: see ``kernels.rules.lockstep.Circle``.

    ``finishes``: per member whether each class may complete a match. ``tests``: per class what it may ask of the store.
    """

    first: list[int] = field(default_factory=lambda: [0])
    entries: list[int] = field(default_factory=list)
    which: list[int] = field(default_factory=list)
    lookup: list[int] = field(default_factory=list)
    finishes: list[list[bool]] = field(default_factory=list)
    tests: list[set[Test]] = field(default_factory=list)


class JointClasses:
    """The joint classes of the events of a circle, and what each says to its rules.

    Parameters
    ----------
    members : sequence of Member

    Attributes
    ----------
    tests : dict of Test to int
        The tests of the store, numbered.
    """

    def __init__(self, members: Sequence[Member]) -> None:
        self.members = members
        self.panels = panels_of(members)
        self.tests: dict[Test, int] = {}
        self._arrays: tuple[Ints, Ints, Ints, Ints] | None = None
        self._finishes: list[Bools] | None = None
        self._panel_of = [number for number, panel in enumerate(self.panels) for _ in panel.members]
        self._made = Entries(finishes=[[] for _ in members])
        self._numbers: list[list[int]] = [[] for _ in self.panels]
        self._preparers = [one.of.pipeline.preparer for one in members]

    @property
    def is_stale(self) -> bool:
        """Whether a rule was set up anew, so that its classes have other numbers."""
        return any(one.of.pipeline.preparer is not own for one, own in zip(self.members, self._preparers, strict=True))

    def of(self, truths: Truths) -> list[Ints]:
        """The joint class of each event, by panel; new ones are made known to the rules."""
        found = []
        for panel, numbers in zip(self.panels, self._numbers, strict=True):
            own = panel.numbers.of(panel.masks(truths))
            for mask in panel.numbers.masks[len(numbers) :]:
                numbers.append(self._add(panel, mask))
            found.append(np.array(numbers, np.int64)[own])
        return found

    def _add(self, panel: Panel, mask: int) -> int:
        made = self._made
        self._arrays = self._finishes = None
        number = len(made.first) - 1
        made.tests.append(set())
        for some in made.finishes:
            some.append(False)
        for member, letters, known in panel.says(mask):
            tests, masks = member.outcomes(letters, known)
            if not any(masks):
                continue
            finishes = bool(letters & member.of.rule.last_letters)
            made.finishes[member.number][number] = finishes
            asked, acts = member.acts(known) if finishes else ([], [True])
            classes = member.of.pipeline.preparer.classes_of(np.array(masks, np.uint64)).tolist()
            begins = [len(made.which), len(made.which) + len(tests), len(made.lookup), len(made.lookup) + len(classes)]
            made.entries += [member.number, *begins, finishes]
            made.tests[number].update(tests, asked)
            made.which += [self.tests.setdefault(test, len(self.tests)) for test in (*tests, *asked)]
            made.lookup += [*classes, *acts]
        made.first.append(len(made.entries) // ENTRY)
        return number

    def asked_for(self, joint: Sequence[Ints], operand: Expression) -> Bools:
        """Of which events of these joint classes an operand of a test may be asked."""
        asks = np.array([any(test.operand == operand for test in tests) for tests in self._made.tests], np.bool_)
        found: Bools = np.logical_or.reduce([asks[classes] for classes in joint])
        return found

    def arrays(self) -> tuple[Ints, Ints, Ints, Ints]:
        """``first``, ``entries``, ``which`` and ``lookup`` for the kernel."""
        if self._arrays is None:
            made = self._made
            ends = [0, len(made.which), *[0] * (ENTRY - 2)]
            lists = made.first, [*made.entries, *ends], made.which, made.lookup
            first, entries, which, lookup = (np.array(one, np.int64) for one in lists)
            self._arrays = first, entries, which, lookup
        return self._arrays

    def finishing(self, member: Member, joint: Sequence[Ints]) -> Ints:
        """Where the events stand that may complete a match of a member."""
        if self._finishes is None:
            self._finishes = [np.array(some) for some in self._made.finishes]
        finishes = self._finishes[member.number][joint[self._panel_of[member.number]]]
        return finishes.nonzero()[0]
