"""How kernels are compiled by numba, or loaded from disk: imported when the first machine code is asked for.

Importing numba costs more than all else that a query needs to be compiled.
"""

from __future__ import annotations

import gc
import pickle
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from typing import Any

import numba
from numba.core import config as _config
from numba.core.compiler import CompileResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.core.serialize import dumps

from acep_approx.jit.cache import compiling_alone, directory, folders, stem
from acep_approx.jit.marks import BARE, Compilable, Flags, NotCompiledError
from acep_approx.jit.private import NOT_BY_OTHERS, is_private
from history.files import replace_file

DAMAGED = (OSError, EOFError, LookupError, ValueError, TypeError, AttributeError, ImportError, pickle.UnpicklingError)
"""What reading a file of machine code can raise."""


@contextmanager
def _flags(flags: Flags) -> Iterator[None]:
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


@cache
def machine() -> str:
    """What machine code depends on beside its source: the processor, and what compiles."""
    codegen = cpu_target.target_context.codegen()
    return sha256(repr((numba.__version__, codegen.magic_tuple())).encode()).hexdigest()[:8]


class _Kept:
    """The machine code of a kernel on disk, as numba asks for it and gives it.

    ``stem`` is that of the arguments that it is loaded or compiled for now; empty where numba asks by itself.

    Numba's own cache looks whether the file of a kernel has changed, not those of the helpers compiled into it, cannot
    read what it may not write, and must be imported before it is known whether there is anything.
    """

    def __init__(self) -> None:
        self.stem = ""

    def load_overload(self, _signature: Any, context: Any) -> Any:
        """Load without what numba needs to compile: that takes half a second to import."""
        for folder in folders() if self.stem else ():
            with suppress(*DAMAGED):
                file = folder / f"{self.stem}-{machine()}.code"
                if is_private(file):
                    return CompileResult._rebuild(context, *pickle.loads(file.read_bytes()))  # noqa: S301  (it is ours)
        return None

    def save_overload(self, _signature: Any, result: Any) -> None:
        """Keep compiled code, if there is a place for it and the disk has room."""
        folder = directory()
        if folder is not None:
            with suppress(OSError):
                replace_file(folder / f"{self.stem}-{machine()}.code", dumps(result._reduce()), NOT_BY_OTHERS)


def loaded(kernel: Compilable, kind: str, args: tuple[Any, ...]) -> Any:
    """Load the machine code of a kernel for one kind of arguments; None where it is not kept."""
    try:
        return _made(kernel, kind, args)
    except NotCompiledError:
        return None


def compiled(kernel: Compilable, kind: str, args: tuple[Any, ...]) -> Any:
    """Compile a kernel for one kind of arguments, or load it if another process has compiled it meanwhile."""
    from acep_approx.jit.helpers import know_helpers, unsigned_indices  # load all that numba compiles with

    made = _dispatcher(kernel)
    with compiling_alone(stem(kernel, kind)), global_compiler_lock, unsigned_indices():
        know_helpers()
        made.compiles = True
        try:
            return _made(kernel, kind, args)
        finally:
            made.compiles = False


def _made(kernel: Compilable, kind: str, args: tuple[Any, ...]) -> Any:
    made = _dispatcher(kernel)
    with global_compiler_lock:
        made.kept.stem = stem(kernel, kind)
        try:
            made.compile(tuple(map(numba.typeof, args)))
        finally:
            made.kept.stem = ""
    kernel.kinds.add(kind)
    return made


def _dispatcher(kernel: Compilable) -> Any:
    """What chooses the machine code of a kernel by the types of its arguments; it compiles none by itself."""
    if kernel.made is None:
        made = numba.njit(no_cfunc_wrapper=True, **BARE)(kernel.function)
        made.compiles = False
        made.kept = made._cache = _Kept()
        compiler = made._compiler
        compiles = compiler.compile

        def compile_with_flags(*signature: Any) -> Any:
            if not made.compiles:
                raise NotCompiledError
            with _flags(kernel.flags):
                return compiles(*signature)

        compiler.compile = compile_with_flags
        kernel.made = made
    return kernel.made
