"""The state of a program under way as bytes: where each of its streams and pipelines stands, and its tables.

Layout: see ``matching.blob``, which refuses bytes that have changed. Names of arrays begin with what they are of:
``s0`` is the first stream, ``p3`` the pipeline of the rule 3, ``t1`` the second table. ``FORMAT`` changes when the
layout does.
"""

from __future__ import annotations

from dataclasses import asdict
from hashlib import sha256
from typing import Any

from acep_approx.errors import DataError
from acep_approx.events.reading.ipc import from_ipc
from acep_approx.matching.blob import joined, split
from acep_approx.matching.sealed import OlderBytesError
from acep_approx.matching.state import FORMAT as INNER_FORMAT
from acep_approx.matching.state import (
    Arrays,
    Header,
    meaning,
    raw,
    restore_query,
    roles_of,
    save_query,
    save_stream,
    saved_stream,
    words_of,
)
from acep_approx.query.rules.printer import to_text
from acep_approx.ranges import COUNT, number_in, reading
from acep_approx.rules.execution import Counters, RuleExecution
from acep_approx.rules.pipeline import RulePipeline
from acep_approx.rules.program import Program

FORMAT = [2, INNER_FORMAT]


def fingerprint(program: Program) -> str:
    """Sixteen hex digits that change whenever the rules, or what they are compiled to, do."""
    plans = [meaning(rule.plan) for rule in program.rules]
    return sha256(repr((to_text(program.file), plans)).encode()).hexdigest()[:16]


def pack(execution: RuleExecution, options: Header, *, with_tables: bool = True) -> bytes:
    """All that is needed to go on in another process.

    Parameters
    ----------
    execution : RuleExecution
    options : dict
        What the caller wants to keep, as JSON.
    with_tables : bool, default True
        Whether the tables are in it, too; a database may hold them.

    Complexity: O(state).
    """
    arrays = Arrays()
    bound = execution.bound
    saved: Header = {
        "rules": FORMAT,
        "program": fingerprint(execution.program),
        "options": options,
        "driver": execution.driver,
        "counters": asdict(execution.counters),
        "bound": None,
        "tables": [],
    }
    if with_tables:
        for number, rows in enumerate(execution.tables.values()):
            arrays[f"t{number}_rows"] = raw(rows.to_arrow())
            saved["tables"].append(rows.table.name)
    if bound is not None:
        for number, log in enumerate(bound.logs.values()):
            if log.past is not None:
                columns, tables = log.past.to_state(log.rows)
                arrays |= {f"b{number}_{name}": array for name, array in columns.items()}
                arrays |= {f"b{number}_{name}": raw(table) for name, table in tables.items()}
        arrays["schema_of"] = raw(bound.schema.empty_table())
        streams = [save_stream(side, arrays, f"s{n}_") for n, side in enumerate(bound.sides)]
        pipelines = {one.rule.number: save_query(one, f"p{one.rule.number}_", arrays) for one in bound.pipelines}
        saved["bound"] = {"roles": bound.roles.plain, "streams": streams, "pipelines": [*pipelines.items()]}
    return joined(saved, arrays)


def unpack(program: Program, state: bytes) -> tuple[RuleExecution, Header]:
    """What ``pack`` was called on, and the options that were given to it.

    Raises
    ------
    DataError
        ``ACEP-D040``: these bytes are no state of rules, or have changed; ``ACEP-D041``: of another format;
        ``ACEP-D042``: of other rules.
    """
    try:
        saved, arrays = split(state)
        format_ = saved["rules"]
    except (OlderBytesError, ValueError, LookupError, TypeError) as error:
        raise damaged() from error
    if format_ != FORMAT:
        raise DataError(
            f"the state has format {format_}, this version reads format {FORMAT}",
            code="ACEP-D041",
            hint="go on with the version that wrote it, or start from the beginning",
        )
    if saved["program"] != fingerprint(program):
        raise DataError(
            "the state is of other rules",
            code="ACEP-D042",
            hint="go on with the rules that it was made with, or start from the beginning",
        )
    with reading(damaged):
        return _restored(program, saved, _parts(arrays)), saved["options"]


def damaged() -> DataError:
    """The error that bytes are no state of rules, or not as they were written (``ACEP-D040``)."""
    return DataError(
        "these bytes are not the state of rules, or not all as they were written",
        code="ACEP-D040",
        hint="take a copy that is whole, or start from the beginning",
    )


def _parts(arrays: Arrays) -> dict[str, Arrays]:
    parts: dict[str, Arrays] = {}
    for name, array in arrays.items():
        whose, _, own = name.partition("_")
        parts.setdefault(whose, {})[own] = array
    return parts


def _restored(program: Program, saved: Header, parts: dict[str, Arrays]) -> RuleExecution:
    execution = RuleExecution(program, saved["driver"])
    counters = saved["counters"]
    execution.counters = Counters(**{name: number_in(name, counters[name], -COUNT, COUNT) for name in counters})
    for number, name in enumerate(saved["tables"]):
        execution.tables[name].load(from_ipc(parts[f"t{number}"]["rows"]))
    if saved["bound"] is None:
        return execution
    held: dict[str, Any] = saved["bound"]
    schema = from_ipc(parts["schema"]["of"]).schema
    words = words_of(parts)
    sides = [saved_stream(one, parts[f"s{n}"], words) for n, one in enumerate(held["streams"])]
    bound = execution.bind(schema, roles_of(held["roles"]), sides)
    for number, log in enumerate(bound.logs.values()):
        if log.past is not None:
            kept = parts[f"b{number}"]
            log.past.restore(kept, {name: from_ipc(kept[name]) for name in ("keys", "texts")}, log.rows)
    pipelines: dict[int, RulePipeline] = {one.rule.number: one for one in bound.pipelines}
    for number, header in held["pipelines"]:
        restore_query(pipelines[number], header, parts.get(f"p{number}", {}))
    return execution

