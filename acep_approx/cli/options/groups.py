"""Options as dataclasses, of which Typer sees each field; which of them were given, and the command that gave them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from copy import copy
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import wraps
from typing import Annotated, Any, get_type_hints

import typer

from acep_approx.masks import masked_word
from acep_approx.shell import command_of

GENERAL = "General"
"""The panel of the options that most commands have."""


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """The command as Typer reads it: in place of each group of options, the options of that group.

    Typer knows no groups: it reads the signature of a function, and calls that by keywords.

    Parameters
    ----------
    command : callable
        Its parameters are such as Typer takes, or groups: dataclasses whose fields are annotated like parameters, and
        whose ``panel`` names the panel of ``--help`` that shows them; or dataclasses of such groups. No two options
        have the same name.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class ReadingOptions:
    ...     panel = "Input"
    ...     time: Annotated[str, typer.Option(help="The column of the times.")] = "ts"
    ...     sort: Annotated[bool, typer.Option("--sort")] = False
    >>> @grouped
    ... def show(query: str, reading: ReadingOptions, quiet: bool = False) -> None:
    ...     print(query, reading, quiet)
    >>> list(inspect.signature(show).parameters)
    ['query', 'time', 'sort', 'quiet']
    >>> show(query="ab", time="when", sort=True, quiet=False)
    ab ReadingOptions(time='when', sort=True) False
    """
    hints = get_type_hints(command, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if _is_group(hint)}

    def parameters() -> Iterator[inspect.Parameter]:
        for parameter in inspect.signature(command).parameters.values():
            if parameter.name in groups:
                yield from _options(groups[parameter.name])
            else:
                yield parameter.replace(annotation=hints[parameter.name], kind=inspect.Parameter.KEYWORD_ONLY)

    @wraps(command)
    def expanded(**options: Any) -> None:
        filled = {name: _filled(group, options) for name, group in groups.items()}
        command(**filled, **options)

    expanded.__signature__ = inspect.Signature(list(parameters()))  # type: ignore[attr-defined]
    return expanded


def given_options(context: typer.Context) -> dict[str, str]:
    """The options that were given on the command line: how each is spelled, by its name as a parameter."""
    return {
        str(option.name): option.opts[0]
        for option in context.command.params
        if (source := context.get_parameter_source(str(option.name))) is not None and source.name == "COMMANDLINE"
    }


def _is_group(hint: Any) -> bool:
    return isinstance(hint, type) and is_dataclass(hint)


def _filled(group: Any, options: dict[str, Any]) -> Any:
    """A group with its options, which are taken out of all that there are."""
    hints = get_type_hints(group)
    names = [field.name for field in fields(group)]
    return group(**{n: _filled(hints[n], options) if _is_group(hints[n]) else options.pop(n) for n in names})


def _options(group: type[Any]) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):
        hint = hints[field.name]
        if _is_group(hint):
            yield from _options(hint)
            continue
        option: typer.models.OptionInfo = copy(hint.__metadata__[0])
        option.rich_help_panel = group.panel
        default = inspect.Parameter.empty if field.default is MISSING else field.default
        if default in (None, inspect.Parameter.empty):
            option.show_default = False  # older versions of Typer show None
        yield inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=default,
            annotation=Annotated[hint.__origin__, option],
        )


def command_line(context: typer.Context, *, without: Collection[str] = ()) -> str:
    """The command of ``context``, as it can be given again, but for the secrets in it, which are masked.

    Parameters
    ----------
    context : typer.Context
        Of ``acep run``.
    without : collection of str
        Options that are left out, and panels.
    """
    words, given = ["acep", "run"], list[str]()
    for option in context.command.params:
        value = context.params.get(option.name or "")
        is_secret = option.name in ("inputs", "kafka_option")
        if option.param_type_name == "argument":
            words += map(masked_word, texts_of(value)) if is_secret else texts_of(value)
        elif value != option.get_default(context) and not _is_among(option, without):
            more = option_words(option.opts[0], value)
            given += map(masked_word, more) if is_secret else more
    return command_of([*words, *given])


def _is_among(option: Any, names: Collection[str]) -> bool:
    """Whether an option, or its panel, is named."""
    return option.name in names or getattr(option, "rich_help_panel", None) in names


def option_words(spelled: str, value: Any) -> list[str]:
    """An option with its value, or with each of several, as words of a command."""
    return [spelled] if value is True else [word for text in texts_of(value) for word in (spelled, text)]


def texts_of(value: Any) -> list[str]:
    """A value, or several, as they are written."""
    if value is None:
        return []
    if isinstance(value, list | tuple):
        return [text for one in value for text in texts_of(one)]
    return [str(value.value if isinstance(value, Enum) else value)]


# --- values as they are ---------------------------------------------------------------------------------------------

_CONVERTED = object()


def take_plain_values(options: Iterable[Any]) -> None:
    """Let options of a command convert only what is not yet what they hold: to convert any, Typer imports pydantic.

    That takes a tenth of the time of a short command, and most options are not given. A Typer that converts in another
    way is left alone.
    """
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
            if holds in (str, int, float) and type(value) is holds:  # of a number that is given the text comes here
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
