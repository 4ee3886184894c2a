"""What `Afa` is given: names of states, registers, variables; first values of registers; functions of the user's."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from acep_approx.arguments import checked
from acep_approx.errors import UsageError, expect
from acep_approx.query.functions import KINDS, UserFunction
from acep_approx.query.messages import FUNCTIONS
from acep_approx.query.printer import is_name
from acep_approx.query.syntax import Constant, MachineRegister
from acep_approx.query.traces import plain

_NEXT_WORDS = frozenset(("WHEN", "SET", "IGNORE", "FINAL"))
"""What can stand behind the type of an arc that has no variable."""


@checked
def afa_function(
    *, version: int, returns: type, name: str | None = None
) -> Callable[[Callable[..., Any]], UserFunction]:
    """Let a function over numpy columns be called in the lambdas of an `Afa`.

    Parameters
    ----------
    version : int
        To be raised whenever the function gives other values: states saved before are refused then.
    returns : {int, float, bool, str, datetime}
        What it gives for each event.
    name : str, optional
        A word; as it stands in the text of the query. Default: the function's own.

    Returns
    -------
    callable
        Decorates a function that gets a numpy array per argument, and gives one as long; the same values for the same
        arguments. Called with a symbol it gives a symbol, with anything else it computes as before.

    Raises
    ------
    UsageError
        ACEP-U022: the name is not a word, or reserved; ACEP-U053: the version is not whole, or nothing is known of what
        it returns.

    Examples
    --------
    >>> @afa_function(version=1, returns=float)
    ... def slope(x, y):
    ...     return x / y
    >>> slope(1, 4)
    0.25
    >>> from acep_approx import Afa
    >>> afa = Afa(registers={"level": 1})
    >>> print(afa.arc("a", "b", on="Tick", when=lambda e, r: slope(e.price, r.level) > 2).final("b"))
    AUTOMATON (
      REGISTERS level = 1
      a -> b ON Tick WHEN slope(price, level) > 2
      FINAL b
    )
    """
    if not isinstance(version, int) or isinstance(version, bool):
        raise UsageError(f"version is {version!r:.80}", code="ACEP-U053", hint="give a whole number")
    if not isinstance(returns, type) or returns not in KINDS:
        hint = "give int, float, bool, str or datetime: @afa.function(version=1, returns=float)"
        raise UsageError(f"returns is {returns!r:.80}", code="ACEP-U053", hint=hint)

    def decorate(compute: Callable[..., Any]) -> UserFunction:
        called = str(getattr(compute, "__name__", "")) if name is None else name
        if called.lower() in FUNCTIONS:
            raise _no_name(called, "function", "the language has this one; take another: @afa.function(name=..., ...)")
        return UserFunction(_word(called, "function"), version, KINDS[returns], compute)

    return decorate


def register_of(name: str, given: Any) -> MachineRegister:
    """A register, from what it begins with.

    Parameters
    ----------
    name : str
        A word.
    given : value, type or tuple
        A value, a type (NULL at first), or both.

    Returns
    -------
    MachineRegister
        With the kind that it holds.

    Raises
    ------
    UsageError
        ACEP-U022: the name is not a word, or reserved; ACEP-U053: a register cannot hold this.

    Examples
    --------
    >>> register_of("top", (float, 1)), register_of("name", str)  # doctest: +NORMALIZE_WHITESPACE
    (MachineRegister(name='top', holds='float', initial=Constant(value=1.0)),
     MachineRegister(name='name', holds='text', initial=Constant(value=None)))
    """
    _word(name, "register")
    kind, initial = given if isinstance(given, tuple) and len(given) == 2 else (None, given)
    if isinstance(initial, type):
        kind, initial = initial, None
    value = plain(initial)
    own = KINDS.get(type(value))
    if kind is None:
        holds = "time" if own == "text" and not isinstance(initial, str) else own
    else:
        holds = KINDS.get(kind) if isinstance(kind, type) else None
    if (own, holds) == ("int", "float"):
        own, value = holds, float(value)
    fits = value is None or own == holds or (own, holds) == ("text", "time")
    if holds is None or not fits or (own == "float" and not math.isfinite(value)):
        hint = f"write {name}=0 for what it begins with, {name}=float for NULL at first, or {name}=(float, 0) for both"
        raise UsageError(f"the register {name!r} cannot be {given!r:.80}", code="ACEP-U053", hint=hint)
    return MachineRegister(name, holds, Constant(value))


def constant_of(name: object, given: object) -> Constant:
    """What a register becomes, where it is neither text nor symbol.

    Parameters
    ----------
    name : str
        Of the register, for a message.
    given : bool, int, float, date, datetime, numpy scalar or None
        The value.

    Returns
    -------
    Constant
        Its tree.

    Raises
    ------
    UsageError
        ACEP-U053: it is something else.
    """
    value = plain(given)
    if (value is not None and type(value) not in KINDS) or (isinstance(value, float) and not math.isfinite(value)):
        hint = "give a number, or a text of the query language: then={'level': 'level + 1'}"
        raise UsageError(f"the register {name!r:.80} cannot become {given!r:.80}", code="ACEP-U053", hint=hint)
    return Constant(value)


def variable_of(name: str | None) -> str | None:
    """The name of an event, as it was given.

    Raises
    ------
    UsageError
        ACEP-U022: not a word, or reserved.
    """
    if name is not None and _word(name, "variable").upper() in _NEXT_WORDS:
        raise _no_name(name, "variable", f"{name} has a meaning of its own behind a type; take another word")
    return name


def type_of(on: str | None) -> str | None:
    """The type of an event, as it was given.

    Raises
    ------
    UsageError
        ACEP-U053: no text.
    """
    expect("on", on, (str, type(None)), "the type of the event, or None for any")
    return on


def states_of(method: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Names of states, as they were given.

    Raises
    ------
    UsageError
        ACEP-U022: one is not a word; ACEP-U024: there is none.
    """
    if not names:
        raise UsageError(f"{method}() needs at least one state", code="ACEP-U024", hint=f"afa.{method}('q1')")
    for name in names:
        if not isinstance(name, str) or not re.fullmatch(r"\w+", name):
            raise _no_name(name, "state", "it is a word of letters, digits and _")
    return names


def _word(name: object, what: str) -> str:
    if not isinstance(name, str) or not is_name(name):
        raise _no_name(name, what, "it is a word of letters, digits and _ that is not reserved")
    return name


def _no_name(name: object, what: str, hint: str) -> UsageError:
    return UsageError(f"{name!r:.80} is no name for a {what}", code="ACEP-U022", hint=hint)
