"""What several runs lead to together: greedy coverage, sketches, proxies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from history.lazy import lazy

if TYPE_CHECKING:
    from history.coverage.cover import coverage
    from history.coverage.proxy import missed, proxies, regions
    from history.coverage.selection import Swap, lazy_greedy, own_count
    from history.coverage.sketch import CountedMap, FoldedMap, HashedMap
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "history.coverage.cover": "coverage",
            "history.coverage.proxy": "missed proxies regions",
            "history.coverage.selection": "Swap lazy_greedy own_count",
            "history.coverage.sketch": "CountedMap FoldedMap HashedMap",
        },
    )

__all__ = [
    "CountedMap",
    "FoldedMap",
    "HashedMap",
    "Swap",
    "coverage",
    "lazy_greedy",
    "missed",
    "own_count",
    "proxies",
    "regions",
]
