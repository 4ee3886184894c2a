"""Which matches are listed, by brute force: MAXIMAL, and the clauses that go by the order of matches. Tests only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from acep_approx.query.syntax import Absent, AllOf, Atom, Either, Pattern, QuerySyntax, Repeat, Selection, Spaced
from acep_approx.query.syntax import Sequence as Seq
from tests.naive import Binding, PartitionSearch, partitions
from tests.naive_order import in_order

Rows = Sequence[Mapping[str, Any]]


def reported_matches(query: QuerySyntax, rows: Rows, matches: Mapping[Binding, int]) -> dict[Binding, int]:
    """What the clauses of a query leave of its ``matches``, in each partition, in their order of report."""
    searches = [PartitionSearch(query, rows, part) for part in partitions(query, rows)]
    waiting = {bound for search in searches for bound in waiting_matches(search, matches)}
    asked = query.selection
    left = [bound for bound in matches if not (asked.maximal and is_contained(bound, matches))]
    ordered = in_order(query, rows, {bound: matches[bound] for bound in left}, waiting)
    kept: set[Binding] = set()
    for part in (set(search.part) for search in searches):
        listed: list[Binding] = []
        for bound in ordered:
            if bound[0][0] in part and is_allowed(asked, rows, bound, listed):
                listed.append(bound)
        kept |= set(listed)
    return {bound: matches[bound] for bound in ordered if bound in kept}


# --- MAXIMAL ----------------------------------------------------------------------------------------------------------


def is_contained(bound: Binding, matches: Mapping[Binding, int]) -> bool:
    """Whether another match has all events of this one, and more."""
    return any({row for row, _ in bound} < {row for row, _ in other} for other in matches)


def can_be_followed(search: PartitionSearch, row: int) -> bool:
    """Whether an atom that this event can be has another one behind it somewhere in the pattern."""
    return any(search.conditions.fits(atom, row) for atom in followed(search.query.pattern, is_last=True))


def followed(tree: Pattern, *, is_last: bool) -> Iterator[Atom]:
    """The atoms of a part of a pattern that another atom can follow; ``is_last``: nothing comes after the part."""
    match tree:
        case Atom():
            yield from () if is_last else (tree,)
        case Seq(parts=parts):
            letters = [part for part in parts if not isinstance(part, Absent)]
            for part in letters:
                yield from followed(part, is_last=is_last and part is letters[-1])
        case Either(options=options):
            for option in options:
                yield from followed(option, is_last=is_last)
        case Spaced(part=part):
            yield from followed(part, is_last=is_last)
        case AllOf(parts=parts):
            for part in parts:
                yield from followed(part, is_last=False)
        case Repeat(part=part, most=most):
            yield from followed(part, is_last=is_last and most == 1)


def ends_late(tree: Pattern, *, has_begun: bool = False) -> bool:
    """Whether a match can end with a negation of this part; ``has_begun``: an event may stand before the part."""
    match tree:
        case Absent():
            return has_begun
        case Seq(parts=parts):
            ends = [i for i, part in enumerate(parts) if all(map(is_optional, parts[i + 1 :]))]
            return any(ends_late(parts[i], has_begun=has_begun or any(map(has_events, parts[:i]))) for i in ends)
        case Either(options=options):
            return any(ends_late(option, has_begun=has_begun) for option in options)
        case AllOf(parts=parts):
            return any(ends_late(part, has_begun=True) for part in parts)
        case Repeat(part=part, most=most):
            return ends_late(part, has_begun=has_begun or most != 1)
        case Spaced(part=part):
            return ends_late(part, has_begun=has_begun)
    return False


def has_events(tree: Pattern) -> bool:
    """Whether a part of a pattern can have events."""
    match tree:
        case Atom():
            return True
        case Seq(parts=parts) | AllOf(parts=parts) | Either(options=parts):
            return any(map(has_events, parts))
        case Repeat(part=part) | Spaced(part=part):
            return has_events(part)
    return False


def is_optional(tree: Pattern) -> bool:
    """Whether a part of a pattern can be there without any event."""
    match tree:
        case Atom():
            return False
        case Seq(parts=parts) | AllOf(parts=parts):
            return all(map(is_optional, parts))
        case Either(options=options):
            return any(map(is_optional, options))
        case Spaced(part=part):
            return is_optional(part)
        case Repeat(part=part, least=least):
            return least == 0 or is_optional(part)
    return True


# --- what goes by the order -------------------------------------------------------------------------------------------


def is_allowed(asked: Selection, rows: Rows, bound: Binding, listed: Sequence[Binding]) -> bool:
    """Whether a match may be listed after those that were ``listed`` before it."""
    if not listed:
        return True
    first, end, before = bound[0][0], bound[-1][0], listed[-1]
    if asked.first and any(other[0][0] == first for other in listed):
        return False
    if asked.consume and any({row for row, _ in other} & {row for row, _ in bound} for other in listed):
        return False
    if asked.every is not None and rows[end]["ts"] - rows[before[-1][0]]["ts"] < asked.every.amount:
        return False
    if asked.skip is None:
        return True
    if asked.skip.to == "past last row":
        return first > before[-1][0]
    named = [row for row, variable in before if variable == asked.skip.variable]
    if asked.skip.to == "next row" or not named:
        return first > before[0][0]
    return first >= (named[0] if asked.skip.to == "first" else named[-1])


# --- what waits -------------------------------------------------------------------------------------------------------


def waiting_matches(search: PartitionSearch, matches: Mapping[Binding, int]) -> set[Binding]:
    """The matches of a partition that wait for the end of their window."""
    part, asked = set(search.part), search.query.selection
    mine = {bound for bound in matches if bound[0][0] in part}
    if asked.maximal or asked.is_all:
        if ends_late(search.query.pattern):
            return mine
        return {bound for bound in mine if asked.maximal and can_be_followed(search, bound[-1][0])}
    return with_negation_at_the_end(search)


def with_negation_at_the_end(search: PartitionSearch) -> set[Binding]:
    """The matches that only with a negation at the end can have so few errors.

    Whatever comes after its last event plays no role: that is not known when it begins to wait.
    """
    least: dict[Binding, tuple[int, bool]] = {}
    for path in search.paths():
        if search.negations_hold(path._replace(gaps=path.gaps[:-1])):
            bound, way = search.identity(path), (path.err, bool(path.gaps[-1]))
            least[bound] = min(way, least.get(bound, way))
    return {bound for bound, (_, waits) in least.items() if waits}
