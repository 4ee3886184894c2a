"""What several runs lead to together: greedy coverage, sketches, proxies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from history.lazy import lazy

if TYPE_CHECKING:
    from history.coverage.group_covers import GroupCovers
    from history.coverage.groups import covers_by_maps
    from history.coverage.proxy import missed, proxies, regions
    from history.coverage.selection import Swap, above_price, coverage, lazy_greedy, own_count
    from history.coverage.sketch import CountedMap, FoldedMap, HashedMap
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "history.coverage.group_covers": "GroupCovers",
            "history.coverage.groups": "covers_by_maps",
            "history.coverage.proxy": "missed proxies regions",
            "history.coverage.selection": "Swap above_price coverage lazy_greedy own_count",
            "history.coverage.sketch": "CountedMap FoldedMap HashedMap",
        },
    )

__all__ = [
    "CountedMap",
    "FoldedMap",
    "GroupCovers",
    "HashedMap",
    "Swap",
    "above_price",
    "coverage",
    "covers_by_maps",
    "lazy_greedy",
    "missed",
    "own_count",
    "proxies",
    "regions",
]
