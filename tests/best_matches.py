"""What points must show of their best matches, made of a list of all matches and of what brute force calls the best."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa

from acep_approx import Query, compile_query
from acep_approx.query.shape import atoms, kleene_variables, negated_variables
from acep_approx.query.syntax import QuerySyntax
from tests.match_tables import bindings
from tests.naive import Binding
from tests.naive_order import Rows, best_matches

ONE = ("{}.x", "{}.ts", "{}.type")
SEVERAL = ("count({}[])", "{0}[{0}.LEN].ts", "{}[1].x", "max({}[].x)", "first({}[].ts)")


def returning(query: QuerySyntax, text: str, dice: Random) -> str:
    """The query with a clause RETURN, if it can have one, mostly of all variables."""
    negated, repeated = negated_variables(query.pattern), kleene_variables(query.pattern)
    variables = [atom.variable for atom in atoms(query.pattern) if atom.variable not in negated]
    if query.is_regex:
        return text
    shown = [dice.choice(SEVERAL if name in repeated else ONE).format(name) for name in variables]
    return f"{text} RETURN {', '.join(f'{what} AS r{i}' for i, what in enumerate(shown))}"


def stream(dice: Random, events: int) -> pa.Table:
    """A longer stream of two keys, with ties in time."""
    ticks = sorted(dice.randrange(events) for _ in range(events))
    rows = [{"ts": t, "type": dice.choice("ABBCCD"), "x": dice.randrange(9), "g": dice.choice("pq")} for t in ticks]
    return pa.Table.from_pylist(rows)


Shown = dict[int, dict[str, Any]]


def of_points(points: pa.Table) -> Shown:
    """Per event what its point shows; asserts that it has one."""
    found: Shown = {}
    for row in points.to_pylist():
        assert row["row"] not in found
        found[row["row"]] = row
    return found


def of_matches(plain: Query, shown: Query, table: pa.Table, rows: Rows, expected: dict[Binding, int]) -> Shown:
    """Per event what its best match shows: found by brute force, and read in the list of matches.

    Parameters
    ----------
    plain, shown : Query
        Without RETURN, and with it or without.
    expected : dict of Binding to int
        All matches, by brute force.
    """
    query = plain.syntax
    listed = list(bindings(plain.match(table).to_arrow(), query))
    values = dict(zip(listed, shown.match(table).to_arrow().to_pylist(), strict=True))
    best = best_matches(query, rows, expected)
    names = {"errors", "missing", *(output.name for output in shown.syntax.outputs)}
    names |= set() if query.window.unit == "events" else {"start"}
    return {row: {name: values[bound][name] for name in names & values[bound].keys()} for row, bound in best.items()}


def points_show_the_best(
    text: str, engine: str, table: pa.Table, rows: Rows, expected: dict[Binding, int], merges: tuple[str, ...],
    dice: Random,
) -> None:  # fmt: skip
    """Points of a query, with RETURN and without, show what the best match of each shows."""
    plain = compile_query(text, engine=engine)  # type: ignore[arg-type]
    for shown in (plain, compile_query(returning(plain.syntax, text, dice), engine=engine)):  # type: ignore[arg-type]
        wanted = of_matches(plain, shown, table, rows, expected)
        for merge in merges:
            found = of_points(shown.match(table, merge=merge).points())
            for row, values in wanted.items():
                assert {name: found[row][name] for name in values} == values, (shown, merge, row)
            assert found.keys() == wanted.keys()
