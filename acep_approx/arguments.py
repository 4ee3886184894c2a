"""Arguments of public calls, held to the types that their signatures say: at the door, before anything is done."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, wraps
from numbers import Integral, Real
from os import PathLike
from types import NoneType
from typing import Any, NoReturn, TypeVar

from acep_approx.errors import UsageError, expect

Call = TypeVar("Call", bound=Callable[..., Any])
KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "None": ((NoneType,), "None"),
    "str": ((str,), "text"),
    "int": ((Integral,), "a whole number"),
    "float": ((Real,), "a number"),
    "bool": ((Integral,), "True or False"),
    "bytes": ((bytes, bytearray, memoryview), "bytes"),
    "Path": ((PathLike,), "a path"),
    "PathLike": ((PathLike,), "a path"),
    "Mapping": ((Mapping,), "a mapping"),
    "dict": ((Mapping,), "a mapping"),
    "Sequence": ((Sequence,), "a list"),
    "Iterable": ((Iterable,), "a list"),
    "Callable": ((Callable,), "a function"),  # type: ignore[dict-item]
    "type": ((type,), "a type"),
}
"""What a part of an annotation allows, and in words; any other part is the name of a class."""
COLUMNS = {"ndarray", "Array", "ChunkedArray", "Series", "Index"}
"""Classes of numpy, Arrow and pandas that are as good as lists; what their items are is seen where they are used."""
SHEDDING = ("budget", "history", "policy", "learn")
"""Arguments that say that some work is left out."""
LATENESS = ("watermark", "source", "sequence", "idle")
"""Arguments that say how late events may come."""
ALIASES = {
    "Duration": "Any",
    "OutputName": "str",
    "Bind": "str | Sequence | Wide | None",
    "Driver": "str",
    "Unit": "str",
    "OnBatch": "Callable",
    "OnProgress": "Callable",
    "Measure": "Callable",
    "Misfit": "Callable",
    "Callback": "Callable",
    "When": "str | Callable",
    "Then": "Mapping | Callable",
    "InMemory": "Any",
    "object": "Any",
}
"""Names of types that stand for others."""


def checked(call: Call) -> Call:
    """A public call that refuses arguments of other types than its annotations say (``ACEP-U053``).

    ``Any`` allows all; items are looked at where they are given one by one (``*names: str``) or in a list.
    """

    @wraps(call)
    def asked(*args: Any, **kwargs: Any) -> Any:
        for name, (allowed, value) in _given(call, args, kwargs):
            _expect(name, value, allowed)
        return call(*args, **kwargs)

    return asked  # type: ignore[return-value]


def check_fields(made: Any) -> None:
    """Refuse fields of a dataclass that have other types than its annotations say (``ACEP-U053``)."""
    for name, field in made.__dataclass_fields__.items():
        _expect(name, getattr(made, name), field.type)


def refuse_unknown(call: str, given: Iterable[str], known: Container[str] = ()) -> None:
    """Refuse named arguments that a call does not know, as Python does.

    Examples
    --------
    >>> refuse_unknown("explain", ["seed"], ("seed", "audit"))
    >>> refuse_unknown("explain", ["sed"], ("seed", "audit"))
    Traceback (most recent call last):
    TypeError: explain() got an unexpected keyword argument 'sed'
    """
    for name in given:
        if name not in known:
            raise TypeError(f"{call}() got an unexpected keyword argument {name!r}")


@dataclass(frozen=True)
class Refusals:
    """What a kind of program and some arguments, or calls, do not do together yet.

    Attributes
    ----------
    program, called : str
        As messages name it: "a set of queries", and in short "a set".
    help : str
        What ``help`` is asked about.
    wings : mapping of str to tuple of str
        By the name of an argument or a call what it stands for, and what to do; ``{name}`` in these is its name.
    """

    program: str
    called: str
    help: str
    wings: Mapping[str, tuple[str, str]]

    def refuse(self, name: str) -> NoReturn:
        """Refuse one of these; or what is none of them, and no argument at all."""
        if name not in self.wings:
            what = f"there is no argument {name!r} of {self.called}"
            raise UsageError(what, code="ACEP-U053", hint=f"see help({self.help})")
        what, hint = (text.format(name=name) for text in self.wings[name])
        raise UsageError(f"{self.program} and {what} do not go together yet", code="ACEP-U064", hint=hint)


def _given(
    call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Iterator[tuple[str, tuple[str, Any]]]:
    """The arguments by name, each with what is allowed; wrong names and numbers are for Python to tell."""
    places, many, named, others = _signature(call)
    for (name, allowed), value in zip(places, args, strict=False):
        yield name, (allowed, value)
    if many is not None:
        yield from ((many[0], (many[1], value)) for value in args[len(places) :])
    for name, value in kwargs.items():
        if (allowed_here := named.get(name, others)) is not None:
            yield name, (allowed_here, value)


@lru_cache(maxsize=512)
def _signature(
    call: Callable[..., Any],
) -> tuple[list[tuple[str, str]], tuple[str, str] | None, dict[str, str], str | None]:
    """The parameters of a call with their annotations: by place, the many, by name, and any others by name."""
    places: list[tuple[str, str]] = []
    named: dict[str, str] = {}
    many: tuple[str, str] | None = None
    others: str | None = None
    for name, one in inspect.signature(call).parameters.items():
        allowed = "Any" if one.annotation is one.empty else str(one.annotation)
        if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD):
            places.append((name, allowed))
            named[name] = allowed
        elif one.kind is one.VAR_POSITIONAL:
            many = name, allowed
        elif one.kind is one.KEYWORD_ONLY:
            named[name] = allowed
        else:
            others = allowed
    return places, many, named, others


@lru_cache(maxsize=512)
def _parts(allowed: str) -> tuple[tuple[str, str], ...]:
    """The alternatives of an annotation, each as a name and what stands in its brackets."""
    found: list[tuple[str, str]] = []
    for part in re.split(r"\s*\|\s*(?![^\[]*\])", allowed):
        name, _, inside = part.strip().partition("[")
        name = name.rpartition(".")[2]
        if name == "Literal":
            name, inside = "str", ""
        found += _parts(ALIASES[name]) if name in ALIASES else [(name, inside.removesuffix("]"))]
    return tuple(found)


@lru_cache(maxsize=4096)
def _always_fits(kind: type, allowed: str) -> bool:
    """Whether all values of a class are allowed, whatever they hold: so calls that are right cost next to nothing."""
    names = {base.__name__ for base in kind.__mro__}
    for part, _ in _parts(allowed):
        if part == "Any" or (part not in KINDS and part in names) or (part == "bool" and kind is bool):
            return True
        is_seen = part in KINDS and part not in ("bool", "Sequence", "Iterable")
        if is_seen and issubclass(kind, KINDS[part][0]) and "timedelta64" not in names:
            return True
    return False


def _expect(name: str, value: Any, allowed: str) -> None:
    if _always_fits(type(value), allowed):  # type: ignore[arg-type]
        return
    parts = _parts(allowed)
    if not any(_fits(value, part, inside) for part, inside in parts):
        words = [KINDS[part][1] if part in KINDS else f"a {part}" for part, _ in parts if part != "None"]
        expect(name, value, (), " or ".join(dict.fromkeys(words)))


def _fits(value: Any, part: str, inside: str) -> bool:
    """Whether a value, and its items where they can be looked at, are what an alternative allows."""
    if part not in KINDS:
        return any(base.__name__ == part for base in type(value).__mro__)
    bases = {base.__name__ for base in type(value).__mro__}
    if part in ("Sequence", "Iterable") and bases & COLUMNS:
        return getattr(value, "ndim", 1) == 1
    if not isinstance(value, KINDS[part][0]) or "timedelta64" in bases:  # which numpy takes for a whole number
        return False
    if part == "bool":
        return isinstance(value, bool) or value in (0, 1)
    if inside in KINDS and isinstance(value, Sequence | set) and not isinstance(value, str):
        return all(_fits(item, inside, "") for item in value)
    return True
