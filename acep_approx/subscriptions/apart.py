"""Which queries of a set may be matched apart, and by which key columns.

Queries that feed one another stay together. What one publishes stays with the events that it was made of where it
shows their key under the name that the key has: so a reader with that key meets the same events as without a split.
Where they have no such key in common, those that read events alone come first, and pass on what they publish to the
others, which have keys of their own (``stages.py`` says how).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
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
    passes : set of str
        The streams that some of them publish for queries of a second stage.
    is_second : bool
        Whether they read what queries of other groups publish; these are among its families, and run there.
    """

    keys: tuple[str, ...]
    families: list[list[str]] = field(default_factory=list)
    passes: set[str] = field(default_factory=set)
    is_second: bool = False

    def take(self, other: Group) -> None:
        """Take in the queries of another group."""
        self.families += other.families
        self.passes |= other.passes

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


def groups_of(graph: Graph, roles: Roles, *, in_stages: bool = False) -> list[Group]:
    """The queries of a set, by the columns that they can be matched apart by.

    Queries with more keys than others are with those whose keys are among theirs: fewer copies of events are needed.
    Those without any keys come last in each stage, and the second stage behind the first.

    Parameters
    ----------
    graph : Graph
    roles : Roles
    in_stages : bool, default False
        Whether queries that feed one another may be matched apart by different keys, in two stages.

    Complexity: O(queries · log queries + streams).
    """
    first: list[Group] = []
    second: list[Group] = []
    for family in families_of(graph):
        keys = keys_of(family.running_in(graph), roles)
        stages = _two_stages(family, roles) if in_stages and not keys else ()
        for group in stages or (Group(keys, family.ids),):
            (second if group.is_second else first).append(group)
    return [*_merged(first), *_merged(second)]


def _merged(groups: Sequence[Group]) -> list[Group]:
    """Groups of one stage, those together whose keys go together."""
    found: list[Group] = []
    without = Group((), is_second=any(group.is_second for group in groups))
    for group in sorted(groups, key=lambda one: len(one.keys)):
        if not group.keys:
            without.take(group)
            continue
        wider = next((one for one in found if {*one.keys} <= {*group.keys}), None)
        if wider is None:
            found.append(wider := Group(group.keys, is_second=group.is_second))
        wider.take(group)
    return [*found, without] if without.families else found


def _two_stages(family: Family, roles: Roles) -> list[Group]:
    """Queries that feed one another, as groups of two stages; none where that is of no use."""
    writers = [entry for entry in family.entries if not entry.level]
    readers = [entry for entry in family.entries if entry.level]
    if not readers or any(entry.plan.cel is not None for entry in writers):
        return []  # results in CEL do not say which event completed them
    groups = []
    for mine in _linked(writers, _parts_of):
        ids = [[id_] for id_ in family.of[mine[0].number]]
        passes = {entry.publish for entry in mine if entry.publish is not None}
        groups.append(Group(keys_of(mine[:1], roles), ids, passes=passes))
    among = {entry.publish for entry in readers if entry.publish is not None}
    for mine in _linked(readers, lambda one: (*among.intersection({*one.reads, str(one.publish)}), *_parts_of(one))):
        reads = frozenset[str]().union(*(one.reads for one in mine))
        run = [*(entry for entry in writers if entry.publish in reads), *mine]
        ids = [[*dict.fromkeys(id_ for one in run for id_ in family.of[one.number])]]
        groups.append(Group(keys_of(mine, roles), ids, is_second=True))
    return groups if any(group.keys for group in groups) else []


class Family(NamedTuple):
    """Entries that feed one another, or are parts of one query.

    Attributes
    ----------
    entries : list of Entry
    ids : list of list of str
        Of their queries: those that must stay together in one list. Queries of one entry that nobody feeds, and that
        feed nobody, are each by themselves.
    of : dict of int to list of str
        The ids of the queries of each entry, by its number.
    """

    entries: list[Entry]
    ids: list[list[str]]
    of: dict[int, list[str]]

    def running_in(self, graph: Graph) -> list[Entry]:
        """Those that run: in a second stage the others do so elsewhere."""
        return [entry for entry in self.entries if entry.level or not graph.is_fed]


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
    families: list[Family] = []
    for mine in _linked(entries.values(), lambda one: (*streams_of(graph, one), *_parts_of(one))):
        own = [id_ for one in mine for id_ in ids[one.number]]
        together = [[*dict.fromkeys(own)]] if len(mine) > 1 else [[id_] for id_ in own]
        families.append(Family(mine, together, {one.number: ids[one.number] for one in mine}))
    return families


def _linked(entries: Collection[Entry], links_of: Callable[[Entry], Iterable[str]]) -> list[list[Entry]]:
    """Entries, those together that have a link in common, or with others that have one with both."""
    root = {one.number: one.number for one in entries}

    def find(number: int) -> int:
        while root[number] != number:
            root[number] = root[root[number]]
            number = root[number]
        return number

    links: dict[str, int] = {}
    for one in entries:
        for name in links_of(one):
            root[find(one.number)] = find(links.setdefault(name, one.number))
    found: dict[int, list[Entry]] = {}
    for one in entries:
        found.setdefault(find(one.number), []).append(one)
    return [*found.values()]


def streams_of(graph: Graph, one: Entry) -> list[str]:
    """The streams that an entry reads from others, or publishes."""
    return [*(name for name in one.reads if name in graph.publishers), *filter(None, (one.publish,))]


def _parts_of(one: Entry) -> list[str]:
    """What links the parts of one query: no stream has such a name."""
    return [f"\0{one.id}"] if one.shared is None else []


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
