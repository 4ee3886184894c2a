"""Files of rules on real streams for one load budget: two on each stream, one without a circle and one with circles.

In the first kind rules on partial matches write tables, rules that read nothing put rows right again, and others read.
In the second kind each rule that writes a row also asks what stands there, as rules do that keep a state.
``{rule}`` stands for a ``WORTH`` of that rule, or for nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from string import Formatter

import pyarrow as pa
import pyarrow.compute as pc

from experiments.streams import real

EVENTS = 10_000
"""To learn from, and as many to run on."""
SCANNER = "10.128.0.241"
"""A host of ``zeek`` that is muted: for two thirds of the stream there is nothing but its scan of one port."""


@dataclass(frozen=True)
class RuleWorkload:
    """A file of rules and the stream it is for.

    Attributes
    ----------
    name, stream : str
    text : str
        With a place for the worth of some rules.
    worth : dict of str to float
        What matches of these count for, where rules differ in worth.
    is_circle : bool
        Whether rules ask for what they write themselves, or through others.
    """

    name: str
    stream: str
    text: str
    worth: dict[str, float]
    is_circle: bool

    def rules(self, *, weighted: bool) -> str:
        """The text, with or without ``WORTH``."""
        named = {name for _, name, _, _ in Formatter().parse(self.text) if name}
        worths = {name: f"WORTH {self.worth.get(name, 1.0):g} " if weighted else "" for name in named}
        return self.text.format(**worths)

    def halves(self, events: int = EVENTS) -> tuple[pa.Table, pa.Table]:
        """The past and the present: events before and behind the middle of the stream."""
        stream = real.load(self.stream)
        if self.stream == "zeek":
            stream = stream.filter(pc.not_equal(stream["key"], SCANNER))
        half = len(stream) // 2
        return stream.slice(half - events, events), stream.slice(half, events)


_HOSTS = """
TABLE host (ip text, level text DEFAULT 'calm', strikes int DEFAULT 0, KEY (ip))
TABLE server (ip text, state text DEFAULT 'plain', KEY (ip))
"""

_ZEEK = """
RULE scan {scan}ON
  PATTERN SEQ(ssl a, ssl b) WHERE [key] AND b.dst <> a.dst AND b.conn > a.conn + 60 WITHIN 3 s
FOR EACH POINT DO UPDATE host SET level = 'scans' AT (b.key) END
RULE odd ON
  PATTERN SEQ(analyzer a, analyzer b) WHERE [key] AND b.dst = a.dst AND b.conn > a.conn + 5 WITHIN 5 s
FOR EACH POINT DO UPDATE server SET state = 'odd' AT (b.dst) END
RULE calm ON PATTERN rdp r WHERE r.conn % 4 = 0 WITHIN 0 s DO UPDATE host SET level = 'calm' AT (r.key) END
RULE plain ON PATTERN dns d WHERE d.ok = 1 WITHIN 0 s DO UPDATE server SET state = 'plain' AT (d.dst) END
RULE spread {spread}ON
  PATTERN SEQ(analyzer a, ssl b) WHERE [key] AND b.dst <> a.dst AND b.conn > a.conn + 40
    AND store.host[b.key].level = 'scans' WITHIN 3 s
RULE touched ON
  PATTERN SEQ(ssl a, ssl b) WHERE [key] AND b.dst = a.dst AND b.conn > a.conn AND store.server[b.dst].state = 'odd'
    WITHIN 3 s
RULE slow ON PATTERN SEQ(dns a, dns b) WHERE [key] AND b.rtt > 2 * a.rtt AND b.dst = a.dst WITHIN 20 s
"""

_ZEEK_CIRCLE = """
RULE scan {scan}ON
  PATTERN SEQ(ssl a, ssl b) WHERE [key] AND b.dst <> a.dst AND b.conn > a.conn + 60
    AND store.host[b.key].level = 'calm' WITHIN 3 s
FOR EACH POINT DO UPDATE host SET level = 'scans' AT (b.key) END
RULE alarm {alarm}ON
  PATTERN SEQ(analyzer a, ssl b) WHERE [key] AND b.dst <> a.dst AND b.conn > a.conn + 20
    AND store.host[b.key].level = 'scans' WITHIN 3 s
FOR EACH POINT DO UPDATE host SET level = 'alarm', strikes = old.strikes + 1 AT (b.key) END
RULE calm ON
  PATTERN SEQ(rdp a, rdp b) WHERE [key] AND b.conn > a.conn + 20 AND store.host[b.key].level <> 'calm' WITHIN 5 s
FOR EACH POINT DO UPDATE host SET level = 'calm' AT (b.key) END
RULE pardon ON
  PATTERN analyzer n WHERE n.conn % 8 = 0 AND store.host[n.key].strikes > 3 WITHIN 0 s
DO UPDATE host SET strikes = 0, level = 'calm' AT (n.key) END
RULE watched ON PATTERN rdp r WHERE store.host[r.key].level = 'alarm' WITHIN 0 s
RULE spread ON
  PATTERN SEQ(ssl a, rdp b) WHERE [key] AND b.conn > a.conn + 200 AND store.host[b.key].strikes > 1 WITHIN 5 s
"""

_STATIONS = """
TABLE place (id int, state text DEFAULT 'ok', waves int DEFAULT 0, KEY (id))
"""

_BIKES = """
RULE drain {drain}ON
  PATTERN SEQ(start a, start b, start c) WHERE [station] AND b.trip > a.trip AND c.trip > b.trip + 3
    AND c.subscriber <= a.subscriber WITHIN 40 min
FOR EACH POINT DO UPDATE place SET state = 'drains' AT (c.station) END
RULE wave ON
  PATTERN SEQ(end a, end b, end c) WHERE [station] AND b.duration_s > a.duration_s AND c.duration_s > b.duration_s
    WITHIN 60 min
FOR EACH POINT DO UPDATE place SET waves = old.waves + 1 AT (c.station) END
RULE filled ON PATTERN end e WHERE e.duration_s > 900 WITHIN 0 s DO UPDATE place SET state = 'ok' AT (e.station) END
RULE visitors {visitors}ON
  PATTERN SEQ(end a, end b) WHERE [station] AND b.duration_s > 2 * a.duration_s AND b.subscriber = 0
    AND store.place[b.station].state = 'drains' WITHIN 60 min
RULE busy ON
  PATTERN SEQ(start a, end b, start c) WHERE [station] AND b.duration_s > 600 AND c.trip > b.trip
    AND c.trip < b.trip + 60 AND store.place[c.station].waves < 5 WITHIN 60 min
RULE same ON PATTERN SEQ(start a, end b) WHERE [trip] AND b.station = a.station WITHIN 60 min
"""

_BIKES_CIRCLE = """
RULE drain {drain}ON
  PATTERN SEQ(start a, start b, start c) WHERE [station] AND b.trip > a.trip AND c.trip > b.trip + 3
    AND c.subscriber <= a.subscriber AND store.place[c.station].state = 'ok' WITHIN 40 min
FOR EACH POINT DO UPDATE place SET state = 'drains' AT (c.station) END
RULE empty {empty}ON
  PATTERN SEQ(start a, start b) WHERE [station] AND b.trip < a.trip + 30 AND b.subscriber = 0
    AND store.place[b.station].state = 'drains' WITHIN 20 min
FOR EACH POINT DO UPDATE place SET state = 'empty' AT (b.station) END
RULE fill ON
  PATTERN SEQ(end a, end b) WHERE [station] AND b.duration_s > a.duration_s
    AND store.place[b.station].state <> 'ok' WITHIN 30 min
FOR EACH POINT DO UPDATE place SET state = 'ok' AT (b.station) END
RULE wave ON
  PATTERN SEQ(end a, end b, end c) WHERE [station] AND b.duration_s > a.duration_s AND c.duration_s > b.duration_s
    AND store.place[c.station].waves < 3 WITHIN 60 min
FOR EACH POINT DO UPDATE place SET waves = old.waves + 1 AT (c.station) END
RULE ebb ON
  PATTERN SEQ(start a, start b) WHERE [station] AND b.trip > a.trip + 5 AND store.place[b.station].waves > 0
    WITHIN 30 min
FOR EACH POINT DO UPDATE place SET waves = 0 AT (b.station) END
RULE stuck ON PATTERN end e WHERE e.subscriber = 0 AND store.place[e.station].state = 'empty' WITHIN 0 s
"""

_PLANES = """
TABLE plane (tail text, state text DEFAULT 'fine', lates int DEFAULT 0, KEY (tail))
TABLE port (id text, state text DEFAULT 'open', KEY (id))
"""

_FLIGHTS = """
RULE late {late}ON
  PATTERN SEQ(ARR a, DEP b) WHERE [key] AND b.delay_min > a.delay_min + 15 WITHIN 12 h
FOR EACH POINT DO UPDATE plane SET state = 'late' AT (b.key) END
RULE jam ON
  PATTERN SEQ(DEP a, DEP b, DEP c) WHERE [origin] AND b.delay_min > a.delay_min + 20 AND c.delay_min > b.delay_min + 20
    AND c.carrier <> a.carrier WITHIN 60 min
FOR EACH POINT DO UPDATE port SET state = 'jam' AT (c.origin) END
RULE fine ON PATTERN ARR a WHERE a.delay_min < 0 WITHIN 0 s DO UPDATE plane SET state = 'fine' AT (a.key) END
RULE open ON PATTERN DEP d WHERE d.delay_min < -8 WITHIN 0 s DO UPDATE port SET state = 'open' AT (d.origin) END
RULE missed {missed}ON
  PATTERN SEQ(DEP a, CXL b) WHERE [origin] AND b.dest = a.dest AND b.carrier <> a.carrier
    AND store.port[b.origin].state = 'jam' WITHIN 6 h
RULE again ON
  PATTERN SEQ(ARR a, DEP b) WHERE [key] AND b.distance > a.distance AND store.plane[b.key].state = 'late' WITHIN 8 h
RULE waits ON
  PATTERN SEQ(ARR a, ARR b, DEP c) WHERE [carrier] AND a.origin = b.origin AND b.delay_min > a.delay_min + 60
    AND c.delay_min > b.delay_min AND c.origin = b.origin WITHIN 90 min
"""

_FLIGHTS_CIRCLE = """
RULE late {late}ON
  PATTERN SEQ(ARR a, DEP b) WHERE [key] AND b.delay_min > a.delay_min + 15
    AND store.plane[b.key].state = 'fine' WITHIN 12 h
FOR EACH POINT DO UPDATE plane SET state = 'late', lates = old.lates + 1 AT (b.key) END
RULE made_up ON
  PATTERN SEQ(DEP a, ARR b) WHERE [key] AND b.delay_min < a.delay_min AND store.plane[b.key].state = 'late' WITHIN 12 h
FOR EACH POINT DO UPDATE plane SET state = 'fine' AT (b.key) END
RULE jam ON
  PATTERN SEQ(DEP a, DEP b, DEP c) WHERE [origin] AND b.delay_min > a.delay_min + 20 AND c.delay_min > b.delay_min + 20
    AND c.carrier <> a.carrier AND store.port[c.origin].state = 'open' WITHIN 60 min
FOR EACH POINT DO UPDATE port SET state = 'jam' AT (c.origin) END
RULE clears ON
  PATTERN SEQ(DEP a, DEP b) WHERE [origin] AND b.delay_min < a.delay_min - 30 AND b.delay_min < 0
    AND store.port[b.origin].state = 'jam' WITHIN 30 min
FOR EACH POINT DO UPDATE port SET state = 'open' AT (b.origin) END
RULE missed {missed}ON
  PATTERN SEQ(DEP a, CXL b) WHERE [origin] AND b.dest = a.dest AND b.carrier <> a.carrier
    AND store.port[b.origin].state = 'jam' WITHIN 6 h
RULE troubled ON PATTERN DEP d WHERE store.plane[d.key].lates > 1 WITHIN 0 s
RULE serviced ON
  PATTERN SEQ(ARR a, DEP b) WHERE [key] AND b.distance > a.distance AND store.plane[b.key].lates > 1 WITHIN 24 h
FOR EACH POINT DO UPDATE plane SET lates = 0 AT (b.key) END
"""

RULE_WORKLOADS = (
    RuleWorkload("zeek", "zeek", _HOSTS + _ZEEK, {"spread": 5.0, "scan": 0.5}, is_circle=False),
    RuleWorkload("zeek-circle", "zeek", _HOSTS + _ZEEK_CIRCLE, {"alarm": 5.0, "scan": 0.5}, is_circle=True),
    RuleWorkload("bikes", "bikes", _STATIONS + _BIKES, {"visitors": 5.0, "drain": 0.5}, is_circle=False),
    RuleWorkload("bikes-circle", "bikes", _STATIONS + _BIKES_CIRCLE, {"empty": 5.0, "drain": 0.5}, is_circle=True),
    RuleWorkload("flights", "flights", _PLANES + _FLIGHTS, {"missed": 5.0, "late": 0.5}, is_circle=False),
    RuleWorkload("flights-circle", "flights", _PLANES + _FLIGHTS_CIRCLE, {"missed": 5.0, "late": 0.5}, is_circle=True),
)
"""Sets of five to seven rules."""
