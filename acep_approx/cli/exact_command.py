"""The command that does exactly what another one does within a budget."""

from __future__ import annotations

import shlex
from enum import Enum
from typing import Any

import typer

from acep_approx.cli.options.budget import BudgetOptions, LearningOptions, ReportOptions

SPENDING = (BudgetOptions.panel, LearningOptions.panel, ReportOptions.panel)


def exact_command(context: typer.Context) -> str:
    """The command of ``context`` without what is about its budget.

    Parameters
    ----------
    context : typer.Context
        Of ``acep run``.
    """
    words, given = ["acep", "run"], []
    for option in context.command.params:
        value = context.params.get(option.name or "")
        is_spending = getattr(option, "rich_help_panel", None) in SPENDING
        if option.param_type_name == "argument":
            words += _texts(value)
        elif value is True and not is_spending:
            given.append(option.opts[0])
        elif value is not None and value != option.get_default(context) and not is_spending:
            given += [word for text in _texts(value) for word in (option.opts[0], text)]
    return shlex.join([*words, *given])


def _texts(value: Any) -> list[str]:
    """A value, or several, as they are written."""
    if isinstance(value, list | tuple):
        return [text for one in value for text in _texts(one)]
    return [str(value.value if isinstance(value, Enum) else value)]
