"""Texts without what differs from run to run: elapsed times, speeds, the time of day, places, ports, versions."""

from __future__ import annotations

import re
from collections.abc import Mapping

CHANGING = (
    (r"\bpid \d+", "pid #"),
    (r"http://127\.0\.0\.1:\d+", "http://127.0.0.1:#"),
    (r"\b20(?:2[5-9]|[3-9]\d)-\d\d-\d\d([T ])\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|\+00:00)?", r"NOW"),
    (r"\b20(?:2[5-9]|[3-9]\d)-\d\d-\d\d\b", "TODAY"),
    (r"\b17[6-9]\d{7}(?:\d{3}){0,3}\b", "NOW"),
    (r"(?<=took)(:?) \d[\d,.]* s(?:, [\d.]+% of the time)?", r"\1 # s"),
    (r"(?<=<dd>)[\d#][\d,.]* s(?=, |<)(?:, [\d.]+% of the time)?", "# s"),
    (r"(?<=; )\d[\d,.]* (?:ms|s|min)(?=\n|$|;)", "# s"),
    (r"\d[\d,.]* s(?= exactly| inside|, of which|; the |, with)", "# s"),
    (r"(?<=about )[\d,.]+ (?:us|ms|s|min)\b(?! \d)", "# s"),
    (r"\b[\d,.]+ (?:us|ms|s)(?= (?:more|less|faster|slower|each|per event))", "# s"),
    (r"\b[\d,.]+ (?:million |thousand )?events/s\b", "# events/s"),
    (r"\b[\d.]+ (?:B|bytes|KiB|MiB|kB|MB)(?= of state|, state| state)", "# bytes"),
    (r"acep \d+\.\d+\.\d+", "acep #"),
    (r"acep_approx \d+\.\d+\.\d+", "acep_approx #"),
)
"""Patterns, and what is written in their place."""


def stable(text: str, places: Mapping[str, str]) -> str:
    """A text in which ``places`` have names, and what changes from run to run is ``#``.

    Doing it again changes nothing: a comparison does it to recordings that were made before a pattern was added.

    Parameters
    ----------
    text : str
    places : mapping
        Folders, and their names.
    """
    for place, name in sorted(places.items(), key=lambda pair: -len(pair[0])):
        text = text.replace(place, name)
    for pattern, shown in CHANGING:
        text = re.sub(pattern, shown, text)
    return text
