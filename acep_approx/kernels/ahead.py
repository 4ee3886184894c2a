"""All kernels, with the kinds of arguments that they take: to be compiled ahead of time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from acep_approx.jit.kernel import Kernel
from acep_approx.jit.kinds import annotated
from acep_approx.kernels import classes, columns, group, ladders, order, pairs, watermarks
from acep_approx.kernels.cells import arclog, chains, count, detect, repeats
from acep_approx.kernels.cells import enumerate as listing
from acep_approx.kernels.rules import lockstep, sweep
from acep_approx.kernels.runs import advance, checking, lineage, partial, points, pools, saved, shared, trace

MODULES = (
    group, classes, columns, order,
    detect, arclog, count, listing, chains, repeats,
    advance, checking, lineage, partial, points, pools, saved, shared, trace,
    watermarks, pairs, ladders, lockstep, sweep,
)  # fmt: skip
"""Where kernels are."""


def all_kernels() -> Iterator[tuple[Kernel[..., Any], tuple[Any, ...]]]:
    """Each kernel with arguments of each kind that it is annotated with."""
    for module in MODULES:
        for one in vars(module).values():
            if isinstance(one, Kernel) and one.__module__ == module.__name__:
                for args in annotated(one.function):
                    yield one, args
