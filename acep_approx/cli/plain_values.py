"""Values of options that need no conversion are taken as they are: to convert any, Typer imports pydantic.

That takes a tenth of the time of a short command, and most options are not given. A Typer that converts in another way
is left alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from enum import Enum
from typing import Any

_CONVERTED = object()


def take_plain_values(options: Iterable[Any]) -> None:
    """Let options of a command convert only what is not yet what they hold."""
    for option in options:
        if getattr(option, "_runtime_param", _CONVERTED) is None:  # Typer makes it when the option is first read
            option._runtime_param = _Conversion(option)


class _Conversion:
    """What an option converts its values with: Typer's own is made for values that need it."""

    def __init__(self, option: Any) -> None:
        self._option = option

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value that a command gets."""
        holds = self._option.type_descriptor.annotation
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        if self._option.type_descriptor.parameter_info.parser is None:
            if holds is str and type(value) is str:
                return value
            if holds == list[str] and type(value) is tuple and set(map(type, value)) <= {str}:
                return list(value)
            if isinstance(holds, type) and issubclass(holds, Enum):
                with suppress(ValueError):  # said by Typer
                    return holds(value)
        return self._made().coerce(value, param=param, ctx=ctx)

    def _made(self) -> Any:
        self._option._runtime_param = None
        return self._option.get_runtime_param()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made(), name)
