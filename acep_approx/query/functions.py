"""Functions of the user's that automata written by hand may call: over columns, once per block of runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

KINDS: dict[type, str] = {int: "int", float: "float", bool: "truth", str: "text", datetime: "time"}
"""What a register or a function can hold, as a Python type and in the tree."""


class Unknown:
    """What stands for a value that is not known yet: a function that is called with one is not computed."""

    __slots__ = ()

    def _call_of(self, function: UserFunction, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """What stands for the value of ``function``, one of whose arguments this is."""
        raise NotImplementedError

    def _node_in(self, trace: Any) -> Any:
        """Its tree, in the lambda that it was given to."""
        raise NotImplementedError


@dataclass(frozen=True)
class UserFunction:
    """A function over numpy columns, known by its name and version; mostly made by `acep_approx.afa_function`.

    Called with plain values it computes; called with the symbols of a traced lambda it gives a symbol. Pickled, it is
    its name in its module; only a function of a script, of a notebook or within another function is pickled as it is,
    for which ``cloudpickle`` is needed (Spark has it).

    Parameters
    ----------
    name : str
        A word; as it stands in queries.
    version : int
        To be raised whenever the function gives other values: states saved before are refused then.
    holds : {"int", "float", "truth", "text", "time"}
        What it gives.
    compute : callable
        Gets a numpy array per argument, gives one as long. It must be pure: the same values for the same arguments.

    Examples
    --------
    >>> double = UserFunction("double", 1, "int", lambda x: 2 * x)
    >>> double(21), double
    (42, UserFunction(name='double', version=1, holds='int'))
    """

    name: str
    version: int
    holds: str
    compute: Callable[..., Any] = field(compare=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("__module__", "__name__", "__qualname__", "__doc__"):
            object.__setattr__(self, name, getattr(self.compute, name, None))
        object.__setattr__(self, "__wrapped__", self.compute)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """What the function computes; for symbols, the symbol of the call."""
        for value in (*arguments, *named.values()):
            if isinstance(value, Unknown):
                return value._call_of(self, arguments, named)
        return self.compute(*arguments, **named)

    def __reduce__(self) -> str | tuple[Any, ...]:
        module, name = getattr(self, "__module__", None), getattr(self, "__qualname__", None)
        if module in sys.modules and module != "__main__" and name:
            found: Any = sys.modules[module]
            for part in name.split("."):
                found = getattr(found, part, None)
            if found is self:
                return str(name)
        return UserFunction, (self.name, self.version, self.holds, self.compute)
