"""Which queries of a set may be matched apart, and by which key columns.

Queries that feed one another stay together. What one publishes stays with the events that it was made of where it
shows their key under the name that the key has: so a reader with that key meets the same events as without a split.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from acep_approx.events.roles import Roles
from acep_approx.query.syntax import Attribute
from acep_approx.subscriptions.graph import Entry, Graph


@dataclass
class Group:
    """Queries that can be matched apart by the same columns.

    Attributes
    ----------
    keys : tuple of str
        Columns; none: the queries need all events together.
    families : list of list of str
        The ids of those that feed one another stand together.
    """

    keys: tuple[str, ...]
    families: list[list[str]] = field(default_factory=list)

    @property
    def ids(self) -> list[str]:
        """The ids of all of its queries."""
        return [one for family in self.families for one in family]

    def dealt(self, shares: int) -> Iterator[list[str]]:
        """Its queries in at most so many shares, all of about the same size; those that feed one another together."""
        dealt: list[list[str]] = [[] for _ in range(max(shares, 1))]
        for family in sorted(self.families, key=len, reverse=True):
            min(dealt, key=len).extend(family)
        return (share for share in dealt if share)


def groups_of(graph: Graph, roles: Roles) -> list[Group]:
    """The queries of a set, by the columns that they can be matched apart by; those without any come last.

    Queries with more keys than others are with those whose keys are among theirs: fewer copies of events are needed.

    Complexity: O(queries · log queries + streams).
    """
    groups: dict[tuple[str, ...], Group] = {}
    for family in families_of(graph):
        keys = keys_of(family.entries, roles)
        group = groups.setdefault(keys, Group(keys))
        group.families += family.ids
    found: list[Group] = []
    for group in sorted((one for one in groups.values() if one.keys), key=lambda one: len(one.keys)):
        wider = next((one for one in found if {*one.keys} <= {*group.keys}), None)
        if wider is None:
            found.append(group)
        else:
            wider.families += group.families
    return [*found, *(group for group in groups.values() if not group.keys)]


class Family(NamedTuple):
    """Entries that feed one another, or are parts of one query.

    Attributes
    ----------
    entries : list of Entry
    ids : list of list of str
        Of their queries: those that must stay together in one list. Queries of one entry that nobody feeds, and that
        feed nobody, are each by themselves.
    """

    entries: list[Entry]
    ids: list[list[str]]


def families_of(graph: Graph, among: Container[str] | None = None) -> list[Family]:
    """The entries of a set, or of ``among`` its queries, as families.

    Complexity: O(queries + streams), nearly.
    """
    entries: dict[int, Entry] = {}
    ids: dict[int, list[str]] = {}
    for _, id_, entry in graph.numbered:
        if among is None or id_ in among:
            entries[entry.number] = entry
            ids.setdefault(entry.number, []).append(id_)
    root = {number: number for number in entries}

    def find(number: int) -> int:
        while root[number] != number:
            root[number] = root[root[number]]
            number = root[number]
        return number

    links: dict[str, int] = {}
    for number, one in entries.items():
        for name in (*(f"stream {stream}" for stream in streams_of(graph, one)), *_of_parts(one)):
            root[find(number)] = find(links.setdefault(name, number))
    found: dict[int, list[int]] = {}
    for number in entries:
        found.setdefault(find(number), []).append(number)
    families: list[Family] = []
    for numbers in found.values():
        mine = [id_ for number in numbers for id_ in ids[number]]
        together = [[*dict.fromkeys(mine)]] if len(numbers) > 1 else [[id_] for id_ in mine]
        families.append(Family([entries[number] for number in numbers], together))
    return families


def streams_of(graph: Graph, one: Entry) -> list[str]:
    """The streams that an entry reads from others, or publishes."""
    return [*(name for name in one.reads if name in graph.publishers), *filter(None, (one.publish,))]


def _of_parts(one: Entry) -> list[str]:
    """What links the parts of one query."""
    return [f"query {one.id}"] if one.shared is None else []


def keys_of(entries: Sequence[Entry], roles: Roles) -> tuple[str, ...]:
    """Return the columns by which all entries of a family can be matched apart, in the order of the first one."""
    own = [_own_keys(one, roles) for one in entries]
    shared = [key for key in own[0] if all(key in others for others in own)]
    if len(entries) > 1:
        publishers = [one for one in entries if one.publish is not None]
        shared = [key for key in shared if all(_shows(one, key, roles) for one in publishers)]
    return tuple(shared)


def _own_keys(entry: Entry, roles: Roles) -> tuple[str, ...]:
    plan = entry.plan
    return () if plan.counted == "stream" else tuple(map(roles.column, plan.keys))


def _shows(publisher: Entry, key: str, roles: Roles) -> bool:
    """Whether what a query publishes has a key of its events under the same name."""
    return any(
        output.name == key and isinstance(output.value, Attribute) and roles.column(output.value.name or "") == key
        for output in publisher.plan.query.outputs
    )
