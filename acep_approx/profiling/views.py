"""What was seen, in a notebook."""

from __future__ import annotations

from collections.abc import Iterator

from acep_approx.diagrams.fragments import plain, soft, table, title, view
from acep_approx.profiling.stream_profile import StreamProfile
from acep_approx.profiling.text import NUMBERS, Section, sections


def look_view(look: StreamProfile) -> str:
    """All sections, one below the other."""
    return view(*(part for section in sections(look) for part in _parts(section)))


def _parts(section: Section) -> Iterator[str]:
    yield title(section.title)
    yield from map(soft, section.lines)
    if section.header:
        right = [place for place, name in enumerate(section.header) if name in NUMBERS]
        yield table(section.header, section.table, numbers=right)
    if section.code:
        yield plain("\n".join(section.code))
