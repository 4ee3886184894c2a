"""What active rules under one budget write down about themselves: plain data, for pages, the terminal and tables.

Nothing heavy is imported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from acep_approx.budget.set_ledger import SharedRecord, recall_columns

if TYPE_CHECKING:
    from acep_approx.budget.audit import RecallEstimate


@dataclass(frozen=True)
class Doubt:
    """What a rule reads that may be another value in the exact run.

    Attributes
    ----------
    what : str
        Columns, as ``shops.rises``, and tables, whose rows come and go.
    writers : sequence of str
        The rules that write it, and may have missed matches.
    """

    what: str
    writers: Sequence[str]

    def __str__(self) -> str:
        return f"{self.what}, which {', '.join(self.writers)} write{'s' if len(self.writers) == 1 else ''}"


@dataclass(frozen=True)
class RuleShare:
    """What one rule did inside a budget.

    Attributes
    ----------
    name : str
    sheds : bool
        False: it is answered without runs, and sheds nothing.
    worth : float
        What a match of it counts.
    protected : bool
        Whether its match points count for more, as others read what it writes.
    work, allowed, live, runs_shed, untested : int
        Run-steps done and allowed, live runs, runs shed, and tests left out.
    matches, certain : int
        Rows of its results, and those called certain.
    recall : RecallEstimate or None
        Of its match points, with the tables as they stood in this run; None without an audit.
    doubts : sequence of Doubt
        What it reads and may be another value in the exact run.
    """

    name: str
    sheds: bool
    worth: float
    protected: bool
    work: int = 0
    allowed: int = 0
    live: int = 0
    runs_shed: int = 0
    untested: int = 0
    matches: int = 0
    certain: int = 0
    recall: RecallEstimate | None = None
    doubts: Sequence[Doubt] = ()


@dataclass(frozen=True)
class RulesRecord(SharedRecord):
    """What rules did inside a budget; see ``SharedRecord``.

    Attributes
    ----------
    rules : tuple of RuleShare
        In the order of the file.
    """

    things: ClassVar[tuple[str, str]] = "rule", "rules"

    rules: tuple[RuleShare, ...] = field(default=(), repr=False)

    @property
    def runs_shed(self) -> int:
        """Runs shed, of all rules."""
        return sum(one.runs_shed for one in self.rules)

    @property
    def certain(self) -> float | None:
        """Share of the matches that are certain; None where there are none."""
        matches = sum(one.matches for one in self.rules)
        return sum(one.certain for one in self.rules) / matches if matches else None

    @property
    def estimates(self) -> Sequence[tuple[str, RecallEstimate | None]]:
        """The name of each rule that sheds, with what is known of its recall."""
        return [(rule.name, rule.recall) for rule in self.rules if rule.sheds]

    @property
    def exact(self) -> list[str]:
        """The names of the rules without partial matches: they shed nothing, but may read what others have missed."""
        return [rule.name for rule in self.rules if not rule.sheds]

    def rows(self) -> list[dict[str, object]]:
        """A row for each rule, for ``pandas.DataFrame`` or ``pyarrow.Table.from_pylist``.

        Returns
        -------
        list of dict
            ``rule``, ``sheds``, ``worth``, ``protected``, ``work``, ``allowed``, ``runs_shed``, ``matches``,
            ``certain``, and the estimated ``recall`` with its interval from ``low`` to ``high``, and the match points
            ``audited`` for it; ``doubts``, what it reads that may be another value in the exact run, in words.
        """
        names = ("sheds", "worth", "protected", "work", "allowed", "runs_shed", "matches", "certain")
        return [
            {"rule": one.name}
            | {name: getattr(one, name) for name in names}
            | recall_columns(one.recall)
            | {"doubts": "; ".join(map(str, one.doubts))}
            for one in self.rules
        ]

    def __repr__(self) -> str:
        share = "" if self.certain is None else f", {self.certain:.0%} of the matches are certain"
        work = f"{self.work:,} of {self.allowed:,} run-steps, {self.runs_shed:,} runs shed"
        return f"<RulesRecord under a budget of {self.budget}: {work}{share}>"
