"""How kernels are compiled by numba, or loaded from disk: imported when the first kernel is called.

Importing numba costs more than all else that a query needs to be compiled.
"""

from __future__ import annotations

import gc
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numba
from numba.core import config as _config
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile

from acep_approx.kernels.cache import PACKAGE, directory, sources
from acep_approx.kernels.private import LOG, NOT_BY_OTHERS, is_private

COMPILING = "compiling kernels, once per machine (a few seconds, up to a minute for some queries) ..."
NOT_KEPT = (
    "compiling kernels (a few seconds, up to a minute for some queries) ...\n"
    "      each process must do so: they cannot be kept, set NUMBA_CACHE_DIR to a directory that can be written"
)

BARE: dict[str, Any] = {"nogil": True, "_nrt": False, "error_model": "numpy"}
"""Kernels make no arrays and keep none: counting references to their arguments would cost more than they do. The flag
has an underscore, but has been there since numba 0.20."""


@cache
def _say_once() -> None:
    """Say that kernels are being compiled."""
    LOG.warning(COMPILING if directory() else NOT_KEPT)


@contextmanager
def _compiling(flags: tuple[int, int, int]) -> Iterator[None]:
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


class _Impl(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_Locator,)


class _Index(IndexDataCacheFile):  # type: ignore[misc]
    """What the cache holds of a function, by the types of its arguments."""

    def _load_index(self) -> Any:
        """Numba reads the types before it looks whether they are of these sources: records may be gone."""
        try:
            return super()._load_index() if is_private(self._index_path) else {}
        except (AttributeError, ImportError):
            return {}

    def _load_data(self, name: str) -> Any:
        """What the index says is not there is compiled."""
        if not is_private(self._data_path(name)):
            raise FileNotFoundError(name)
        return super()._load_data(name)

    @contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[Any]:
        """Others may not write to it, whatever the umask: it would not be used."""
        with super()._open_for_write(filepath) as file:
            draft = Path(file.name)
            draft.chmod(draft.stat().st_mode & NOT_BY_OTHERS)
            yield file


class _Cache(FunctionCache):  # type: ignore[misc]
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


def compiled(function: Callable[..., Any], flags: tuple[int, int, int]) -> Any:
    """What numba makes of a kernel: it compiles for the types of each call, or loads what it has compiled before."""
    made = numba.njit(no_cfunc_wrapper=True, **BARE)(function)
    compiles = made._compiler.compile

    def compile_with_flags(*signature: Any) -> Any:  # for each new types of its arguments
        _say_once()
        with _compiling(flags):
            return compiles(*signature)

    made._compiler.compile = compile_with_flags
    if directory() is not None:
        made._cache = _Cache(made.py_func)
    return made
