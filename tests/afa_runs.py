"""Automata written by hand through the package: what it finds, held against brute force."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import pyarrow as pa

from acep_approx import Query, compile_query
from acep_approx.errors import UnsupportedError
from acep_approx.query.syntax import Machine, QuerySyntax
from tests.afa_worlds import AfaWorld
from tests.match_tables import counted
from tests.naive_afa import AfaRow, afa_counts, afa_points
from tests.rich_worlds import Row
from tests.runs_engine import MERGES, pushed

OUTPUTS = ("matches", "points", "counts")
Shown = Counter[tuple[Any, ...]]
"""Rows of a table of matches: key, errors, start, end, and what is bound or returned."""


def compiled(world: AfaWorld) -> Query | str:
    """The query; or why it is refused, which only a combination that is not supported yet may be."""
    try:
        query = compile_query(world.text, functions=world.query.functions)
        query.matcher().push(world.table().slice(0, 0))
    except UnsupportedError as error:
        assert error.code.startswith("ACEP-Q9"), error
        return str(error).splitlines()[0]
    return query


def variables_of(query: QuerySyntax) -> list[str]:
    """The variables of a machine."""
    assert isinstance(query.pattern, Machine)
    return list(dict.fromkeys(arc.variable for arc in query.pattern.arcs if arc.variable))


def shown(table: pa.Table, query: QuerySyntax) -> Shown:
    """The rows of a table of matches."""
    keys = [equivalence.name for equivalence in query.equivalences]
    values = [output.name for output in query.outputs]
    found: Shown = Counter()
    for row in table.to_pylist():
        head = (*(row[name] for name in keys), row["errors"], row["start"], row["end"])
        if query.outputs:
            found[(*head, *(row[name] for name in values))] += 1
        else:
            found[(*head, *(as_tuple(row[name]) for name in variables_of(query)))] += 1
    return found


def as_tuple(value: Any) -> tuple[int, ...]:
    """The rows that a variable binds."""
    return tuple(value) if isinstance(value, list) else () if value is None else (value,)


def expected_shown(found: Mapping[AfaRow, int], rows: Sequence[Row], query: QuerySyntax) -> Shown:
    """The rows of the table that brute force would give."""
    return Counter(
        (
            *row.key,
            errors,
            rows[row.first]["ts"],
            rows[row.last]["ts"],
            *(row.values if query.outputs else (bound for _, bound in row.bound)),
        )
        for row, errors in found.items()
    )


def points_of(table: pa.Table) -> dict[int, tuple[int, int]]:
    """Per match point the least errors and the shortest match with these; one row has several where matches wait."""
    found: dict[int, tuple[int, int]] = {}
    for row in table.to_pylist():
        point = row["errors"], row["span"] if "span" in row else row["end"] - row["start"]
        found[row["row"]] = min(point, found.get(row["row"], point))
    return found


def agrees(world: AfaWorld, query: Query | None = None, merge: str = MERGES[0]) -> None:
    """Listed, counted and detected as by brute force."""
    query = query or compile_query(world.text, functions=world.query.functions)
    expected = world.expected()
    matches = query.match(world.table(), merge=merge)
    table = matches.to_arrow()
    differs("matches", shown(table, world.query), expected_shown(expected, world.rows, world.query))
    differs("points", points_of(matches.points()), afa_points(world.query, expected, world.rows))
    differs("counts", counted(matches.counts()), dict(afa_counts(expected)))
    by_errors = Counter(errors for (_, errors), number in afa_counts(expected).items() for _ in range(number))
    assert matches.count_by_errors() == {e: by_errors[e] for e in range(world.query.errors + 1)}
    missing_pays(world, table)


def differs(what: str, found: Any, expected: Any) -> None:
    """Asserts that two answers are the same; says what is too much and what is missing."""
    if isinstance(found, Counter):
        assert found == expected, f"{what}: too much {found - expected}, missing {expected - found}"
    more, fewer = ({k: v for k, v in a.items() if b.get(k) != v} for a, b in ((found, expected), (expected, found)))
    assert found == expected, f"{what}: found {more}, expected {fewer}"


def missing_pays(world: AfaWorld, table: pa.Table) -> None:
    """The weights of the missing variables add up to the errors of the match; what has no variable is not named."""
    weights = dict(world.query.weights)
    has_unnamed = any(arc.kind == "on" and arc.variable is None for arc in world.machine.arcs)
    for row in table.to_pylist():
        named = sum(weights.get(variable, 1) for variable in row["missing"] if variable)
        assert named <= row["errors"], row
        assert has_unnamed or named == row["errors"], row


def agrees_in_any_split(
    world: AfaWorld, seed: int, query: Query | None = None, merge: str = MERGES[0], outputs: Sequence[str] = OUTPUTS
) -> None:
    """The outputs of batches that are cut anywhere, with restarts between them, are those of one batch, and right."""
    query, dice = query or compile_query(world.text, functions=world.query.functions), Random(seed)
    expected, table = world.expected(), world.table()
    for output in outputs:
        cuts = sorted(dice.randint(0, table.num_rows) for _ in range(dice.randrange(7)))
        batches = [table.slice(i, j - i) for i, j in zip([0, *cuts], [*cuts, table.num_rows], strict=True)]
        parts = pushed(query, batches, output, merge, dice)
        if output == "matches":
            differs("matches, split", shown(parts, world.query), expected_shown(expected, world.rows, world.query))
        elif output == "points":
            differs("points, split", points_of(parts), afa_points(world.query, expected, world.rows))
        else:
            differs("counts, split", counted(parts), dict(afa_counts(expected)))
        whole = pushed(query, [table], output, merge, None)
        assert parts.to_pylist() == whole.to_pylist(), f"{output}: another order"
