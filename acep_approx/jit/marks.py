"""Marks the functions that kernels call, and says how those and kernels are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

Flags = tuple[int, int, int]
"""What LLVM does: packs neighbouring statements, vectorises loops, and its level of optimisation."""
LANES: Flags = (1, 0, 3)
"""For short inner loops over lanes: packing neighbouring statements (SLP) speeds them up by 1.4-2.3 times, the loop
vectoriser slows them down."""
COLUMNS: Flags = (0, 1, 2)
"""For long loops over columns: they need the loop vectoriser, and gain nothing from the highest level of optimisation,
which takes a quarter longer."""
BARE: dict[str, Any] = {"nogil": True, "_nrt": False, "error_model": "numpy"}
"""Kernels make no arrays and keep none: counting references to their arguments would cost more than they do. The flag
has an underscore, but has been there since numba 0.20."""

HELPERS: dict[Callable[..., Any], dict[str, Any]] = {}
"""The functions that kernels call, with how they are compiled; from Python they are plain functions."""


class NotCompiledError(Exception):
    """There is no machine code for these kinds of arguments; nothing was run."""


class Compilable(Protocol):
    """A kernel, as what compiles it sees it.

    Attributes
    ----------
    function : callable
        What stands in the source.
    flags : tuple of int
        What LLVM does with it.
    made : numba dispatcher or None
        Its machine code, for the kinds of arguments in ``kinds``.
    seconds : float
        For which Python has run it so far.
    """

    __module__: str
    __name__: str
    function: Callable[..., Any]
    flags: Flags
    made: Any
    kinds: set[str]
    seconds: float


def inline(function: Function) -> Function:
    """A helper that kernels call, compiled into each place where it is called: arrays cost a call up to 40 ns."""
    return _helper(function, forceinline=True)


def called(function: Function) -> Function:
    """A helper that is too large to be compiled into each place where it is called."""
    return _helper(function)


def apart(function: Function) -> Function:
    """A helper that stays a function of its own: ``called`` ones are taken into helpers that are ``inline``."""
    return _helper(function, forceinline=False)


def compact(function: Function) -> Function:
    """Like ``apart``, for loops that are short: LLVM does not make them fit for long ones."""
    return _helper(function, is_compact=True, forceinline=False)


def _helper(function: Function, **options: Any) -> Function:
    HELPERS[function] = options
    return function
