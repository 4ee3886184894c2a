"""Whether random worlds notice a wrong variant."""

from __future__ import annotations

from collections.abc import Callable


def first_noticed(disagreement: Callable[[int], object], worlds: int, known: int | None = None) -> int:
    """A world in which something differs, of so many; -1 if there is none.

    ``known`` is the one that was the first when the worlds were last looked through: it saves the way to it. Once
    worlds are made otherwise it may show nothing; then all are looked through.
    """
    for seed in (*([] if known is None else [known]), *range(worlds)):
        try:
            if disagreement(seed):
                return seed
        except Exception:  # noqa: BLE001  a wrong variant may also crash
            return seed
    return -1
