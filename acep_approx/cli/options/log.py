"""The option ``--log``, which all commands have."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, get_type_hints

import typer

from acep_approx.cli.logs import logging_to
from acep_approx.cli.options.output import GENERAL

Log = Annotated[
    list[str] | None,
    typer.Option(
        "--log",
        metavar="LEVEL|FILE",
        show_default=False,
        help="Log what is done: debug, info, warning or error, or to which FILE; with both give it twice. By default "
        "info, on stderr.",
        rich_help_panel=GENERAL,
    ),
]


def logged(command: Callable[..., None]) -> Callable[..., None]:
    """The command with ``--log``.

    Parameters
    ----------
    command : callable
        As Typer takes it.
    """
    hints = get_type_hints(command, include_extras=True)
    signature = inspect.signature(command)
    own = [
        one.replace(annotation=hints[one.name] if isinstance(one.annotation, str) else one.annotation)
        for one in signature.parameters.values()
    ]
    asked = inspect.Parameter("log", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Log)

    @wraps(command)
    def with_log(*, log: list[str] | None = None, **options: Any) -> None:
        with logging_to(log or []):
            command(**options)

    with_log.__signature__ = inspect.Signature([*own, asked])  # type: ignore[attr-defined]
    return with_log
