"""The command as it was given, and the one that does exactly what it does within a budget."""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum
from typing import Any

import typer

from acep_approx.cli.options.budget import BudgetOptions, LearningOptions, ReportOptions
from acep_approx.masks import masked_word
from acep_approx.shell import command_of

SPENDING = (BudgetOptions.panel, LearningOptions.panel, ReportOptions.panel)


def exact_command(context: typer.Context) -> str:
    """The command of ``context`` without what is about its budget.

    Parameters
    ----------
    context : typer.Context
        Of ``acep run``.
    """
    return command_line(context, without=SPENDING)


def command_line(context: typer.Context, *, without: Collection[str] = ()) -> str:
    """The command of ``context``, as it can be given again, but for the secrets in it, which are masked.

    Parameters
    ----------
    context : typer.Context
        Of ``acep run``.
    without : collection of str
        Panels whose options are left out.
    """
    words, given = ["acep", "run"], []
    for option in context.command.params:
        value = context.params.get(option.name or "")
        is_left_out = getattr(option, "rich_help_panel", None) in without
        if option.param_type_name == "argument":
            words += map(masked_word, _texts(value)) if option.name == "inputs" else _texts(value)
        elif value is True and not is_left_out:
            given.append(option.opts[0])
        elif value is not None and value != option.get_default(context) and not is_left_out:
            texts = map(masked_word, _texts(value)) if option.name == "kafka_option" else _texts(value)
            given += [word for text in texts for word in (option.opts[0], text)]
    return command_of([*words, *given])


def _texts(value: Any) -> list[str]:
    """A value, or several, as they are written."""
    if value is None:
        return []
    if isinstance(value, list | tuple):
        return [text for one in value for text in _texts(one)]
    return [str(value.value if isinstance(value, Enum) else value)]
