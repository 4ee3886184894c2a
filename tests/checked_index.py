"""Imported before any kernel: an index that is negative is an error where kernels are plain Python.

Compiled it is unsigned, and far out of range; Python would count from the end.
"""

from __future__ import annotations

import operator
import sys
from typing import Any

from acep_approx.kernels import jit

assert "acep_approx.kernels.group" not in sys.modules, "kernels have been imported with their own index"


def checked(place: Any) -> int:
    """An index, which is from 0 on."""
    index = operator.index(place)
    if index < 0:
        raise IndexError(f"an index is negative: {index}")
    return index


jit.ix = checked
