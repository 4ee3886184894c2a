"""Draw the graphs of these pages, light and dark, into docs/images/: ``python docs/how-it-works/pictures.py``."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from acep_approx.diagrams.graph import Edge, Graph, Node
from acep_approx.diagrams.svg import svg

IMAGES = Path(__file__).parent.parent / "images"
LONG, SHORT = ("b6", "a5", "a4", "a3", "a2", "a1"), ("c6", "x4", "x3")
"""The links of two matches, from the last event back; c and x are those of the run that begins with e3."""


def lineage() -> Graph:
    """Two matches of runs.md as chains of links, with the two ends as alternatives of one run."""
    names = {link: f"{'b' if link in ('b6', 'c6') else 'a'} = e{link[1]}" for link in LONG + SHORT}
    nodes = [Node("end", "run", "end"), *(Node(link, name, "query") for link, name in names.items())]
    chains = [Edge(link, before) for chain in (LONG, SHORT) for link, before in pairwise(chain)]
    return Graph("lineage", nodes, [Edge("end", LONG[0], "either"), Edge("end", SHORT[0], "or"), *chains])


def travels() -> Graph:
    """The way of a batch: what is done once for all queries, then what each query does."""
    nodes = [
        Node("rows", "rows", "stream", notes=("of a file, or pushed",)),
        Node("stream", "stream side", "rule", notes=("once per batch:", "types, key slots,", "truth of conditions")),
        Node("letters", "letters", "query", notes=("masks, classes",)),
        Node("groups", "groups", "query", notes=("by key",)),
        Node("engine", "engine", "query", notes=("cells or runs",)),
        Node("output", "output", "stream", notes=("a table",)),
        Node("other", "next query", "query", notes=("the same steps",)),
    ]
    way = ["rows", "stream", "letters", "groups", "engine", "output"]
    return Graph("travels", nodes, [Edge(*pair) for pair in [*pairwise(way), ("stream", "other")]])


def micro_batch() -> Graph:
    """What Spark and the driver do in a micro-batch of a stream."""
    nodes = [
        Node("events", "events", "stream", notes=("packed: one row", "per shard")),
        Node("shard", "shard", "query", notes=("waits for the watermark,", "sorts, matches")),
        Node("state", "state", "table", notes=("one value per shard",)),
        Node("matches", "matches", "stream"),
        Node("late", "late events", "stream"),
        Node("driver", "driver", "rule", notes=("splits the budget,", "learns")),
    ]
    edges = [
        Edge("events", "shard"),
        Edge("shard", "state"),
        Edge("state", "shard"),
        Edge("shard", "matches"),
        Edge("shard", "late"),
        Edge("shard", "driver", "metrics"),
        Edge("driver", "shard", "shares, new history"),
    ]
    return Graph("micro-batch", nodes, edges)


PICTURES = {"lineage": lineage, "travels": travels, "micro-batch": micro_batch}


def drawn(name: str) -> str:
    """The picture of a name, as it stands in its file."""
    return svg(PICTURES[name]()) + "\n"


if __name__ == "__main__":
    for each in PICTURES:
        (IMAGES / f"{each}.svg").write_text(drawn(each), encoding="utf-8")
