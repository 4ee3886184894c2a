"""Draw docs/images/flights.svg, a picture of the tutorial: ``python docs/images/flights.py``."""

from __future__ import annotations

from pathlib import Path

from acep_approx import compile_query
from acep_approx.cli.commands.demo import QUERY
from acep_approx.events import flights
from acep_approx.timeline import svg


def flights_picture() -> str:
    """The match points of ``acep demo`` over the year, by number of errors."""
    points = compile_query(QUERY).match(flights()).points()
    return svg(points, is_time=True, title="Delays that travelled with the plane, New York 2013") + "\n"


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(flights_picture(), encoding="utf-8")
