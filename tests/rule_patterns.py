"""Writes random patterns, as text, for the rules of ``rule_writer``: which variables they have, and what is sure."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

TYPES = ("A", "A", "A", "B", "B", "B", "C", "ANY")


@dataclass(frozen=True)
class Part:
    """A variable of a pattern.

    ``kind``: single, kleene, maybe (optional, or in a choice), negated. ``sure``: it has an event in every match.
    """

    variable: str
    kind: str
    sure: bool = False

    def one(self, random: Random) -> str:
        """One event of it, or each."""
        return f"{self.variable}[i]" if self.kind == "kleene" and random.random() < 0.8 else self.variable


@dataclass
class Pattern:
    """A pattern with the clause ERRORS, as text."""

    parts: list[Part] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    errors: str = ""

    @property
    def text(self) -> str:
        """The pattern."""
        return self.texts[0] if len(self.texts) == 1 else f"SEQ({', '.join(self.texts)})"

    @property
    def sure(self) -> list[Part]:
        """The variables that have an event in every match."""
        return [part for part in self.positive if part.sure]

    @property
    def last(self) -> Part | None:
        """The variable whose event is the last one of every match."""
        end = self.positive[-1]
        return end if end.kind == "single" and end.sure else None

    @property
    def positive(self) -> list[Part]:
        """The variables that bind events."""
        return [part for part in self.parts if part.kind != "negated"]

    @property
    def ends_late(self) -> bool:
        """Whether it ends with a negation."""
        return self.parts[-1].kind == "negated"


class PatternWriter:
    """Writes one pattern: one to three parts, one of them a single event, and negations.

    ``late``: how many of them end with a negation. ``is_plain``: none stands at the beginning.
    """

    def __init__(self, random: Random, *, is_plain: bool, late: float) -> None:
        self.random, self.is_plain, self.late = random, is_plain, late
        self.pattern = Pattern()

    def chance(self, share: float) -> bool:
        """True in so many cases."""
        return self.random.random() < share

    def write(self) -> Pattern:
        """The pattern."""
        kinds = ["single"] * self.random.choice((1, 2, 2, 2, 3))
        if len(kinds) > 1 and self.chance(0.35):
            at = self.random.randrange(len(kinds) - self.chance(0.6))
            kinds[at] = self.random.choice(("kleene", "kleene", "optional", "choice"))
        for i in range(len(kinds) - 1, 0, -1):
            if self.chance(0.2):
                kinds.insert(i, "negated")
        if not self.is_plain and self.chance(0.06):
            kinds.insert(0, "negated")
        if self.chance(self.late):
            kinds.append("negated")
        for kind in kinds:
            self.pattern.texts.append(self.part(kind))
        self.miss()
        return self.pattern

    def part(self, kind: str) -> str:
        """One more part."""
        type_ = self.random.choice(TYPES)
        match kind:
            case "single":
                return f"{type_} {self.new('single', sure=True)}"
            case "kleene":
                count = self.random.choice(("+", "+", "{1,2}", "{2}", "*"))
                return f"{type_}{count} {self.new('kleene', sure=count != '*')}[]"
            case "optional":
                return f"{type_}? {self.new('maybe')}"
            case "choice":
                return f"({type_} {self.new('maybe')} | {self.random.choice(TYPES)} {self.new('maybe')})"
        return f"~({self.random.choice(('A', 'B', 'C', 'C'))} {self.new('negated')})"

    def new(self, kind: str, *, sure: bool = False) -> str:
        """A variable."""
        variable = "abcdefgh"[len(self.pattern.parts)]
        self.pattern.parts.append(Part(variable, kind, sure))
        return variable

    def miss(self) -> None:
        """ERRORS; variables that are not made dear may be missing."""
        parts, most = self.pattern.parts, self.random.choice((0, 0, 0, 0, 1, 1, 2))
        if most == 0:
            return
        singles = [part for part in parts if part.kind == "single"]
        kept = {self.random.choice((singles[-1], self.random.choice(singles))).variable}
        kept |= {part.variable for part in parts if part.kind in ("single", "kleene") and self.chance(0.3)}
        parts[:] = [Part(one.variable, one.kind, one.sure and one.variable in kept) for one in parts]
        weights = ", ".join(f"{variable} = {most + 1}" for variable in sorted(kept))
        self.pattern.errors = f"ERRORS {most} WEIGHTS ({weights})"
