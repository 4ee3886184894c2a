"""Variants of the kernel of circles that are known to be wrong, and the first random world that shows it.

For plain Python, where kernels can be changed line by line like any other code.
"""

from __future__ import annotations

import inspect
import textwrap

from acep_approx.kernels.rules import lockstep
from acep_approx.rules.lockstep import loop
from tests.noticing import first_noticed
from tests.rule_runs import disagreement
from tests.rule_worlds import rule_world

ACTS = "        for h in range(before, hits):\n"
"""Where the kernel begins to write what an event caused."""


def rewritten(function: str, old: str, new: str) -> None:
    """Change lines of a kernel; they must fit exactly."""
    source = inspect.getsource(getattr(lockstep, function))
    assert source.count(old) == 1, f"{function} has changed: the mutant does not fit any more\n{old}"
    changed = dict(vars(lockstep), inline=lambda kernel: kernel, kernel=lambda kernel: kernel)
    exec(textwrap.dedent(source.replace(old, new)), changed)
    setattr(lockstep, function, changed[function])
    if hasattr(loop, function):
        setattr(loop, function, changed[function])


def rules_see_what_others_wrote_for_the_event() -> None:
    """The actions of a rule are run before the next rule is asked."""
    source = inspect.getsource(lockstep.lockstep)
    acts = source[source.index(ACTS) : source.index("    undo_all(")]
    at_once = textwrap.indent(acts.replace("range(before, hits)", "range(hits - 1, hits)"), " " * 12)
    rewritten("lockstep", f"{' ' * 20}hits += 1\n{acts}", f"{' ' * 20}hits += 1\n{at_once}")


def no_event_sees_a_write_of_its_batch() -> None:
    """Nothing is written before the batch is done."""
    rewritten("lockstep", ACTS, ACTS.replace("before", "hits"))


def when_is_not_asked() -> None:
    """All matches act."""
    rewritten("lockstep", "HIT_ACTS] == 0", "HIT_ACTS] < 0")


def writes_are_those_of_the_first_event() -> None:
    """What is written is what the first event that may complete a match says."""
    rewritten("lockstep", "= place + of.entries[entry + FINISHES]", "= place")


def keys_share_their_cells() -> None:
    """Partial matches of one key go on with the events of others."""
    rewritten("lockstep", "+ slot * detection", "+ 0 * detection")


def letters_of_reads_are_left_out() -> None:
    """What is asked of the store always holds."""
    rewritten("outcome", "int(holds(of.which[x], i, of, events, store))", "1")


def nothing() -> None:
    """The kernel itself."""


MUTANTS = (
    nothing,
    rules_see_what_others_wrote_for_the_event,
    no_event_sees_a_write_of_its_batch,
    when_is_not_asked,
    writes_are_those_of_the_first_event,
    keys_share_their_cells,
    letters_of_reads_are_left_out,
)

SHOWN_BY = {"rules_see_what_others_wrote_for_the_event": 53}
"""The first world that shows a mutant, where many come before it."""


def noticed(mutant: str, worlds: int) -> int:
    """A world that shows that a mutant is wrong; -1 if none does."""
    {change.__name__: change for change in MUTANTS}[mutant]()
    return first_noticed(lambda seed: disagreement(rule_world(seed, "cells"), 2 * seed), worlds, SHOWN_BY.get(mutant))
