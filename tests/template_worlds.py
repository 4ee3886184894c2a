"""Streams for templates of queries, with values at the edges of their constants, and what runs them in a set."""

from __future__ import annotations

import re
from collections.abc import Iterable
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from acep_approx import QueryError, QuerySet
from acep_approx.query.parameters import with_values
from acep_approx.query.parser import parse
from acep_approx.query.printer import to_text
from acep_approx.subscriptions.templates.literals import Literals, filled, tree_of
from acep_approx.subscriptions.templates.member import TemplateSide

EDGES = [0.0, -0.0, 0.25, 0.5, 1.0, 3.0]
KEYS = 40


def events(dice: Random, rows: int) -> pa.Table:
    """Values at the edges of constants, NULL and NaN among them, and many keys."""

    def some(value: Any) -> Any:
        return None if dice.random() < 0.05 else value

    return pa.table(
        {
            "ts": sorted(dice.randrange(rows) for _ in range(rows)),
            "type": [dice.choice("AABBC") for _ in range(rows)],
            "k": [some(f"k{int(KEYS * dice.random() ** 2)}") for _ in range(rows)],
            "x": pa.array([some(dice.randrange(-2, 6)) for _ in range(rows)], pa.int64()),
            "y": pa.array([some(dice.choice([*EDGES, float("nan")])) for _ in range(rows)], pa.float64()),
        }
    )


def text_of(template: str, row: dict[str, Any]) -> str:
    syntax = parse(template)
    return to_text(with_values(syntax, {name: value for name, value in row.items() if f":{name}" in template}))


def read_as_parsed(texts: Iterable[str], literal: re.Pattern[str], highest: int) -> int:
    """Hold the reader of texts against the parser, on texts and with other literals; gives how many of these share."""
    known, dice, shared = Literals(), Random(3), 0
    for text in texts:
        for number in range(3):
            changed = literal.sub(lambda _: str(dice.randrange(1, highest)), text) if number else text
            try:
                expected = tree_of(changed)
            except QueryError as error:
                with pytest.raises(QueryError, match=re.escape(error.message)):
                    known.read(changed)
                continue
            read = known.read(changed)
            assert filled(read.syntax, read.values) == expected, changed
            shared += number > 0 and bool(read.values)
    return shared


def members(desk: QuerySet) -> list[TemplateSide]:
    assert desk._running.levels is not None
    return [one for one in desk._running.levels.base.queries if isinstance(one, TemplateSide)]
