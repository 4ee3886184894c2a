"""Errors about columns and times point to ``acep look``, which shows what is in the input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from acep_approx.errors import AcepError
from acep_approx.events.live.kafka_address import is_address
from acep_approx.shell import command_of

SHOWN_BY_LOOK = frozenset(
    (
        *(f"ACEP-D{number:03}" for number in (1, 2, 3, 4, 5, 6, 7, 8, 9)),
        *("ACEP-U101", "ACEP-Q060", "ACEP-Q061", "ACEP-Q062", "ACEP-Q907", "ACEP-Q908"),
    )
)
"""Errors whose reason one sees when one looks at the columns: their names, types, roles, times and their order."""
SHOWN = {"ACEP-D007": "how many events come late, and by how much"}
"""What is shown, where it is not the columns."""


def _for_late_events(given: Mapping[str, Any]) -> str:
    """What a run that lasts can do about events that come late: it cannot sort them."""
    from acep_approx.cli.terminal import read_query
    from acep_approx.query.rules.parser import is_rules

    if given.get("queries"):
        return "wait for events that are late by so much: --reorder '10 s'"
    if given.get("query") and is_rules(read_query(given["query"])):
        return "leave out what comes late: --on-late skip"
    return "wait for events that are late by so much: --watermark '10 s'"


def point_to_look(error: AcepError, given: Mapping[str, Any]) -> None:
    """Add to the hint of an error that ``acep look`` shows what is in the input.

    Parameters
    ----------
    error : AcepError
    given : mapping
        The arguments of the command.
    """
    inputs = given.get("inputs") or given.get("input") or ()
    inputs = [inputs] if isinstance(inputs, str) else list(inputs)
    if given.get("queries") and given.get("query"):  # then all that is named is input
        inputs.insert(0, given["query"])
    if error.code == "ACEP-D007" and (given.get("follow") or given.get("checkpoint") or any(map(is_address, inputs))):
        error.hint = _for_late_events(given)
    if error.code not in SHOWN_BY_LOOK or not inputs or "-" in inputs or "rows" in given:
        return
    if any(map(is_address, inputs)):  # which has no end
        return
    what = SHOWN.get(error.code, "its columns, and what they are taken for")
    shows = f"acep look {command_of(inputs)} shows {what}"
    error.hint = f"{error.hint}\n  see:  {shows}" if error.hint else shows
