"""Functions with two tiers: kernels.

A kernel runs in one of two tiers. Compiled it is machine code. Interpreted it is the function that stands in the
source, run by Python on ``memoryview`` objects: an item of one is read twice as fast as one of an array, and is a
number of Python, with which it reckons faster, too. Both give the same bits, so that a run may change from one to the
other at any call; ``tiers`` says when.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import update_wrapper
from time import perf_counter
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np

from acep_approx.jit import tiers
from acep_approx.jit.marks import COLUMNS, LANES, Flags, NotCompiledError

Given = ParamSpec("Given")
Result = TypeVar("Result")

PIECE = 1024
"""Events of a call that is interpreted: a twentieth of a second, after which machine code may be there."""


class Kernel(Generic[Given, Result]):
    """A function with two tiers; see ``Compilable`` for its attributes."""

    __name__: str

    def __init__(self, function: Callable[Given, Result], flags: Flags) -> None:
        self.function: Callable[..., Result] = function
        self.flags = flags
        self.made: Any = None
        self.kinds: set[str] = set()
        self.seconds = 0.0
        self._run: Callable[..., Result] = self._choose
        update_wrapper(self, function)

    def __call__(self, *args: Given.args, **_: Given.kwargs) -> Result:
        """Run it."""
        try:
            return self._run(*args)
        except NotCompiledError:  # it is, but for other kinds of arguments
            return self._choose(*args)

    def __reduce__(self) -> str:
        """By name: another process has the same."""
        return self.__name__

    def _choose(self, *args: Any) -> Result:
        """Run it in the tier that ``tiers`` says, which stays that of the calls to come once it is compiled."""
        made = tiers.machine_code(self, args)
        if made is not None:
            self._run = made
            return self._run(*args)
        self._run = self._choose
        begun = perf_counter()
        try:
            return self.interpreted(*args)
        finally:
            tiers.note(self, perf_counter() - begun)

    @property
    def is_interpreted(self) -> bool:
        """Whether the next call may be run by Python, so that it should not be given too much."""
        return self._run == self._choose and tiers.may_interpret()

    def end_of_call(self, first: int, length: int) -> int:
        """Up to where to run columns in one call, from ``first`` on: not far as long as it is interpreted."""
        return min(first + PIECE, length) if self.is_interpreted else length

    def pieces(self, length: int) -> Iterator[slice]:
        """Columns of some length as slices for one call each."""
        first = 0
        while first < length:
            last = self.end_of_call(first, length)
            yield slice(first, last)
            first = last

    def interpreted(self, *args: Any) -> Result:
        """Run it by Python, whatever else there is."""
        with np.errstate(all="ignore"):  # what wraps around in machine code does so without a word
            return self.function(*map(plain, args))

    def compiled(self, *args: Any) -> Result:
        """Run its machine code, which is made if there is none yet."""
        result: Result = self.prepare(args)(*args)
        return result

    def if_compiled(self, *args: Any) -> Result | None:
        """Run its machine code; None where there is none yet: for callers who have a faster way than Python's loop."""
        if self._run != self._choose:
            with suppress(NotCompiledError):
                return self._run(*args)
        made = tiers.machine_code(self, args)
        if made is None:
            return None
        self._run = made
        return self._run(*args)

    def prepare(self, args: tuple[Any, ...]) -> Any:
        """Load or compile the machine code for arguments like these, without running it."""
        return tiers.made_now(self, args, says=False)


def plain(value: Any) -> Any:
    """An argument of a kernel as Python reads it fastest: records keep their class, arrays share their memory."""
    if isinstance(value, np.ndarray):
        return memoryview(value)  # type: ignore[arg-type]
    if isinstance(value, tuple):
        return tuple.__new__(type(value), map(plain, value))
    return value.item() if isinstance(value, np.generic) else value


def kernel(function: Callable[Given, Result]) -> Kernel[Given, Result]:
    """Make ``function`` a kernel; its arguments are integers and flat arrays, and records of them."""
    return Kernel(function, LANES)


def block_kernel(function: Callable[Given, Result]) -> Kernel[Given, Result]:
    """Like ``kernel``, for functions that spend their time in long loops over columns."""
    return Kernel(function, COLUMNS)
