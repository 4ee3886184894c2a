"""Kernels in a tier that a test says, call by call, whatever ``ACEP_JIT`` asks for; interpreted calls are short.

What comes of a run is compared bit by bit: tables as Arrow writes them, states as they are saved, counters, and errors
with their codes and texts.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from acep_approx.engines.runs import runs
from acep_approx.errors import AcepError
from acep_approx.jit import kernel as jit

EVENTS, STEPS = 3, 5
"""Of one interpreted call: as many events, and run-steps."""

Tier = Callable[[], bool]
"""Whether the next call is interpreted."""


def never() -> bool:
    """All calls are compiled."""
    return False


def always() -> bool:
    """All calls are interpreted."""
    return True


def at_random(seed: int) -> Tier:
    """Half of the calls are."""
    dice = Random(seed)
    return lambda: dice.random() < 0.5


@contextmanager
def tier(is_interpreted: Tier) -> Iterator[None]:
    """Run each call of a kernel in the tier that is said then."""

    def call(self: jit.Kernel[..., Any], *args: Any) -> Any:
        return self.interpreted(*args) if is_interpreted() else self.compiled(*args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jit.Kernel, "__call__", call)
        if is_interpreted is not never:
            patch.setattr(jit.Kernel, "is_interpreted", True)
            patch.setattr(jit, "PIECE", EVENTS)
            patch.setattr(runs, "SLICE", STEPS)
        yield


def bits(value: Any) -> Any:
    """What is equal only where all bits are."""
    if isinstance(value, pa.Table):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, value.schema) as writer:
            writer.write_table(value.combine_chunks())
        return sink.getvalue().to_pybytes()
    if isinstance(value, dict):
        return {name: bits(one) for name, one in value.items()}
    return [bits(one) for one in value] if isinstance(value, (list, tuple)) else repr(value)


def outcome(run: Callable[[], Any], is_interpreted: Tier) -> Any:
    """What a run gives, or the error that it ends with; a warning of numpy is none of them."""
    with tier(is_interpreted), warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        try:
            return bits(run())
        except AcepError as error:
            return type(error).__name__, error.code, str(error)


def assert_same(run: Callable[[], Any], seed: int = 0) -> Any:
    """A run gives the same compiled, interpreted, and where the tier changes at random; returns it as compiled."""
    expected = outcome(run, never)
    assert outcome(run, always) == expected, "interpreted"
    assert outcome(run, at_random(seed)) == expected, f"tiers change, seed {seed}"
    return expected
