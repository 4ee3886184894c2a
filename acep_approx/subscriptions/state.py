"""The state of a set: its queries as texts, what waits, and where each level and each query stands."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from itertools import groupby

import numpy as np
import pyarrow as pa

from acep_approx.archive import Head, Kind, Scope, damaged_part, damaged_state, state_of_other_format
from acep_approx.errors import DataError
from acep_approx.matching.outputs.bind import from_plain
from acep_approx.matching.shared_load import SharedLoad
from acep_approx.matching.state import meaning, restored_stream, save_stream
from acep_approx.planning.planner import Plan
from acep_approx.ranges import COUNT, check, finite, number_in
from acep_approx.run.order import Order
from acep_approx.subscriptions.graph import Entry
from acep_approx.subscriptions.levels import Levels, new_member
from acep_approx.subscriptions.running import Change, Running
from acep_approx.subscriptions.templates.template import Shared, Template

HINT = "take a copy that is whole, or start anew; the state of one query is for Query.from_state"
SET = Kind("set", lambda: damaged_state("a set of queries", HINT), state_of_other_format)
Compile = Callable[[Head], tuple[Plan, Template | None]]
"""Makes the plan of an entry again, of what was kept of it, and its template where it has one."""
OF_ENTRY = (
    *("number", "id", "text", "publish", "output", "is_shown", "level", "running", "feeders"),
    *("part", "columns_of", "until"),
)


def pack(running: Running, options: Head) -> bytes:
    """Return what ``scope_of`` gives, as bytes."""
    return SET.pack(scope_of(running, options))


def scope_of(running: Running, options: Head) -> Scope:
    """Return everything that is needed to go on in another process.

    Parameters
    ----------
    running : Running
    options : dict
        What the caller wants to keep, as JSON.

    Raises
    ------
    DataError
        ``ACEP-D045``: an error stopped it in the middle of a batch.
    """
    running.check_whole()
    graph, scope = running.graph, Scope()
    scope.head |= {
        "options": options,
        "wanted": running.wanted,
        "key_idle": running.key_idle,
        "next": [graph.next_number, graph.ids_given],
        "queries": [(number, id_, entry.number) for number, id_, entry in graph.numbered],
        "leaving": [*running.leaving.items()],
        "left": [*running.left.items()],
        "changes": [
            (change.after, [*change.comes], [(number, entry.number) for number, entry in change.goes.items()])
            for change in running.changes
        ],
    }
    if graph.passed or graph.is_fed:
        scope.head["stage"] = [sorted(graph.passed), graph.is_fed]
    if graph.weights:
        scope.head["weights"] = [*graph.weights.items()]
    if running.load is not None:
        scope.head["load"] = running.load.snapshot()
    going = {entry.number: entry for change in running.changes for entry in change.goes.values()}
    entries = scope.sub("entries")
    for number, entry in sorted((going | graph.entries).items()):
        _save_entry(entry, entries.sub(str(number)))
    running.order.save(scope.sub("order"))
    if running.levels is not None:
        _save_levels(running.levels, scope.sub("levels"))
    return scope


def restored(scope: Scope, compiled: Compile, new_load: Callable[[], SharedLoad] | None = None) -> Running:
    """Return a set that goes on from what ``SET`` unpacked; ``new_load`` makes its load budget, if it has one.

    Raises
    ------
    DataError
        ``ACEP-D042``: a query means something else now; ``ACEP-D040``: its streams are not as they were written.
    """
    saved = scope.head
    check("key_idle", good=isinstance(saved["key_idle"], str | int | None))
    running = Running(saved["wanted"], key_idle=saved["key_idle"], new_load=new_load)
    running.graph.bind = from_plain(saved["options"].get("bind"))
    running.graph.weights = dict(saved.get("weights", ()))
    finite("weights", *running.graph.weights.values())
    passed, running.graph.is_fed = saved.get("stage", ((), False))
    check("stage", good=all(isinstance(one, str) for one in passed) and isinstance(running.graph.is_fed, bool))
    running.graph.passed = frozenset(passed)
    entries = [_restored_entry(one, compiled) for one in scope.parts["entries"].parts.values()]
    everyone = {entry.number: entry for entry in entries}
    numbers, ids, owners = map(list, zip(*saved["queries"], strict=True)) if saved["queries"] else ([], [], [])
    there = set(owners)  # of the others all queries are leaving
    for entry in entries:
        if entry.number in there:
            running.graph.put(entry)
    at = 0
    for owner, mine in groupby(owners):
        end = at + sum(1 for _ in mine)
        running.graph.name(everyone[owner], numbers[at:end], ids[at:end])
        at = end
    running.leaving, running.left = dict(saved["leaving"]), dict(saved["left"])
    numbers = [*running.leaving, *numbers, *saved["next"]]
    check("numbers", good={*map(type, numbers)} == {int} and min(numbers) >= 0 and max(numbers) < COUNT)
    running.graph.next_number, running.graph.ids_given = saved["next"]
    for after, comes, goes in saved["changes"]:
        check("changes", good=after is None or type(after) is int)
        change = Change(after)
        change.comes.update((number, everyone[number]) for number in comes)
        change.goes.update((number, everyone[owner]) for number, owner in goes)
        running.changes.append(change)
    running.order = Order.restored(scope.parts["order"])
    if running.load is not None:
        running.load.restore(saved["load"])
    if "levels" in scope.parts:
        running.levels = _restored_levels(running, scope.parts["levels"], scope.words, everyone)
    if running.load is not None:
        running.load.restored()
    return running


def _save_entry(entry: Entry, scope: Scope) -> None:
    scope.head |= {name: getattr(entry, name) for name in OF_ENTRY}
    if entry.horizon is not None:
        scope.head["horizon"] = entry.horizon
    kinds = None if entry.shared is None else entry.shared.kinds
    scope.head |= {"engine": entry.plan.engine, "meaning": meaning(entry.plan), "kinds": kinds}
    if entry.shared is not None and len(entry.shared):
        numbers, constants = entry.shared.waiting()
        scope.put("numbers", numbers)
        scope.put("constants", constants)


def _restored_entry(scope: Scope, compiled: Compile) -> Entry:
    saved = scope.head
    plan, template = compiled(saved)
    if meaning(plan) != saved["meaning"]:
        whose = f"the query {saved['id']!r}" if template is None else f"the template {template.text!r}"
        raise DataError(
            f"{whose} of this state means something else in this version",
            code="ACEP-D042",
            hint="go on with the version that wrote it, or start from the beginning",
        )
    for name in ("number", "level", "running", "feeders"):
        scope.number(name)
    check("until", good=saved["until"] is None or type(saved["until"]) is int)
    check("entries", good=isinstance(saved["id"], str) and isinstance(saved["publish"], str | None))
    check("horizon", good=isinstance(saved.get("horizon"), str | None))
    entry = Entry(plan=plan, horizon=saved.get("horizon"), **{name: saved[name] for name in OF_ENTRY})
    if template is not None:
        entry.shared = Shared(template, saved["kinds"])
        if scope.arrays:
            entry.shared.add_table(scope.arrays["numbers"].tolist(), scope.table("constants"))
    if entry.columns_of is not None:
        entry.columns_of = {name: tuple(columns) for name, columns in entry.columns_of.items()}
        if entry.columns_of.keys() != entry.reads:
            raise damaged_part(f"the streams that {entry.id!r} reads")
    return entry


def _save_levels(levels: Levels, scope: Scope) -> None:
    scope.head |= {"roles": levels.roles.plain, "published": levels.published}
    entries = defaultdict[object, list[int]](list)
    for of_entry, member in levels.members.items():
        entries[member.side].append(of_entry)
    for number, (key, level) in enumerate(levels.levels.items()):
        mine = scope.sub(f"level {number}", {"key": key, "reads": level.reads, "rows": level.rows})
        mine.put("types", pa.schema([*level.types.items()]))
        save_stream(level.side, mine.sub("stream"))
        members = mine.sub("members")
        for at, one in enumerate(level.side.queries):
            one.save(members.sub(str(at), {"entries": entries[one]}))


def _restored_levels(running: Running, scope: Scope, words: int, everyone: dict[int, Entry]) -> Levels:
    levels: Levels | None = None
    going = [number for change in running.changes for number in change.goes]
    known = np.concatenate((running.graph.numbered.numbers, np.array([*running.leaving, *going], np.int64)))
    for number in range(len(scope.parts)):
        mine = scope.parts[f"level {number}"]
        (at, names), reads = mine.head["key"], mine.head["reads"]
        side = restored_stream(mine.parts["stream"], words)
        if levels is None:  # level 0 comes first
            levels = Levels(running.graph, side.schema, side.roles, running.key_idle, running.load)
            levels.published = scope.number("published")
        for count in reads.values():
            number_in("reads", count, 0, COUNT)
        types = {field.name: field.type for field in mine.table("types").schema}
        level = levels.new_level(side, reads, mine.number("rows"))
        level.types = types
        levels.levels[at, None if names is None else tuple(names)] = level
        for saved in mine.parts["members"].parts.values():
            owners = [everyone[one] for one in saved.head["entries"]]
            member = new_member(level, owners[0], owners[0].columns_of)
            member.side.join()
            member.take_part()
            member.side.restore(saved)
            check("numbers", good=np.isin(member.numbers, known).all())
            for owner in owners:
                levels.know(owner, member)
    assert levels is not None, "there is level 0"
    return levels
