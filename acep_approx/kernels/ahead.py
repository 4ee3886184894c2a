"""All kernels, with the kinds of arguments that they take: to be compiled ahead of time."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from queue import SimpleQueue
from subprocess import PIPE
from typing import Any

from acep_approx.jit import background
from acep_approx.jit.compiler import COMPILED
from acep_approx.jit.kernel import Kernel
from acep_approx.jit.kinds import annotated
from acep_approx.jit.tiers import cores
from acep_approx.kernels import (
    best,
    classes,
    columns,
    group,
    integer_keys,
    ladders,
    maximal,
    order,
    pairs,
    texts,
    watermarks,
    words,
)
from acep_approx.kernels.cells import arclog, chains, count, detect, repeats
from acep_approx.kernels.cells import enumerate as listing
from acep_approx.kernels.rules import doubt, lockstep, lost, sweep
from acep_approx.kernels.runs import advance, expected, lineage, partial, pools, saved, selection, trace
from acep_approx.kernels.search import end_search, kept

MODULES = (
    advance, end_search, kept, lineage, partial, pools, saved, trace, selection,
    detect, arclog, count, listing, chains, repeats,
    watermarks, pairs, ladders, lockstep, sweep, maximal, best, doubt, lost, expected,
    group, classes, columns, order, texts, integer_keys, words,
)  # fmt: skip
"""Where kernels are. What takes longest comes first: it takes two thirds of the time."""
MOST_PROCESSES = 4
"""More would only wait for the kernel that takes longest."""


def all_kernels() -> Iterator[tuple[Kernel[..., Any], tuple[Any, ...]]]:
    """Each kernel with arguments of each kind that it is annotated with."""
    for module in MODULES:
        for one in vars(module).values():
            if isinstance(one, Kernel) and one.__module__ == module.__name__:
                for args in annotated(one.function):
                    yield one, args


def compile_all() -> Iterator[int]:
    """Compile all kernels that are not kept yet, in several processes; gives how many are done so far.

    Raises
    ------
    RuntimeError
        One cannot be compiled.
    """
    idle: SimpleQueue[Any] = SimpleQueue()

    def is_compiled(kernel: Kernel[..., Any], args: tuple[Any, ...]) -> bool:
        process = idle.get()
        try:
            background.ask(process, kernel, args)
            return bool(process.stdout.read(1) == COMPILED.encode())
        finally:
            idle.put(process)

    kernels, args = zip(*all_kernels(), strict=True)
    with ExitStack() as ends, ThreadPoolExecutor(processes := min(cores(), MOST_PROCESSES)) as pool:
        for _ in range(processes):
            idle.put(ends.enter_context(background.started(stdout=PIPE)))
        for number, good in enumerate(pool.map(is_compiled, kernels, args), 1):
            if not good:
                raise RuntimeError(f"{kernels[number - 1].__name__} cannot be compiled")
            yield number
