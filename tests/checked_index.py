"""Columns of kernels that are run as plain Python, of which a negative index is an error.

Compiled an index is unsigned, and a negative one far out of range; Python would count from the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from acep_approx.jit import kernel


class Checked:
    """A column as a kernel sees it."""

    __slots__ = ("column",)

    def __init__(self, column: Any) -> None:
        self.column = memoryview(column)

    def __len__(self) -> int:
        return len(self.column)

    def __getitem__(self, place: int) -> Any:
        if place < 0:
            raise IndexError(f"an index is negative: {place}")
        return self.column[place]

    def __setitem__(self, place: int, value: Any) -> None:
        if place < 0:
            raise IndexError(f"an index is negative: {place}")
        self.column[place] = value


def checked(value: Any) -> Any:
    """An argument of a kernel with checked columns in the place of arrays."""
    if isinstance(value, np.ndarray):
        return Checked(value)
    if isinstance(value, tuple):
        return tuple.__new__(type(value), map(checked, value))
    return value.item() if isinstance(value, np.generic) else value


def check_every_index() -> None:
    """Let all kernels that are interpreted have such columns."""
    kernel.plain = checked
