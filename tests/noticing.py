"""Whether random worlds notice a wrong variant."""

from __future__ import annotations

from collections.abc import Callable


def first_noticed(disagreement: Callable[[int], object], worlds: int) -> int:
    """The first world in which something differs; -1 if none does."""
    for seed in range(worlds):
        try:
            if disagreement(seed):
                return seed
        except Exception:  # noqa: BLE001  a wrong variant may also crash
            return seed
    return -1
