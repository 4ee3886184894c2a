"""What can be said of a stream that cannot be read again: how many events fit each variable."""

from __future__ import annotations

import numpy as np

from acep_approx.arrays import Ints
from acep_approx.automaton.automaton import Automaton
from acep_approx.matching.pipeline import Pipeline
from acep_approx.matching.unseen import NEAR, nearest
from acep_approx.planning.planner import Plan
from acep_approx.why.no_match.result import NoMatch, Step
from acep_approx.why.no_match.tally import Letters


def no_match_from_counters(plan: Plan, pipeline: Pipeline) -> NoMatch:
    """Why a run found nothing, as far as its counters tell.

    Parameters
    ----------
    plan : Plan
        Of the query.
    pipeline : Pipeline
        Of the run, which counted its events: ``Preparer.counts_classes``.
    """
    events = pipeline.progress.events
    if not events:
        return NoMatch(0, False, "no events", "no match: there are no events")
    if plan.query.is_algebra:
        said = f"no match: {events:,} events were read; how far they came cannot be said, as they are gone"
        return NoMatch(events, False, "unknown", said)
    fitting = _by_letter(plan.automaton, pipeline)
    letters = Letters(plan)
    present = sum(1 << number for number, count in enumerate(fitting) if count)
    types = {one.variable: one.type for one in plan.automaton.components if not one.is_negated}
    steps = tuple(Step(name, types[name], None, _most(fitting, letters.bits[name])) for name in letters.order)
    if letters.accepts(present):
        headline = f"no match: {_counts(steps)}; how far they came together cannot be said, as they are gone"
        return NoMatch(events, False, "unknown", headline, steps)
    step = letters.blocking(present)
    seen = pipeline.preparer.letters.seen
    is_type = all(types[name] is not None and types[name] not in seen for name in step)
    clauses = [_nothing_fits(name, types[name], seen - set(filter(None, types.values()))) for name in step]
    before = [one for one in steps if one.fitting]
    headline = "no match: " + (f"{_counts(before)}, but " if before else "") + ", and ".join(clauses)
    return NoMatch(events, False, "type" if is_type else "condition", headline, steps, step)


def _by_letter(automaton: Automaton, pipeline: Pipeline) -> Ints:
    """How many events each letter of the automaton holds on."""
    preparer = pipeline.preparer
    mine = [preparer.letters.letters.index(letter) for letter in automaton.letters]
    masks = np.array(preparer.classes, np.uint64)
    counts = preparer.class_counts[: len(masks)]
    return np.array([int(counts[(masks >> np.uint64(number)) & np.uint64(1) == 1].sum()) for number in mine], np.int64)


def _most(fitting: Ints, bits: int) -> int:
    return max((int(count) for number, count in enumerate(fitting) if bits >> number & 1), default=0)


def _counts(steps: tuple[Step, ...] | list[Step]) -> str:
    return ", ".join(f"{one.fitting:,} event{'' if one.fitting == 1 else 's'} fit {one.variable}" for one in steps)


def _nothing_fits(name: str, type_: str | None, others: set[str]) -> str:
    what = name if type_ is None or type_ == name else f"{type_} ({name})"
    near = nearest(str(type_), others, NEAR) if type_ is not None else None
    return f"no event fits {what}" + (f" (did you mean {near!r}?)" if near else "")
