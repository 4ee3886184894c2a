"""Workloads on real streams, measured as users run them: the history learns from what came before, and knows no more.

``HEAVY`` and ``LIGHT`` are those of a study of what a budget misses; ``TWELVE`` are two for each stream, written down
before anything was measured on them. They ask for more kinds of things: a negation, a repetition, an alternative, a
missing event, patterns without a key. ``NEAR`` ask for values that are near one another, also written down before.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from experiments.shedding.workloads import REAL
from experiments.streams import real

CUT = 0.6
"""The stream is cut here: the past ends, and what is matched begins."""
EARLIER, LATER = 60_000, 40_000
"""Events of both; some streams have so few that matter that they get several times as many, or all."""
ALL = 1000


@dataclass(frozen=True)
class LaterWorkload:
    """A query, the name of its stream, and how many times as many events as usual it is measured on."""

    stream: str
    query: str
    times: int = 1

    def events(self) -> tuple[pa.Table, pa.Table]:
        """What comes before the cut, and what comes behind it."""
        stream = real.load(self.stream)
        cut, earlier = int(len(stream) * CUT), EARLIER * self.times
        return stream.slice(max(cut - earlier, 0), min(cut, earlier)), stream.slice(cut, LATER * self.times)


def _wider(name: str, before: str, after: str, times: int = 1) -> LaterWorkload:
    stream, query = REAL[name]
    return LaterWorkload(stream, query.replace(f"WITHIN {before}", f"WITHIN {after}"), times)


HEAVY: dict[str, LaterWorkload] = {
    "F4-2h": _wider("F4", "30 min", "2 h"),
    "W5-4d": _wider("W5", "24 h", "4 d"),
    "T6-20s": _wider("T6", "500 ms", "20 s"),
    "T7-2s": _wider("T7", "100 ms", "2 s", times=10),
    "T-surge": LaterWorkload(
        "ticks",
        "PATTERN SEQ(SPY a, SPY b, SPY c) WHERE b.price_e4 > a.price_e4 AND c.price_e4 > b.price_e4"
        " AND c.size >= 10000 AND a.size < b.size AND b.size < c.size AND c.key = a.key WITHIN 20 s",
    ),
    "F-delay": LaterWorkload(
        "flights",
        "PATTERN SEQ(DEP a, DEP b, ARR c, CXL d) WHERE a.delay_min >= 15 AND b.delay_min > a.delay_min"
        " AND c.delay_min > b.delay_min AND d.origin = a.origin AND d.carrier = b.carrier"
        " AND a.carrier <> b.carrier WITHIN 3 h",
    ),
    "F-wave": LaterWorkload(
        "flights",
        "PATTERN SEQ(DEP a, DEP b, DEP c, CXL d) WHERE [origin] AND b.delay_min > a.delay_min"
        " AND c.delay_min > b.delay_min AND b.carrier <> a.carrier AND c.carrier <> b.carrier"
        " AND d.dest = a.dest WITHIN 3 h",
    ),
    "S-press": LaterWorkload(
        "soccer",
        "PATTERN SEQ(Duel a, Duel b, Foul c, SetPiece d, Shot e) WHERE [key] AND a.player <> b.player"
        " AND c.player <> a.player AND d.x > a.x AND e.team = d.team AND e.x > b.x AND e.player = b.player"
        " WITHIN 5 min",
    ),
    "S-shot": LaterWorkload(
        "soccer",
        "PATTERN SEQ(Pass a, Pass b, Duel c, Pass d, Shot g) WHERE [key] AND a.team = g.team AND b.team = g.team"
        " AND b.x > a.x AND d.x > b.x AND d.player <> a.player AND g.player <> b.player AND g.goal = 1 WITHIN 90 s",
    ),
    "B-loop": LaterWorkload(
        "bikes",
        "PATTERN SEQ(start a, end b, start c, end d) WHERE [region] AND b.station = a.station"
        " AND c.station <> a.station AND d.station = c.station AND d.duration_s > b.duration_s AND d.subscriber = 0"
        " WITHIN 30 min",
    ),
}
LIGHT = {name: LaterWorkload(*REAL[name], ALL) for name in ("T7", "W5", "S4", "B3")}
TWELVE: dict[str, LaterWorkload] = {
    "F-knock": LaterWorkload(
        "flights",
        "PATTERN SEQ(DEP a, ARR b, CXL c) WHERE a.delay_min >= 30 AND b.carrier = a.carrier"
        " AND b.delay_min > a.delay_min AND c.carrier = a.carrier AND c.origin = a.origin WITHIN 4 h",
    ),
    "F-gap": LaterWorkload(
        "flights",
        "PATTERN SEQ(DEP a, DEP b, ~(CXL n), ARR c, DEP d) WHERE [dest] AND b.delay_min > a.delay_min + 20"
        " AND c.delay_min > b.delay_min AND d.delay_min > c.delay_min WITHIN 2 h",
    ),
    "W-echo": LaterWorkload(
        "tweets",
        "PATTERN SEQ(ANY a, ANY b, ANY c) WHERE [key] AND b.rt_of = a.tweet_id AND c.followers > a.followers"
        " AND c.kw_mask % 16 > 0 WITHIN 5 d",
    ),
    "W-pile": LaterWorkload(
        "tweets",
        "PATTERN SEQ(ANY a, ANY+ b[], ANY c) WHERE [key] AND a.n_urls > 0 AND b[i].followers > a.followers"
        " AND c.followers > b[i].followers AND c.is_rt = 1 AND c.kw_mask % 128 >= 16 WITHIN 2 d",
    ),
    "T-cross": LaterWorkload(
        "ticks",
        "PATTERN SEQ(BAC a, AIG b, BAC c, AIG d) WHERE a.size >= 500 AND c.price_e4 > a.price_e4"
        " AND d.price_e4 < b.price_e4 AND c.key = a.key AND d.key = b.key AND d.size > c.size WITHIN 60 s",
    ),
    "T-sweep": LaterWorkload(
        "ticks",
        "PATTERN SEQ(IBM a, IBM b, (BAC c | AIG e), IBM d) WHERE [key] AND b.price_e4 > a.price_e4"
        " AND d.price_e4 > b.price_e4 AND d.size > a.size AND d.sweep = 1 WITHIN 2 min",
    ),
    "S-wing": LaterWorkload(
        "soccer",
        "PATTERN SEQ(Pass a, Pass b, Duel c, Shot g) WHERE [key] AND b.player <> a.player AND b.y > a.y + 20"
        " AND c.team = a.team AND g.player = a.player WITHIN 3 min",
    ),
    "S-setpiece": LaterWorkload(
        "soccer",
        "PATTERN SEQ(Foul f, SetPiece p, Pass a, Pass b, Shot g) WHERE [key] AND p.team <> f.team"
        " AND a.team = p.team AND b.x > a.x AND g.team = p.team AND g.x > b.x WITHIN 40 s ERRORS 1",
    ),
    "B-return": LaterWorkload(
        "bikes",
        "PATTERN SEQ(end a, start b, end c) WHERE [region] AND b.station = a.station"
        " AND c.from_station = b.station AND c.station = a.from_station AND c.duration_s > a.duration_s WITHIN 2 h",
    ),
    "B-jam": LaterWorkload(
        "bikes",
        "PATTERN SEQ(end a, end b, end c, start d) WHERE [station] AND b.duration_s > a.duration_s"
        " AND c.duration_s > b.duration_s AND d.subscriber = 0 WITHIN 45 min",
    ),
    "Z-scan": LaterWorkload(
        "zeek",
        "PATTERN SEQ(dns a, ssl b, weird c, ssl d) WHERE [key] AND b.dst <> a.dst AND c.dst = b.dst"
        " AND d.dst = b.dst AND d.conn > b.conn WITHIN 2 min",
    ),
    "Z-rdp": LaterWorkload(
        "zeek",
        "PATTERN SEQ(rdp a, ssl b, weird c, rdp d) WHERE d.dst = a.dst AND b.dst = a.dst AND c.conn > b.conn"
        " AND d.key <> a.key WITHIN 10 min",
    ),
}
NEAR = {
    "F-near": LaterWorkload(
        "flights",
        "PATTERN SEQ(DEP a, DEP b, ARR c, DEP d) WHERE abs(b.delay_min - a.delay_min) <= 1"
        " AND abs(c.delay_min - b.delay_min) <= 1 AND abs(d.delay_min - a.delay_min) <= 1 AND a.delay_min > 30"
        " AND d.distance > b.distance + 500 WITHIN 1 h",
    ),
    "W-near": LaterWorkload(
        "tweets",
        "PATTERN SEQ(ANY a, ANY b, ANY c) WHERE [key] AND abs(b.followers - a.followers) <= 20"
        " AND c.followers BETWEEN b.followers - 20 AND b.followers + 20 AND c.is_rt = 1 AND b.user <> a.user"
        " WITHIN 2 d",
    ),
    "T-near": LaterWorkload(
        "ticks",
        "PATTERN SEQ(IBM a, BAC b, IBM c, IBM d) WHERE abs(c.price_e4 - a.price_e4) < 50 AND abs(d.size - c.size) <= 10"
        " AND a.size > 300 AND d.size > a.size WITHIN 60 s",
    ),
    "S-near": LaterWorkload(
        "soccer",
        "PATTERN SEQ(Pass a, Pass b, Duel c, Shot g) WHERE [key] AND abs(b.x - a.x) <= 4 AND abs(b.y - a.y) <= 4"
        " AND abs(c.x - b.x) <= 4 AND abs(c.y - a.y) <= 6 AND c.team <> a.team WITHIN 3 min",
    ),
    "Z-near": LaterWorkload(
        "zeek",
        "PATTERN SEQ(dns a, ssl b, weird c, ssl d) WHERE [key] AND abs(b.conn - a.conn) <= 5"
        " AND d.conn > b.conn AND d.conn < b.conn + 20 AND d.dst = b.dst WITHIN 2 min",
    ),
}
GROUPS = {"heavy": HEAVY, "light": LIGHT, "twelve": TWELVE, "near": NEAR}
