"""The only module that imports numba, but for ``helpers``: compiles kernels, on first call, from disk where it can.

Without numba, or with ``ACEP_JIT=0`` in the environment, kernels are plain Python functions: slow, for debugging and
for line coverage.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache, update_wrapper
from hashlib import sha256
from importlib.resources import files
from typing import Any, TypeVar

import numpy as np

Function = TypeVar("Function", bound=Callable[..., Any])

try:
    if os.environ.get("ACEP_JIT") == "0":
        raise ImportError
    import numba
    from numba.core import config as _config
    from numba.core.caching import FunctionCache as _FunctionCache

    from acep_approx.kernels.helpers import helper
except ImportError:
    numba = None
    _FunctionCache = object


ix = np.uint64
"""Kernels wrap every index in this. An index that might be negative costs a test, and keeps LLVM from seeing that
neighbouring indices are neighbours: with it the detection kernel is up to 2.4 times faster."""


_BARE: dict[str, Any] = {"_nrt": False, "error_model": "numpy"}
"""Kernels make no arrays and keep none: counting references to their arguments would cost more than they do. The flag
has an underscore, but has been there since numba 0.20."""


@cache
def _sources() -> str:
    """A digest of the sources of all kernels."""
    digest = sha256()
    folder = files("acep_approx.kernels")
    for part in (folder, folder / "cells", folder / "runs"):
        for source in sorted(part.iterdir(), key=lambda item: item.name):
            if source.name.endswith(".py"):
                digest.update(source.read_bytes())
    return digest.hexdigest()


class _Cache(_FunctionCache):  # type: ignore[misc]
    """Keeps compiled code on disk for the sources that it was made of.

    Numba looks at the file of a kernel alone, not at those of the helpers compiled into it, and only at its time and
    size, which an upgrade may leave as they were.
    """

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return (*super()._index_key(sig, codegen), _sources())


class _Kernel:
    """A compiled function with LLVM set for our loops while it compiles.

    Kernels with short inner loops over lanes: packing neighbouring statements (SLP) speeds them up by 1.4-2.3 times,
    the loop vectoriser slows them down; kernels with long loops over columns need it, and gain nothing from the highest
    level of optimisation, which takes a quarter longer. The flags are global in numba, so they are set only during
    compilation.
    """

    def __init__(self, function: Callable[..., Any], flags: tuple[int, int, int]) -> None:
        self._flags = flags
        self._compiled = numba.njit(nogil=True, **_BARE)(function)
        with suppress(RuntimeError):  # no place to keep compiled code, e.g. a read-only container without HOME
            self._compiled._cache = _Cache(function)
        update_wrapper(self, function)

    def __call__(self, *args: Any) -> Any:
        if self._compiled.signatures:
            return self._compiled(*args)
        before = _config.SLP_VECTORIZE, _config.LOOP_VECTORIZE, _config.OPT
        slp, loops, level = self._flags
        _config.SLP_VECTORIZE, _config.LOOP_VECTORIZE, _config.OPT = slp, loops, type(_config.OPT)(level)
        collects = gc.isenabled()
        gc.disable()  # compiling makes millions of objects and no garbage to speak of: a tenth of its time
        try:
            return self._compiled(*args)
        finally:
            if collects:
                gc.enable()
            _config.SLP_VECTORIZE, _config.LOOP_VECTORIZE, _config.OPT = before


def kernel(function: Function) -> Function:
    """Compile ``function`` on its first call; its arguments are integers and flat arrays, always of the same types."""
    if numba is None:
        return function
    return _Kernel(function, (1, 0, 3))  # type: ignore[return-value]


def block_kernel(function: Function) -> Function:
    """Like ``kernel``, for functions that spend their time in long loops over columns."""
    if numba is None:
        return function
    return _Kernel(function, (0, 1, 2))  # type: ignore[return-value]


def inline(function: Function) -> Function:
    """A helper that kernels call, compiled into each place where it is called: arrays cost a call up to 40 ns."""
    if numba is None:
        return function
    compiled: Function = helper(function, nogil=True, forceinline=True, **_BARE)
    return compiled


def called(function: Function) -> Function:
    """A helper that is too large to be compiled into each place where it is called."""
    if numba is None:
        return function
    compiled: Function = helper(function, nogil=True, **_BARE)
    return compiled
