"""How to ask why there is no match at a place: as a command, or in Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from acep_approx.results.explorer.explorable import PageLabels
from acep_approx.shell import quoted


def asking(labels: PageLabels, place: str, key: Mapping[str, Any], *, is_time: bool) -> str:
    """The command, or the call, that asks about a place."""
    if labels.ask:
        return " ".join([labels.ask, "--around", _word(place), *(f"--key {_word(part)}" for part in _parts(key))])
    if not labels.events:
        return ""
    around = repr(place) if is_time else place
    keys = f", key={dict(key)!r}" if key else ""
    return f"print(query.why({labels.events}, around={around}{keys}))"


def _parts(key: Mapping[str, Any]) -> Sequence[str]:
    if len(key) == 1:
        return [str(*key.values())]
    return [f"{name}={value}" for name, value in key.items()]


def _word(text: str) -> str:
    return text if text in ("TIME", "VALUE") else quoted(text)
