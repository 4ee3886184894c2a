"""All kernels compiled ahead of time: for images, continuous integration, and the tests."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from acep_approx.kernels.cache import PACKAGE
from acep_approx.kernels.jit import Kernel
from acep_approx.kernels.kinds import annotated

NO_KERNELS = ("__init__.py", "helpers.py", "compiling.py", "compiler.py")
"""Files that need not be looked into, and load what compiles."""


def all_kernels() -> Iterator[tuple[Kernel[..., Any], tuple[Any, ...]]]:
    """Each kernel with arguments of each kind that it is annotated with, in the order of their names."""
    for module in _modules(files(PACKAGE), PACKAGE):
        for one in list(vars(import_module(module)).values()):
            if isinstance(one, Kernel) and one.__module__ == module:
                for args in annotated(one.function):
                    yield one, args


def _modules(folder: Traversable, package: str) -> Iterator[str]:
    for item in sorted(folder.iterdir(), key=lambda item: item.name):
        if item.is_dir() and item.joinpath("__init__.py").is_file():
            yield from _modules(item, f"{package}.{item.name}")
        elif item.name.endswith(".py") and item.name not in NO_KERNELS:
            yield f"{package}.{item.name.removesuffix('.py')}"
