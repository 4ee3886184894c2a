"""The files that command lines read: events of every form, queries, rules, templates; the same ones each time."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Rows = list[dict[str, Any]]

BOXES = [
    ("2024-05-01T08:00:00Z", "box 1", "Packed", 12.0),
    ("2024-05-01T08:05:00.500Z", "box 2", "Packed", 7.5),
    ("2024-05-01T08:06:00Z", "box 1", "Loaded", 12.0),
    ("2024-05-01T09:30:00Z", "box 1", "Delivered", 12.0),
    ("2024-05-01T10:00:00Z", "box 2", "Delivered", 7.5),
]
BOX_NAMES = ("ts", "key", "type", "kg")

QUERIES = {
    "lost.acep": "PATTERN SEQ(Packed p, Loaded l, Delivered d) WHERE [key] WITHIN 12 h ERRORS 1 WEIGHTS (p = 2, d = 2)",
    "lighter.acep": "PATTERN SEQ(Packed p, Delivered d) WHERE d.kg <= p.kg WITHIN 12 h",
    "heavy.acep": "PATTERN SEQ(Packed p, Loaded l, Delivered d) WHERE [key] AND d.kg > 900 WITHIN 12 h",
    "ab.acep": "PATTERN SEQ(A a, B b) WITHIN 20",
    "cells.acep": "PATTERN SEQ(A a, B b, C c) WHERE [key] WITHIN 12 ERRORS 1",
    "regex.acep": "A(B|C)+D WITHIN 9 ERRORS 1",
    "runs.acep": "PATTERN SEQ(A a, ~(C c), B+ b[]) WHERE [key] AND b[i].x >= a.x AND c.x > 1 WITHIN 9",
    "next.acep": "PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_next_match(a, b[], c) { [key] } WITHIN 30",
    "strict.acep": "PATTERN SEQ(A a, B b) WHERE strict_contiguity { b.x > a.x } WITHIN 30",
    "partition.acep": "PATTERN SEQ(A a, B b, C c) WHERE partition_contiguity { [key] } WITHIN 30 ERRORS 1",
    "negend.acep": "PATTERN SEQ(A a, B b, ~(C c)) WHERE [key] WITHIN 8",
    "apart.acep": "PATTERN SEQ(A a, B b, C c) WHERE [key] WITHIN 12 NON OVERLAP",
    "return.acep": "PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 5 RETURN a.id AS first, b.x AS x, a.note AS note",
    "sums.acep": "PATTERN SEQ(A a, B+ b[], D d) WHERE [key] AND sum(b[].x) > 3 WITHIN 9 "
    "RETURN count(b[]) AS n, avg(b[].x) AS mean, d.x - a.x AS gain",
    "count.acep": "PATTERN SEQ(A a, B b, D d) WHERE [key] AND d.x > a.x WITHIN 12 events",
    "same.acep": "PATTERN SEQ(A a, B b) WHERE [key] WITHIN 6 SIMULTANEOUS ERRORS 1",
    "machine.acep": "PATTERN AUTOMATON (REGISTERS n = 0, low = 0 "
    "s -> t ON A a WHEN a.x > 0 SET low = a.x  t -> t ON B b WHEN b.x >= low SET n = n + 1  "
    "t -> u ON C c WHEN n > 0  IGNORE t ON D  FINAL u) WHERE [key] WITHIN 12 RETURN n, low",
    "next.cel": "SELECT key, x_1 AS first, x AS second FROM FILTER{x > 1}(A) NEXT{$2.key = $1.key AND $2.x > $1.x} B",
    "fold.cel": "SELECT key, x_1 AS high, x AS low FROM A FOLD{$2.key = $.key, $2.x <= $.x, } B WITHIN 20",
    "free.cel": "FROM A NEXT B",
    "higher.cel": "SELECT Name, Price_1 AS first, Price AS second FROM FILTER{Volume > 10000}(Stock) "
    "NEXT{$2.Name = $1.Name AND $2.Price > $1.Price} Stock",
    "rising.acep": "PATTERN SEQ(A a, B b, C c) WHERE [key] AND b.x > a.x AND c.x < b.x WITHIN 30",
    "peak.acep": "PATTERN SEQ(Trade a, Tick b, Tick c, Trade d) WHERE [key] AND b.price > a.price + 0.5 "
    "AND c.price > b.price + 0.5 AND d.price < a.price WITHIN 150",
    "first.acep": "PATTERN SEQ(Ask a, Reply r) WHERE skip_till_next_match(a, r) { [ticket] } WITHIN 1 h "
    "RETURN r.who AS first",
    "spark.acep": "PATTERN SEQ(A a, B b, C c) WHERE [user] AND b.x > a.x WITHIN 20 s ERRORS 1 WEIGHTS (a = 2, c = 2)",
    "wrong.acep": "PATTERN SEQ(A a, B b) WERE a.x > 1 WITHIN 5",
    "nokey.acep": "PATTERN SEQ(A a, B b) WHERE [nokey] WITHIN 5",
}

LETTERS = [
    "cells.acep", "regex.acep", "runs.acep", "next.acep", "strict.acep", "partition.acep", "negend.acep", "apart.acep",
    "return.acep", "sums.acep", "count.acep", "same.acep", "machine.acep", "next.cel", "fold.cel",
]  # fmt: skip
"""Queries over ``letters.csv``."""

RULES = {
    "hygiene.acep": """-- hygiene
TABLE status (hcw text, level text DEFAULT 'safe', n int DEFAULT 0, KEY (hcw))
TABLE room (id text, ward text, KEY (id)) STATIC
RULE warn ON
  PATTERN SEQ(EXIT a, ~(SANITIZE n), ENTER b)
  WHERE [hcw] AND a.location != b.location AND store.status[b.hcw].level = 'safe'
  WITHIN 45 s
  WHEN store.room[b.location].ward != 'closed'
DO UPDATE status SET level = 'warning', n = old.n + 1 AT (b.hcw); CALL badge(b.hcw, 'red') END
RULE calm ON
  PATTERN SEQ(MASK m, EXIT e)
  WHERE [hcw] AND store.status[e.hcw].level = 'warning'
  WITHIN 5 s
DO UPDATE status SET level = 'safe' AT (e.hcw) END
""",
    "counting.acep": """TABLE seen (key text, n int DEFAULT 0, total float DEFAULT 0, KEY (key))
RULE count ON PATTERN B b WITHIN 5 DO UPSERT seen SET n = old.n + 1, total = old.total + b.x AT (b.key) END
RULE pair ON PATTERN SEQ(A a, B b) WHERE [key] AND store.seen[b.key].n > 2 WITHIN 9
FOR EACH POINT DO UPSERT seen SET n = 0 AT (b.key); CALL pairs(b.key, b.x) END
RULE gone ON PATTERN SEQ(C c, D d) WHERE [key] AND store.seen[c.key AT c].total > d.x WITHIN 6
DO DELETE seen AT (d.key) END
RULE still ON PATTERN SEQ(D d, ~(A a)) WHERE [key] WITHIN 4
""",
    "still.acep": "RULE still ON PATTERN SEQ(A a, ~(B b)) WITHIN 5 DO CALL ring(a.x) END",
    "overflow.acep": "TABLE t (id text, n int DEFAULT 0, KEY (id)) RULE r ON PATTERN A a WITHIN 1 "
    "DO UPDATE t SET n = old.n + a.x AT (a.id) END",
    "wrongrules.acep": "TABLE t (id text, n int, KEY (id)) RULE r ON PATTERN A a WITHIN 1 "
    "DO UPDATE u SET n = 1 AT (a.id) END",
}

SETS = {
    "queries/up.acep": "PATTERN SEQ(S a, S b) WHERE b.p > a.p WITHIN 3 RETURN b.p AS p PUBLISH Up;\n"
    "-- id: top\nPATTERN Up u WHERE u.p > 3 WITHIN 3 RETURN u.p AS p;\n",
    "queries/high.acep": "PATTERN S a WHERE a.p >= :low WITHIN 3",
    "queries/high.csv": "low\n2\n4\n",
    "queries/notes.txt": "no query",
    "mixedset/pairs.acep": "PATTERN SEQ(A a, B b) WHERE [key] WITHIN 6;\n"
    "-- id: errors\nPATTERN SEQ(A a, B b, C c) WHERE [key] WITHIN 9 ERRORS 1;\n"
    "-- id: late\nPATTERN SEQ(A a, ~(C c), D d) WHERE [key] AND d.x > a.x WITHIN 9",
    "mixedset/chains.cel": "SELECT key, x_1 AS low, x FROM A NEXT{$2.key = $1.key AND $2.x > $1.x} B PUBLISH Pair;\n"
    "SELECT low, x FROM FILTER{x > 2}(Pair)",
    "templates/above.acep": "PATTERN SEQ(A a, B b) WHERE [key] AND a.x > :low AND b.x > :high AND b.x > a.x WITHIN 9",
    "templates/above.csv": "id,low,high\none,0,1\ntwo,1,1\nthree,0,2\nfour,2,3\n",
    "templates/named.acep": "PATTERN A a WHERE a.key = :who AND a.x >= :least WITHIN 3",
    "templates/named.csv": "who,least\nk,1\nl,2\nm,0\nk,3\n",
    "badset/bad.acep": "-- fine; really\nPATTERN S a WITHIN 3;\nPATTERN S a WITHN 3",
    "badset/misfit.acep": "PATTERN S a WHERE a.nope > 1 WITHIN 3",
    "badset/good.acep": "PATTERN SEQ(S a, S b) WITHIN 3",
    "autoset/machine.acep": QUERIES["machine.acep"],
    "timedset/pairs.acep": "PATTERN SEQ(S a, S b) WITHIN 3 s",
    "none/readme.txt": "no queries here",
}

TEXTS = {
    "torn.csv": "ts,key,type,kg\n2024-05-01T08:00:00Z,box 1,Packed,12.0\n2024-05-01T08:06:00Z,box 1,Loaded,12.0,?\n"
    ",box 1,Loaded,3\n2024-05-01T08:07:00Z,box 1\n2024-05-01T09:30:00Z,box 1,Delivered,12.0\n",
    "badtype.csv": "ts,type,x\n1,A,1\n2,B,two\n3,B,3\n",
    "keyless.csv": "ts,key,type,kg\n2024-05-01T08:00:00Z,box 1,Packed,1\n2024-05-01T08:30:00Z,,Packed,1\n"
    "2024-05-01T09:00:00Z,box 1,Delivered,1\n",
    "mixed.csv": "ts,type,x\n1,A,1\n5,A,2\n3,B,3\n6,B,4\n2,B,5\n9,A,1\n8,B,2\n12,B,1\n",
    "odd.csv": "when,who,what\n1,x,A\n2,y,B\n3,x,B\n",
    "empty.jsonl": "",
    "header.csv": "ts,id,key,type,x,op\n",
    "german.csv": "Datum;Uhrzeit;key;type;kg\n01.05.2024;08:00;box 1;Packed;1.200,5\n01.05.2024;09:15;box 1;Loaded;"
    "1.200,5\n02.05.2024;07:00;box 1;Delivered;1.199,75\n",
    "access.log": '10.0.0.1 - - [01/May/2024:08:00:00 +0000] "GET /a HTTP/1.1" 200 12\n'
    '10.0.0.2 - - [01/May/2024:08:00:05 +0000] "GET /b HTTP/1.1" 404 7\n'
    '10.0.0.1 - - [01/May/2024:08:00:09 +0000] "POST /a HTTP/1.1" 500 3\n',
    "plain.log": "2024-05-01 08:00:00 INFO begin\n2024-05-01 08:00:05 WARN slow\n2024-05-01 08:00:09 INFO end\n",
    "events.json": json.dumps([dict(zip(BOX_NAMES, row, strict=True)) for row in BOXES]),
    "signs.jsonl": '{"ts": 0, "type": "A", "s": "a \\"b\\", ;\\n[red]\\u00fc", "x": 1.5}\n'
    '{"ts": 1, "type": "B", "s": "", "x": null}\n{"ts": 2, "type": "B", "s": "=1+\\u001b[31m", "x": NaN}\n',
    "shop.csv": "when_ms,user_id,action,amount\n1700000000000,u1,login,\n1700000060000,u2,login,\n"
    "1700000120000,u1,view,\n1700000180000,u1,buy,3.5\n1700000240000,u2,view,\n1700000300000,u2,buy,7\n",
    "quotes.csv": "ts,type,Name,Price,Volume\n10,Stock,IBM,90,15000\n15,Stock,IBM,85,7000\n17,Stock,Dell,40,11000\n"
    "21,Stock,IBM,81,8000\n24,Stock,IBM,91,9000\n30,Stock,Dell,44,2000\n",
    "trips.csv": "ts,type,left,id\n5,Trip,1,a\n9,Trip,4,b\n9,Trip,6,c\n14,Trip,10,d\n",
    "set.csv": "ts,type,p\n1,S,1\n2,S,2\n3,S,5\n4,S,4\n6,S,7\n",
    "setmixed.csv": "ts,type,p\n2,S,2\n1,S,1\n3,S,5\n7,S,1\n4,S,9\n",
    "timeless.csv": "type,p\nS,1\nS,5\n",
    "ward.csv": "ts,type,hcw,location\n2024-05-01T08:00:02Z,EXIT,ann,r1\n2024-05-01T08:00:10Z,ENTER,ann,r2\n"
    "2024-05-01T08:00:12Z,MASK,ann,r2\n2024-05-01T08:00:15Z,EXIT,ann,r2\n2024-05-01T08:00:20Z,ENTER,ann,r3\n"
    "2024-05-01T08:00:30Z,EXIT,bob,r1\n2024-05-01T08:00:32Z,ENTER,bob,r3\n",
    "rooms.csv": "id,ward\nr1,a\nr2,a\nr3,closed\n",
    "huge.csv": f"ts,type,id,x\n1,A,u,1\n2,A,u,{2**63 - 1}\n3,A,u,1\n",
    "messages.csv": "id,ts,type,ticket,who\nm1,2024-05-01T08:01:00Z,Ask,7,Eve\nm2,2024-05-01T08:09:00Z,Reply,7,Bob\n"
    "m3,2024-05-01T08:04:00Z,Reply,7,Ann\nm4,2024-05-01T08:02:00Z,Reply,7,Cy\nm5,2024-05-01T08:20:00Z,Ask,8,Joe\n",
    "tornops.csv": "ts,id,type,op\n1,a,A,+I\n20,b,B,+I\n9,c,B,+I\n15,x,B,-D\n21,b,C,+I\n12,,,watermark\n30,d,D,+I\n",
    "debezium.csv": "ts,id,type,x,__op\n1,1,A,1,c\n4,2,B,1,c\n4,2,B,5,u\n6,3,B,2,r\n6,3,B,2,d\n9,4,A,1,c\n",
    "flink.csv": "ts,id,type,x,op\n1,1,A,1,INSERT\n4,2,B,1,+I\n4,2,B,1,-U\n5,2,B,5,+U\n6,3,B,2,+I\n6,3,B,2,DELETE\n",
    "sources.csv": "ts,from,type,n\n1,p,A,1\n3,q,A,1\n9,p,B,2\n4,q,B,2\n8,q,B,3\n12,p,A,4\n",
    "missing.csv": "ts,from,type,n\n1,p,A,1\n3,p,B,2\n9,p,B,4\n",
    "types.csv": "ts,type\n1,Packed\n2,Packed\n",
    "grow.csv": "ts,type,x\n1,A,1\n2,B,2\n3,A,3\n",
    "idle.csv": "ts,type,key\n1,A,u\n2,B,u\n3,A,v\n20,B,v\n21,A,u\n30,B,u\n31,A,w\n",
    "many.jsonl": "".join(json.dumps({"ts": i, "type": "A" if i < 66 else "B"}) + "\n" for i in range(76)),
    "down.csv": "ts,type,p\n1,S,3\n2,S,2\n3,S,1\n",
}


def csv_text(rows: Sequence[Sequence[Any]], names: Sequence[str]) -> str:
    """Rows as CSV."""
    return "".join(",".join("" if x is None else str(x) for x in row) + "\n" for row in [names, *rows])


def letters(number: int, seed: int, first: int = 0) -> list[tuple[Any, ...]]:
    """Events of few types, keys and values, often several at one time."""
    dice, now, rows = Random(seed), first, []
    for n in range(number):
        now += dice.choice((0, 1, 1, 2))
        note = dice.choice(("left", "right", None))
        rows.append((now, n, dice.choice("klm"), dice.choice("ABCD"), dice.randrange(5), note))
    return rows


LETTER_NAMES = ("ts", "id", "key", "type", "x", "note")


def rising(number: int, seed: int, first: int = 0) -> list[tuple[Any, ...]]:
    """Events for a query that sheds."""
    dice, now, rows = Random(seed), first, []
    for _ in range(number):
        now += dice.randrange(3)
        rows.append((now, dice.choice("AABC"), dice.choice("uvw"), f"{dice.random():.3f}"))
    return rows


def story(seed: int, events: int = 80) -> list[tuple[Any, ...]]:
    """A stream that comes in disorder, with updates and retractions: ts, id, key, type, x, op."""
    dice, rows = Random(seed), []
    live: dict[int, tuple[Any, ...]] = {}
    for number in range(events):
        event = (number + dice.randint(-6, 6), number, dice.choice("kl"), dice.choice("ABC"), dice.randint(0, 3))
        live[number] = event
        rows.append((*event, "+I"))
        if dice.random() < 0.3:
            gone = dice.choice(sorted(live))
            old = live.pop(gone)
            rows.append((*old, "-D"))
            if dice.random() < 0.5:
                live[gone] = (*old[:3], dice.choice("ABC"), dice.randint(0, 3))
                rows.append((*live[gone], "+I"))
    return rows


STORY_NAMES = ("ts", "id", "key", "type", "x", "op")


def prices(number: int) -> list[tuple[Any, ...]]:
    """Ticks and trades of five shares."""
    dice, now, price, rows = Random(7), 0, [50.0] * 5, []
    for _ in range(number):
        now += dice.randrange(3)
        share = dice.randrange(5)
        price[share] += dice.randrange(201) / 100 - 1
        rows.append((now, f"share {share}", "Tick" if dice.randrange(4) else "Trade", f"{price[share]:.2f}"))
    return rows


def seconds(number: int, seed: int = 1) -> Rows:
    """One event a second, with times."""
    dice, midnight = Random(seed), datetime(2024, 5, 1, tzinfo=UTC)
    return [
        {
            "ts": (midnight + timedelta(seconds=n)).isoformat(),
            "user": dice.choice("mnopq"),
            "type": dice.choice("ABC"),
            "x": dice.randrange(50),
            "event": f"e{n:05}",
        }
        for n in range(number)
    ]


def json_lines(rows: Rows) -> str:
    """Rows as JSON lines."""
    return "".join(json.dumps(row) + "\n" for row in rows)


def boxes(folder: Path) -> None:
    """The five events of the first examples, in every form."""
    text = csv_text(BOXES, BOX_NAMES)
    rows = [dict(zip(BOX_NAMES, row, strict=True)) for row in BOXES]
    (folder / "events.csv").write_text(text)
    (folder / "events.jsonl").write_text(json_lines(rows))
    (folder / "events.csv.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    (folder / "latin.csv").write_bytes(text.replace("box", "böx").encode("latin-1"))
    times = pa.array([row[0] for row in BOXES]).cast(pa.timestamp("ms", tz="UTC"))
    table = pa.Table.from_pylist(rows)
    pq.write_table(table.set_column(0, "ts", times), folder / "events.parquet")
    (folder / "day").mkdir()
    (folder / "day/1.csv").write_text(csv_text(BOXES[:2], BOX_NAMES))
    (folder / "day/2.csv").write_text(csv_text(BOXES[2:], BOX_NAMES))


def make(folder: Path) -> None:
    """Write all of them into a folder."""
    folder.mkdir(parents=True)
    for name, text in {**QUERIES, **RULES, **SETS, **TEXTS}.items():
        place = folder / name
        place.parent.mkdir(exist_ok=True)
        place.write_text(text, encoding="utf-8")
    boxes(folder)
    (folder / "letters.csv").write_text(csv_text(letters(160, 1), LETTER_NAMES))
    (folder / "few.csv").write_text(csv_text(letters(60, 2), LETTER_NAMES))
    pq.write_table(
        pa.Table.from_pylist([dict(zip(LETTER_NAMES, row, strict=True)) for row in letters(2000, 3)]),
        folder / "letters.parquet",
    )
    for name, number, seed, first in (("past", 700, 1, 0), ("more", 200, 2, 10_000), ("now", 400, 3, 20_000)):
        (folder / f"{name}.csv").write_text(csv_text(rising(number, seed, first), ("ts", "type", "key", "x")))
    (folder / "long.csv").write_text(csv_text(rising(6000, 4), ("ts", "type", "key", "x")))
    told = story(1)
    (folder / "story.csv").write_text(csv_text(told, STORY_NAMES))
    (folder / "days").mkdir()
    for n in range(6):
        part = told[n * len(told) // 6 : (n + 1) * len(told) // 6]
        (folder / f"days/{n}.csv").write_text(csv_text(part, STORY_NAMES))
    plain = [row[:-1] for row in told if row[-1] == "+I"]
    (folder / "disorder.csv").write_text(csv_text(plain, STORY_NAMES[:-1]))
    ticks = prices(4500)
    (folder / "may.csv").write_text(csv_text(ticks[:3000], ("ts", "key", "type", "price")))
    (folder / "june.csv").write_text(csv_text(ticks[3000:], ("ts", "key", "type", "price")))
    (folder / "seconds.jsonl").write_text(json_lines(seconds(300)))
    (folder / "arrived").mkdir()
    (folder / "arrived/1.jsonl").write_text(json_lines(seconds(300)[:150]))
    (folder / "second.jsonl").write_text(json_lines(seconds(300)[150:]))


TRAINED = (
    "train rising.acep past.csv -o history --quiet",
    "train peak.acep may.csv -o peakhistory --quiet",
)
"""Commands that make the histories which many cases read."""
