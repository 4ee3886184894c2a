"""The manual page ``acep.1``, made from the commands themselves.

``python -m acep_approx.cli.manpage > docs/reference/acep.1`` writes it anew. The wheel installs it.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, get_args

from typer.main import get_command

from acep_approx import __version__
from acep_approx.cli.logs import logged
from acep_approx.cli.main import EXAMPLES, EXIT_CODES, app

MARKUP = re.compile(r"(?<!\\)\[/?[a-z ]+\]")
"""Rich's marks of colours and styles; a bracket behind a backslash is one."""
ARGUMENTS = "Arguments"
ENVIRONMENT = {
    "NO_COLOR": "If set, nothing is coloured.",
    "COLUMNS": "How wide tables and help may be; by default as wide as the terminal.",
    "ACEP_JIT": (
        "0: inner loops are never compiled. 1: they are compiled, or loaded, before a run begins. By default another "
        "process compiles them, and a run takes them when they are there."
    ),
    "NUMBA_CACHE_DIR": (
        "Where compiled kernels are kept, if only you may write there; by default beside the package, or in the user's "
        "cache."
    ),
}


def manual() -> str:
    """The page, as ``man`` reads it."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    program: Any = get_command(app)
    yield '.\\" Made from the commands: python -m acep_approx.cli.manpage'
    yield f'.TH ACEP 1 "" "acep {__version__}" "User Commands"'
    yield from (".SH NAME", "acep \\- approximate complex event matching", ".SH SYNOPSIS")
    yield from ("\\fBacep\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR]... [\\fIARGUMENT\\fR]...", ".SH DESCRIPTION")
    yield from _paragraphs(program.help)
    yield ".SH COMMANDS"
    for panel, commands in EXAMPLES.items():
        yield f'.SS "{_roff(panel)}"'
        for function in commands:
            command = program.commands[function.__name__]
            yield from (".TP", f"\\fBacep {command.name}\\fR", _roff(command.help.split("\n\n")[0]))
    yield ".SH OPTIONS"
    yield from _options([one for one in program.params if one.param_type_name == "option"])
    for commands in EXAMPLES.values():
        for function, examples in commands.items():
            yield from _command(program.commands[function.__name__], _choices(function), examples)
    yield '.SH "EXIT STATUS"'
    for number, meaning in EXIT_CODES.items():
        yield from (".TP", f"\\fB{number}\\fR", _roff(meaning))
    yield ".SH ENVIRONMENT"
    for name, meaning in ENVIRONMENT.items():
        yield from (".TP", f"\\fB{name}\\fR", _roff(meaning))
    yield from ('.SH "SEE ALSO"', _roff("acep COMMAND --help says the same of one command."))


def _command(command: Any, choices: dict[str, str], examples: list[str]) -> Iterator[str]:
    arguments = " ".join(_argument(one) for one in command.params if one.param_type_name == "argument")
    yield f'.SH "ACEP {_roff(command.name.upper())}"'
    yield from (f"\\fBacep {command.name}\\fR [\\fIOPTION\\fR]... {arguments}".rstrip(), ".PP")
    yield from _paragraphs(command.help)
    panels: dict[str, list[Any]] = {}
    for one in command.params:
        panels.setdefault(ARGUMENTS if one.param_type_name == "argument" else one.rich_help_panel, []).append(one)
    for panel, options in panels.items():
        yield f'.SS "{_roff(panel)}"'
        yield from _options(options, choices)
    yield ".SS Examples"
    for example in examples:
        yield from (".PP", ".nf", _roff(example), ".fi")


def _argument(argument: Any) -> str:
    name = f"\\fI{_roff(argument.metavar or argument.name.upper())}\\fR" + ("..." if argument.nargs != 1 else "")
    return name if argument.required else f"[{name}]"


def _choices(function: Callable[..., None]) -> dict[str, str]:
    """The parameters of a command that are one of some words, with these; versions of Typer keep them elsewhere."""
    found = {}
    for name, parameter in inspect.signature(logged(function)).parameters.items():
        for part in _parts(parameter.annotation):
            if isinstance(part, type) and issubclass(part, Enum):
                found[name] = "|".join(str(one.value) for one in part)
    return found


def _parts(annotation: Any) -> Iterator[Any]:
    yield annotation
    for part in get_args(annotation):
        yield from _parts(part)


def _options(options: list[Any], choices: dict[str, str] | None = None) -> Iterator[str]:
    for option in options:
        if option.param_type_name == "argument":
            names = _argument(option)
        else:
            takes = not option.is_flag and option.name not in ("install_completion", "show_completion")
            wanted = option.metavar or (choices or {}).get(option.name, "VALUE")  # or what its help speaks of
            value = f" \\fI{_roff(wanted)}\\fR" if takes else ""
            names = ", ".join(f"\\fB{_roff(name)}\\fR{value}" for name in option.opts)
        yield from (".TP", names, _roff(_plain(option.help or "")) + _roff(_default(option)))


def _default(option: Any) -> str:
    value = option.default
    is_said = option.show_default and not option.is_flag if option.param_type_name == "option" else False
    return f" Default: {value}." if is_said and isinstance(value, str | int | float) else ""


def _paragraphs(text: str) -> Iterator[str]:
    for number, paragraph in enumerate(_plain(text).split("\n\n")):
        yield from (".PP",) if number else ()
        yield _roff(" ".join(paragraph.split()))


def _plain(text: str) -> str:
    return MARKUP.sub("", text).replace("\\[", "[")


def _roff(text: str) -> str:
    escaped = " ".join(text.split()).replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


if __name__ == "__main__":
    sys.stdout.write(manual())
