"""An index of kernels that are run as plain Python: a negative one is an error.

Compiled it is unsigned, and far out of range; Python would count from the end.
"""

from __future__ import annotations

import operator
import sys
from typing import Any

from acep_approx.jit import marks


def checked(place: Any) -> int:
    """An index, which is from 0 on."""
    index = operator.index(place)
    if index < 0:
        raise IndexError(f"an index is negative: {index}")
    return index


def check_every_index() -> None:
    """Let all kernels use it; none may have been imported before."""
    assert "acep_approx.kernels.group" not in sys.modules, "kernels have been imported with their own index"
    marks.ix = checked
