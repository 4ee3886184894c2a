"""How numba compiles a helper: as LLVM code that kernels take in, and no further.

Left to itself numba makes a library of each helper: optimised as a whole with all that it calls, turned into machine
code, and wrapped for callers in Python. All this is done once more inside the kernel that calls it, and none of it is
used. A kernel of 80 helpers compiles in two thirds of the time without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numba
from numba.core import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering
from numba.np import arrayobj

from acep_approx.jit.marks import BARE, HELPERS

NOT_NEEDED = {
    "InlineClosureLikes",
    "InlineInlinables",
    "LiteralUnroll",
    "LiteralPropagationSubPipelinePass",
    "InlineOverloads",
    "NopythonRewrites",
}
"""Passes that look for what kernels have not: closures, functions to inline by source, expressions of whole arrays."""


class _Library(JITCodeLibrary):  # type: ignore[misc]
    """The code of a helper and of those that it calls, simplified function by function."""

    def _optimize_final_module(self) -> None:
        """The kernel does so."""

    def _finalize_final_module(self) -> None:
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _HelperLowering(NativeLowering):  # type: ignore[misc]
    """From typed code to a ``_Library``."""

    _name = "lowering_of_helpers"

    def run_pass(self, state: Any) -> bool:
        state.library = _Library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        stands_for_it = [state.func_id.func].index  # numba finds the code by a built-in function; it is not called
        state.targetctx.insert_user_function(stands_for_it, state.cr.fndesc, [state.library])
        state["cr"] = state.cr._replace(cfunc=stands_for_it)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class _CompactLowering(_HelperLowering):
    """The same for code that is to stay small: LLVM neither unrolls nor vectorises its loops, and leaves it apart."""

    _name = "lowering_of_compact_helpers"

    def run_pass(self, state: Any) -> bool:
        super().run_pass(state)
        made = state.library._final_module.get_function(state.cr.fndesc.llvm_func_name)
        for attribute in ("optsize", "noinline"):
            made.add_function_attribute(attribute)
        return True


class _HelperCompiler(CompilerBase):  # type: ignore[misc]
    """Numba's own way to compile but for its last step, and for passes that find nothing in kernels."""

    lowering = _HelperLowering

    def define_pipelines(self) -> list[Any]:
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        needed = [(one, why) for one, why in passes.passes if one.__name__ not in NOT_NEEDED]
        passes.passes = [(self.lowering if one is NativeLowering else one, why) for one, why in needed]
        passes._finalized = False
        passes.finalize()
        return [passes]


class _CompactCompiler(_HelperCompiler):
    lowering = _CompactLowering


@contextmanager
def unsigned_indices() -> Iterator[None]:
    """Let indices of what is compiled meanwhile be unsigned; kernels have none that are negative.

    One that might be costs a test, and keeps LLVM from seeing that neighbouring indices are neighbours: without it the
    detection kernel is up to 2.4 times faster.
    """
    before = arrayobj.fix_integer_index
    arrayobj.fix_integer_index = _unsigned
    try:
        yield
    finally:
        arrayobj.fix_integer_index = before


def _unsigned(context: Any, builder: Any, kind: Any, index: Any, _size: Any) -> Any:
    return context.cast(builder, index, kind, types.uintp)


_known: dict[Callable[..., Any], Any] = {}


def know_helpers() -> None:
    """Tell numba of all helpers that there are by now: it asks functions for their type."""
    for function in HELPERS.keys() - _known.keys():
        _known[function] = made = _helper(function, **HELPERS[function])
        function._numba_type_ = made._numba_type_  # type: ignore[attr-defined]


def _helper(function: Callable[..., Any], *, is_compact: bool = False, **options: Any) -> Any:
    """A function that only kernels call, compiled with the first of them.

    It is compiled once for all integers: numba alone would do so again for each constant that it is called with, and
    for the first value of a counter that is a constant.
    """
    compiler = _CompactCompiler if is_compact else _HelperCompiler
    options |= BARE | {"pipeline_class": compiler, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    made = numba.njit(**options)(function)
    types_of_call = made.get_call_template
    made.get_call_template = lambda args, named: types_of_call([numba.types.unliteral(one) for one in args], named)
    return made
