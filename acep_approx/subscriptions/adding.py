"""What a query becomes in a set: one entry, or several that feed one another; and what cannot be in a set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from acep_approx.errors import QueryError, UsageError
from acep_approx.matching.outputs.kinds import KINDS, MATCHES
from acep_approx.planning.planner import Plan
from acep_approx.query.shape import atoms
from acep_approx.query.syntax import Machine
from acep_approx.subscriptions.graph import Entry
from acep_approx.subscriptions.members import NUMBER


def entries_of(
    plans: Sequence[Plan], text: str, output: str, *, id: str, first: int  # noqa: A002
) -> list[Entry]:
    """The parts of a query, the one whose results are shown last.

    A query that publishes, in a set whose output is not ``matches``, has one part more: the events of a stream are
    matches. So has one in CEL of which parts are streams of their own.

    Parameters
    ----------
    plans : sequence of Plan
        Of its automata; those before the last one feed it.
    text : str
    output : {"matches", "points", "counts"}
    id : str
    first : int
        The number of the first part.

    Raises
    ------
    UsageError, QueryError
        Those of ``check``.
    """
    made: list[Entry] = []
    for place, plan in enumerate(plans):
        check(plan)
        publish, part = plan.query.publish, None if plan.cel is None else (place, first)
        is_last = place == len(plans) - 1
        if publish is not None and (not is_last or not KINDS[output].binds):
            number = first + len(made)
            made.append(
                Entry(number, id, plan, text, publish, MATCHES, is_shown=False, feeders=len(made), part=part)
            )
            publish = None
        if is_last:
            made.append(Entry(first + len(made), id, plan, text, publish, output, feeders=len(made), part=part))
    return made


def check(plan: Plan) -> None:
    """Refuse a query that cannot be in a set.

    Raises
    ------
    UsageError
        ``ACEP-U064``: an automaton written by hand; ``ACEP-U066``: a name is taken.
    QueryError
        ``ACEP-Q930``: it publishes what is known late.
    """
    query: Any = plan.query
    if isinstance(query.pattern, Machine):
        raise UsageError(
            "an automaton written by hand (PATTERN AUTOMATON) and a set of queries do not go together yet",
            code="ACEP-U064",
            hint="run it by itself: acep run QUERY INPUT (compile_query(text).matcher() in Python)",
        )
    if query.publish is not None and plan.registers is not None and plan.registers.has_late_ends:
        raise QueryError(
            f"it cannot PUBLISH {query.publish}: a negation at its end makes matches wait, so that they are known "
            "after the time that their events would have",
            code="ACEP-Q930",
            hint="leave PUBLISH out, or end the pattern with an event",
            **_place(query),
        )
    if plan.cel is None:
        names = [atom.variable for atom in atoms(query.pattern)] if not query.is_regex else []
        taken = [*names, *(output.name for output in query.outputs), *(one.name for one in query.equivalences)]
        if NUMBER in taken:
            raise UsageError(
                f"the name {NUMBER!r} is taken: results of a set have a column {NUMBER!r} of their own",
                code="ACEP-U066",
                hint="choose another name for the variable, for the output of RETURN, or for the column of the key",
            )


def _place(query: Any) -> dict[str, Any]:
    for name, (start, end) in query.places:
        if name == "PUBLISH":
            return {"text": query.text, "start": start, "end": end}
    return {"text": query.text}
