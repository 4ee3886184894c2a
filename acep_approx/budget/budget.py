"""Load budgets as people write them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from numbers import Integral, Real
from typing import Literal, Self, get_args

from acep_approx.arguments import check_fields
from acep_approx.errors import UsageError, expect

Unit = Literal["%", "steps/event", "runs", "ms/batch", "events/s"]
HINT = "write '20%', '5000 steps/event', '200 runs', '2 ms/batch' or '100k events/s'"
MULTIPLES = {"": 1.0, "k": 1e3, "M": 1e6}
_NUMBER = re.compile(r"([0-9][0-9_]*(?:\.[0-9]+)?|\.[0-9]+)\s*([kM]?)\s*(.*)", re.DOTALL)
_UNITS: dict[str, tuple[Unit, float]] = {
    "%": ("%", 1.0),
    "steps/event": ("steps/event", 1.0),
    "step/event": ("steps/event", 1.0),
    "runs": ("runs", 1.0),
    "run": ("runs", 1.0),
    "us/batch": ("ms/batch", 1e-3),
    "ms/batch": ("ms/batch", 1.0),
    "s/batch": ("ms/batch", 1e3),
    "events/s": ("events/s", 1.0),
    "event/s": ("events/s", 1.0),
}


@dataclass(frozen=True)
class Budget:
    """How much work a run may do.

    Parameters
    ----------
    amount : float
        Above 0.
    unit : {"%", "steps/event", "runs", "ms/batch", "events/s"}
        Percent of the work that the past took per event (a history knows it); run-steps per event; live runs;
        milliseconds per batch; events per second to keep up with. Only the last two depend on the clock.

    Examples
    --------
    >>> Budget.parse("20%"), Budget.parse("100k events/s")
    (Budget(amount=20.0, unit='%'), Budget(amount=100000.0, unit='events/s'))
    >>> str(Budget.parse("5_000 steps / event"))
    '5000 steps/event'
    """

    amount: float
    unit: Unit

    def __post_init__(self) -> None:
        check_fields(self)
        if self.unit not in get_args(Unit) or not 0 < self.amount < inf:
            raise UsageError(f"{self.amount!r} {self.unit} is not a budget", code="ACEP-U030", hint=HINT)

    @classmethod
    def parse(cls, text: str | float | Budget) -> Self:
        """The budget that a text means, or a share of the full work; a budget is given back as it is.

        Raises
        ------
        UsageError
            ``ACEP-U030``: not a budget.

        Examples
        --------
        >>> str(Budget.parse(0.1))
        '10%'
        """
        if isinstance(text, Budget):
            return cls(text.amount, text.unit)
        if isinstance(text, Real) and not isinstance(text, Integral):
            if not 0 < text <= 1:
                raise _refused(text, "a number is a share of the full work, above 0 and at most 1")
            return cls(float(f"{100 * float(text):.12g}"), "%")
        expect("the budget", text, str, "a text such as '20%' or '5000 steps/event', or a share such as 0.2")
        assert isinstance(text, str), "this was expected"
        found = _NUMBER.fullmatch(text.strip())
        if found is None:
            raise _refused(text, "it does not begin with a number above 0")
        number, multiple, unit = found.groups()
        known = _UNITS.get(re.sub(r"\s+", "", unit.replace("per", "/")))
        if known is None:
            if unit or multiple or not 0 < float(number.replace("_", "")) <= 1:
                raise _refused(text, f"{unit!r} is no unit of a budget" if unit else "it has no unit")
            share = f"{100 * float(number.replace('_', '')):.12g}%"
            raise UsageError(f"{text!r} is not a budget: it has no unit", code="ACEP-U030", hint=f"write '{share}'")
        amount = float(number.replace("_", "")) * MULTIPLES[multiple] * known[1]
        if amount <= 0:
            raise _refused(text, "nothing can be done with it")
        if known[0] == "runs" and amount != int(amount):
            raise _refused(text, "runs are counted in whole numbers")
        return cls(amount, known[0])

    @property
    def is_unlimited(self) -> bool:
        """Whether it is all of the work or more: then nothing is shed, whatever the work turns out to be."""
        return self.unit == "%" and self.amount >= 100

    @property
    def needs_clock(self) -> bool:
        """Whether it is measured in time, so that two runs may differ."""
        return self.unit in ("ms/batch", "events/s")

    def __str__(self) -> str:
        space = "" if self.unit == "%" else " "
        return f"{self.amount:.12g}{space}{self.unit}"


def _refused(text: object, why: str) -> UsageError:
    return UsageError(f"{text!r} is not a budget: {why}", code="ACEP-U030", hint=HINT)


def refuse_without(given: Iterable[str]) -> None:
    """Refuse arguments that say how a budget is spent, where there is none.

    Raises
    ------
    UsageError
        ``ACEP-U040``: there is one of them at least.
    """
    for name in given:
        raise UsageError(
            f"{name}= is about a load budget, and there is none",
            code="ACEP-U040",
            hint="say how much may be done: budget='20%', '5000 steps/event', '200 runs' or '2 ms/batch'",
        )


def granted_beside(rate: float, events: int, share: float) -> float:
    """Run-steps that some events grant to what is matched beside a run, whose ``share`` of the budget it is.

    ``rate``: run-steps per event that the run itself is granted; the two are the budget.

    Examples
    --------
    >>> granted_beside(19.0, 10, 0.05)
    10.0
    """
    return rate * events * share / (1 - share)
