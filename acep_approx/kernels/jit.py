"""Marks the functions that numba compiles on their first call, and the helpers that are compiled with them.

Without numba, or with ``ACEP_JIT=0`` in the environment, kernels are plain Python functions: slow, for debugging and
for line coverage.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property, update_wrapper
from importlib.util import find_spec
from typing import Any, TypeVar

import numpy as np

Function = TypeVar("Function", bound=Callable[..., Any])
Flags = tuple[int, int, int]
"""What LLVM does: packs neighbouring statements, vectorises loops, and its level of optimisation."""

IS_COMPILED = os.environ.get("ACEP_JIT") != "0" and find_spec("numba") is not None

ix = np.uint64
"""Kernels wrap every index in this. An index that might be negative costs a test, and keeps LLVM from seeing that
neighbouring indices are neighbours: with it the detection kernel is up to 2.4 times faster."""


LANES: Flags = (1, 0, 3)
"""For short inner loops over lanes: packing neighbouring statements (SLP) speeds them up by 1.4-2.3 times, the loop
vectoriser slows them down."""
COLUMNS: Flags = (0, 1, 2)
"""For long loops over columns: they need the loop vectoriser, and gain nothing from the highest level of optimisation,
which takes a quarter longer."""


class _Kernel:
    """A function that is compiled, or loaded, when it is first called."""

    def __init__(self, function: Callable[..., Any], flags: Flags) -> None:
        self._flags = flags
        self._run = self._first_run
        update_wrapper(self, function)

    @cached_property
    def compiled(self) -> Any:
        """What numba made of it."""
        from acep_approx.kernels.compiling import compiled  # loads numba

        return compiled(self.__wrapped__, self._flags)  # type: ignore[attr-defined]

    def _first_run(self, *args: Any) -> Any:
        self._run = self.compiled
        return self._run(*args)

    def __call__(self, *args: Any) -> Any:
        return self._run(*args)


class _Helper:
    """A function that is compiled with the kernels that call it; from Python it is a plain function."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        self._options = options
        update_wrapper(self, function)

    @cached_property
    def compiled(self) -> Any:
        """What numba made of it."""
        from acep_approx.kernels.helpers import helper  # loads all that numba compiles with

        return helper(self.__wrapped__, **self._options)  # type: ignore[attr-defined]

    @property
    def _numba_type_(self) -> Any:
        """What numba asks for when it comes upon this in a kernel."""
        return self.compiled._numba_type_

    def __call__(self, *args: Any) -> Any:
        return self.__wrapped__(*args)  # type: ignore[attr-defined]


def kernel(function: Function) -> Function:
    """Compile ``function`` on its first call; its arguments are integers and flat arrays, always of the same types."""
    if not IS_COMPILED:
        return function
    return _Kernel(function, LANES)  # type: ignore[return-value]


def block_kernel(function: Function) -> Function:
    """Like ``kernel``, for functions that spend their time in long loops over columns."""
    if not IS_COMPILED:
        return function
    return _Kernel(function, COLUMNS)  # type: ignore[return-value]


def inline(function: Function) -> Function:
    """A helper that kernels call, compiled into each place where it is called: arrays cost a call up to 40 ns."""
    if not IS_COMPILED:
        return function
    return _Helper(function, forceinline=True)  # type: ignore[return-value]


def called(function: Function) -> Function:
    """A helper that is too large to be compiled into each place where it is called."""
    if not IS_COMPILED:
        return function
    return _Helper(function)  # type: ignore[return-value]


def apart(function: Function) -> Function:
    """A helper that stays a function of its own: ``called`` ones are taken into helpers that are ``inline``."""
    if not IS_COMPILED:
        return function
    return _Helper(function, forceinline=False)  # type: ignore[return-value]


def compact(function: Function) -> Function:
    """Like ``apart``, for loops that are short: LLVM does not make them fit for long ones."""
    if not IS_COMPILED:
        return function
    return _Helper(function, is_compact=True, forceinline=False)  # type: ignore[return-value]
