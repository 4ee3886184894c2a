"""The only module that imports numba, but for ``helpers``: compiles kernels, on first call, from disk where it can.

Without numba, or with ``ACEP_JIT=0`` in the environment, kernels are plain Python functions: slow, for debugging and
for line coverage.
"""

from __future__ import annotations

import gc
import inspect
import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, cached_property, update_wrapper
from hashlib import sha256
from typing import Any, TypeVar

import numpy as np

from acep_approx.kernels.cache import PACKAGE, directory, sources

Function = TypeVar("Function", bound=Callable[..., Any])
Flags = tuple[int, int, int]
"""What LLVM does: packs neighbouring statements, vectorises loops, and its level of optimisation."""

try:
    if os.environ.get("ACEP_JIT") == "0":
        raise ImportError
    import numba
    from numba.core import config as _config
    from numba.core.caching import CompileResultCacheImpl as _CacheImpl
    from numba.core.caching import FunctionCache as _FunctionCache
    from numba.core.caching import IndexDataCacheFile as _CacheFile
except ImportError:
    numba = None
    _CacheImpl = _FunctionCache = _CacheFile = object

log = logging.getLogger(PACKAGE)

COMPILING = "compiling kernels, once per machine (a few seconds, up to a minute for some queries) ..."
NOT_KEPT = (
    "compiling kernels (a few seconds, up to a minute for some queries) ...\n"
    "      each process must do so: they cannot be kept, set NUMBA_CACHE_DIR to a directory that can be written"
)

ix = np.uint64
"""Kernels wrap every index in this. An index that might be negative costs a test, and keeps LLVM from seeing that
neighbouring indices are neighbours: with it the detection kernel is up to 2.4 times faster."""


_BARE: dict[str, Any] = {"nogil": True, "_nrt": False, "error_model": "numpy"}
"""Kernels make no arrays and keep none: counting references to their arguments would cost more than they do. The flag
has an underscore, but has been there since numba 0.20."""

LANES: Flags = (1, 0, 3)
"""For short inner loops over lanes: packing neighbouring statements (SLP) speeds them up by 1.4-2.3 times, the loop
vectoriser slows them down."""
COLUMNS: Flags = (0, 1, 2)
"""For long loops over columns: they need the loop vectoriser, and gain nothing from the highest level of optimisation,
which takes a quarter longer."""


class _ShowOnStderr(logging.Handler):
    """Shows records on stderr where the program has not set up logging: a minute of silence would be worse."""

    def emit(self, record: logging.LogRecord) -> None:
        if not logging.getLogger().handlers:
            print(f"acep: {record.getMessage()}", file=sys.stderr, flush=True)  # noqa: T201


log.addHandler(_ShowOnStderr())


@cache
def _say_once() -> None:
    """Say that kernels are being compiled."""
    log.warning(COMPILING if directory() else NOT_KEPT)


@contextmanager
def _compiling(flags: Flags) -> Iterator[None]:
    """Set LLVM for what is compiled meanwhile: its flags are global in numba, which compiles under a lock.

    The garbage collector waits: it takes a tenth of the time, and finds little in what numba builds.
    """
    before, collects = (_config.SLP_VECTORIZE, _config.LOOP_VECTORIZE, _config.OPT), gc.isenabled()
    slp, loops, level = flags
    _config.SLP_VECTORIZE, _config.LOOP_VECTORIZE, _config.OPT = slp, loops, type(_config.OPT)(level)
    gc.disable()
    try:
        yield
    finally:
        _config.SLP_VECTORIZE, _config.LOOP_VECTORIZE, _config.OPT = before
        if collects:
            gc.enable()


class _Locator:
    """Tells numba where it keeps the code of a function, and when that is out of date.

    Numba's own locators look at the file of a kernel alone, not at those of the helpers compiled into it, and do not
    let a zip be kept where ``NUMBA_CACHE_DIR`` says.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    @classmethod
    def from_function(cls, function: Callable[..., Any], _file: str) -> _Locator | None:
        return cls(function) if directory() else None

    def ensure_cache_path(self) -> None:
        """``directory`` has made it."""

    def get_cache_path(self) -> str:
        return str(directory())

    def get_source_stamp(self) -> str:
        if self._function.__module__.startswith(PACKAGE):
            return sources()
        file = inspect.getsource(sys.modules[self._function.__module__])
        return sources() + sha256(file.encode()).hexdigest()

    def get_disambiguator(self) -> str:
        return f"{self._function.__module__}-{self._function.__code__.co_firstlineno}"


class _Impl(_CacheImpl):  # type: ignore[misc]
    _locator_classes = (_Locator,)


class _Index(_CacheFile):  # type: ignore[misc]
    """What the cache holds of a function, by the types of its arguments."""

    def _load_index(self) -> Any:
        """Numba reads the types before it looks whether they are of these sources: records may be gone."""
        try:
            return super()._load_index()
        except (AttributeError, ImportError):
            return {}


class _Cache(_FunctionCache):  # type: ignore[misc]
    """Keeps compiled code on disk."""

    _impl_class = _Impl

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = _Index(self._cache_path, self._impl.filename_base, stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load compiled code without what numba needs to compile: that takes half a second to import."""
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep compiled code, if the disk has room."""
        with suppress(OSError):
            super().save_overload(sig, data)


class _Kernel:
    """A function that is compiled, or loaded, when it is first called."""

    def __init__(self, function: Callable[..., Any], flags: Flags) -> None:
        self._flags = flags
        self._run = self._first_run
        update_wrapper(self, function)

    @cached_property
    def compiled(self) -> Any:
        """What numba made of it."""
        made = numba.njit(no_cfunc_wrapper=True, **_BARE)(self.__wrapped__)  # type: ignore[attr-defined]
        compiled = made._compiler.compile

        def compile_with_flags(*signature: Any) -> Any:  # for each new types of its arguments
            _say_once()
            with _compiling(self._flags):
                return compiled(*signature)

        made._compiler.compile = compile_with_flags
        if directory() is not None:
            made._cache = _Cache(made.py_func)
        return made

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

        return helper(self.__wrapped__, **_BARE, **self._options)  # type: ignore[attr-defined]

    @property
    def _numba_type_(self) -> Any:
        """What numba asks for when it comes upon this in a kernel."""
        return self.compiled._numba_type_

    def __call__(self, *args: Any) -> Any:
        return self.__wrapped__(*args)  # type: ignore[attr-defined]


def kernel(function: Function) -> Function:
    """Compile ``function`` on its first call; its arguments are integers and flat arrays, always of the same types."""
    if numba is None:
        return function
    return _Kernel(function, LANES)  # type: ignore[return-value]


def block_kernel(function: Function) -> Function:
    """Like ``kernel``, for functions that spend their time in long loops over columns."""
    if numba is None:
        return function
    return _Kernel(function, COLUMNS)  # type: ignore[return-value]


def inline(function: Function) -> Function:
    """A helper that kernels call, compiled into each place where it is called: arrays cost a call up to 40 ns."""
    if numba is None:
        return function
    return _Helper(function, forceinline=True)  # type: ignore[return-value]


def called(function: Function) -> Function:
    """A helper that is too large to be compiled into each place where it is called."""
    if numba is None:
        return function
    return _Helper(function)  # type: ignore[return-value]
