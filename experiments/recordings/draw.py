"""Draws random queries, rules and streams as the tests do, once, into ``drawn.json``, which recordings then play.

``python -m experiments.recordings.draw``; the file is kept, so that a recording needs nothing of the tests.
"""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

DRAWN = Path(__file__).parent / "drawn.json"
NUMBERS = {"patterns": 90, "rules": 40, "cel": 40}
"""How many of each."""


def drawn() -> dict[str, list[dict[str, Any]]]:
    """Texts with their events; rules also with the rows that tables begin with."""
    from tests.cel_worlds import cel_world
    from tests.rich_worlds import rich_world
    from tests.rule_worlds import rule_world

    patterns = [rich_world(Random(seed), seed % 5 == 0) for seed in range(NUMBERS["patterns"])]
    rules = [rule_world(seed) for seed in range(NUMBERS["rules"])]
    cel = [cel_world(seed, intervals=seed % 2 == 0) for seed in range(NUMBERS["cel"])]
    return {
        "patterns": [told(one.text, one.table()) for one in patterns],
        "rules": [
            told(one.text, pa.Table.from_pylist(list(one.rows), pa.schema(list(one.attributes.items()))))
            | {"tables": dict(one.tables)}
            for one in rules
        ],
        "cel": [told(one.texts[0], one.table) for one in cel],
    }


def told(text: str, events: pa.Table) -> dict[str, Any]:
    """A text with the types and rows of its events."""
    return {"text": text, "types": {one.name: str(one.type) for one in events.schema}, "rows": events.to_pylist()}


def main() -> None:
    """Write the file, one world a line."""
    parts = []
    for kind, worlds in drawn().items():
        lines = ",\n".join(map(json.dumps, worlds))
        parts.append(f'"{kind}": [\n{lines}\n]')
    DRAWN.write_text("{" + ",\n".join(parts) + "}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
