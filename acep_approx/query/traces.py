"""What is known while a lambda of `Afa` is called with symbols, and which values it may use beside them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from acep_approx.errors import QueryError
from acep_approx.query.assemble import did_you_mean
from acep_approx.query.functions import Unknown, UserFunction
from acep_approx.query.syntax import Constant, Expression


@dataclass(frozen=True)
class Trace:
    """What is known while a lambda is called with symbols.

    Parameters
    ----------
    what : str
        What the lambda is for: ``"WHEN of q0 -> q1"``.
    place : str
        Its file and line: ``"trades.py:12"``.
    has_event : bool
        Whether there is an event at hand.
    variable : str or None
        The name of the current event, where it has one.
    registers : tuple of str
        Names of all registers.
    functions : dict of str to UserFunction
        Those known before; those that the lambda calls are added.
    symbols : list of Unknown
        All that were made so far.
    """

    what: str
    place: str
    has_event: bool
    variable: str | None
    registers: tuple[str, ...]
    functions: dict[str, UserFunction]
    symbols: list[Unknown] = field(default_factory=list)

    def of(self, what: str, place: str) -> Trace:
        """The same for one lambda; functions that it calls are known to the others, too."""
        return replace(self, what=what, place=place, symbols=[])

    def fault(self, message: str, hint: str, code: str = "ACEP-Q070") -> QueryError:
        """An error that names the lambda, its file and line."""
        return QueryError(f"{message}, in {self.what} ({self.place})", code=code, hint=hint)

    def node(self, value: object) -> Expression:
        """The tree of a symbol or of a constant.

        Parameters
        ----------
        value : Symbol, bool, int, float, str, date, datetime, numpy scalar or None
            A time becomes its text.

        Returns
        -------
        Expression
            A `Constant` for what is no symbol.

        Raises
        ------
        QueryError
            ACEP-Q070: it is neither, or a symbol of another lambda.
        """
        if isinstance(value, Unknown):
            node: Expression = value._node_in(self)
            return node
        found = plain(value)
        if not isinstance(found, (bool, int, float, str)) and found is not None:
            hint = "use numbers, strings, True, False, times, attributes such as e.price and registers such as r.level"
            raise self.fault(f"{shown(value)} is no value of the query language", hint)
        if isinstance(found, float) and not math.isfinite(found):
            raise self.fault(f"{found} is no number of the query language", "use None for what is not known")
        return Constant(found)


def shown(value: object) -> str:
    """Any value, for a message."""
    return f"{value!r:.80}"


def plain(value: object) -> Any:
    """A value as it can stand in a tree.

    Parameters
    ----------
    value : object
        Anything.

    Returns
    -------
    object
        A Python value for a numpy scalar, the text of a time; other things as they are.

    Examples
    --------
    >>> plain(date(2026, 7, 1)), plain(True), plain([])
    ('2026-07-01', True, [])
    """
    if isinstance(value, date):
        return value.isoformat()
    if type(value).__module__ == "numpy" and hasattr(value, "item") and not getattr(value, "shape", ()):
        if "time" in type(value).__name__:  # `item` of nanoseconds is a number without its unit
            return str(value) if type(value).__name__ == "datetime64" else value
        return plain(value.item())
    if isinstance(value, str):
        return str.__str__(value)  # not the name of an Enum
    for kind in (bool, int, float):
        if isinstance(value, kind):
            return kind(value)
    return value


def known_registers(name: object, registers: Sequence[str]) -> str:
    """The hint for a register that is not declared.

    Parameters
    ----------
    name : object
        What was asked for.
    registers : sequence of str
        What is declared.

    Returns
    -------
    str
        Names all of them.
    """
    return f"{did_you_mean(str(name), registers)}registers are {', '.join(registers) or 'none'}: Afa(registers=...)"
