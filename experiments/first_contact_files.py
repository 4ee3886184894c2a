"""Files as people have them: one small shop, written in twenty ways, and some that hold no events at all."""

from __future__ import annotations

import gzip
import json
import pickle
import random
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

BEGIN = datetime(2024, 3, 28, 9, 30, tzinfo=UTC)
STEPS = ("placed", "paid", "shipped")
ORDERS = 4
"""Each is placed, paid and shipped: so many matches has ``SEQ(placed a, paid b, shipped c) WHERE [order]``."""


@dataclass(frozen=True)
class Step:
    """What happened to an order."""

    when: datetime
    order: str
    step: str
    amount: float


def events(begin: datetime = BEGIN) -> list[Step]:
    """The events in order of time: steps of four orders, an hour from one to the next."""
    found = [
        Step(begin + timedelta(minutes=60 * place + 7 * order), f"o{order + 1}", step, 10.5 + order)
        for order in range(ORDERS)
        for place, step in enumerate(STEPS)
    ]
    return sorted(found, key=lambda event: event.when)


def table(time: Callable[[datetime], str], begin: datetime = BEGIN, separator: str = ",", comma: str = ".") -> str:
    """The events as lines with a header."""
    rows = [(time(one.when), one.order, one.step, str(one.amount).replace(".", comma)) for one in events(begin)]
    return "".join(separator.join(row) + "\n" for row in [("ts", "key", "type", "amount"), *rows])


def iso(when: datetime) -> str:
    """The time as everybody should write it."""
    return f"{when:%Y-%m-%dT%H:%M:%SZ}"


def objects(begin: datetime = BEGIN) -> list[dict[str, object]]:
    """The events as objects."""
    return [{"ts": iso(one.when), "key": one.order, "type": one.step, "amount": one.amount} for one in events(begin)]


def nested() -> list[dict[str, object]]:
    """The events as objects with objects inside."""
    return [
        {"at": iso(one.when), "order": {"id": one.order, "amount": one.amount}, "event": {"name": one.step}}
        for one in events()
    ]


def lines(values: list[dict[str, object]]) -> str:
    """Objects as JSON lines."""
    return "".join(json.dumps(value) + "\n" for value in values)


def access_log() -> str:
    """Requests as Apache writes them; the order is the host."""
    return "".join(
        f'{one.order}.shop.example - - [{one.when:%d/%b/%Y:%H:%M:%S} +0000] "POST /{one.step} HTTP/1.1" 200 512\n'
        for one in events()
    )


def syslog() -> str:
    """Lines as syslog writes them since RFC 5424; the order is the host."""
    return "".join(f"<134>1 {iso(one.when)} {one.order} shop 7 {one.step} - it is done\n" for one in events())


def java_log() -> str:
    """Lines as log4j writes them, with tracebacks between them."""
    trace = "java.lang.IllegalStateException: late\n\tat shop.Till.pay(Till.java:7)\n\tat shop.Main.main(Main.java:3)\n"
    return "".join(
        f"{one.when:%Y-%m-%d %H:%M:%S},{place:03d} INFO  [{one.order}] {one.step} - done\n" + trace * (place == 5)
        for place, one in enumerate(events())
    )


def write_all(folder: Path) -> None:
    """Write all files of the cases to a folder."""
    for name, text in _texts().items():
        (folder / name).write_bytes(text.encode())
    (folder / "zipped.csv.gz").write_bytes(gzip.compress(table(iso).encode()))
    (folder / "squeezed.jsonl.zst").write_bytes(pa.compress(lines(objects()).encode(), "zstd", asbytes=True))
    (folder / "excel.csv").write_bytes("\ufeff".encode() + table(iso).replace("\n", "\r\n").encode())
    (folder / "days").mkdir()
    for day in range(2):
        (folder / "days" / f"{day}.csv").write_text(_half(day))
    (folder / "mixed").mkdir()
    (folder / "mixed" / "1.csv").write_text("".join(table(iso).splitlines(keepends=True)[:7]))
    (folder / "mixed" / "2.jsonl").write_text(lines(objects()[6:]))
    pq.write_table(pa.Table.from_pylist(nested()), folder / "nested.parquet")
    _no_events(folder)


def _half(number: int) -> str:
    """A half of the events, with the header."""
    names, *rows = table(iso).splitlines(keepends=True)
    return "".join([names, *rows[6 * number : 6 * number + 6]])


def _texts() -> dict[str, str]:
    """The files of text by their names."""
    shuffled = table(iso).splitlines(keepends=True)
    rows = shuffled[1:]
    random.Random(7).shuffle(rows)
    damaged = table(iso).splitlines(keepends=True)
    damaged.insert(5, "2024-03-28T10:31:00Z,o1\n")
    damaged.insert(8, "--- connection lost ---\n")
    numbers = table(lambda when: str(int(when.timestamp() * 1000)))
    return {
        "shop.csv": table(iso),
        "german.csv": table(iso, separator=";", comma=","),
        "tabs.tsv": table(iso, separator="\t"),
        "array.json": json.dumps(objects(), indent=2),
        "nested.jsonl": lines(nested()),
        "wrapped.json": json.dumps({"status": "ok", "events": objects()}, indent=1),
        "access.log": access_log(),
        "sys.log": syslog(),
        "java.log": java_log(),
        "dates_de.csv": table(lambda when: f"{when:%d.%m.%Y %H:%M}"),
        "dates_us.csv": table(lambda when: f"{when:%m/%d/%Y %I:%M %p}"),
        "dates_unclear.csv": table(lambda when: f"{when:%m/%d/%Y %H:%M}", datetime(2024, 3, 4, 9, 30, tzinfo=UTC)),
        "numbers.csv": numbers.replace("ts,key,type", "when_ms,order_id,step"),
        "headless.csv": table(iso).split("\n", 1)[1],
        "unsorted.csv": shuffled[0] + "".join(rows),
        "stray.csv": table(iso).replace(",11.5", ",n/k", 1),
        "damaged.csv": "".join(damaged),
        "twins.csv": table(iso).replace("amount", "key", 1),
        "named.csv": table(iso).replace("ts,key,type", "created_at,order_id,step"),
        "two_columns.csv": table(lambda when: f"{when:%Y-%m-%d},{when:%H:%M}").replace("ts", "date,time", 1),
        "two_texts.csv": table(lambda when: f"{when:%d.%m.%Y};{when:%I:%M %p}", separator=";").replace(
            "ts", "Datum;Uhrzeit", 1
        ),
        "titled.csv": "Account 7;;;\n\n" + table(iso, separator=";", comma=",") + ";;;\n" * 3,
        "lines.csv": lines(objects()),
        "login.csv": "<!DOCTYPE html>\n<html><title>Please log in, or sign up</title></html>\n",
        "access_unsaid.log": access_log(),
        "empty.csv": "",
        "plain.csv": table(lambda when: str(int((when - BEGIN).total_seconds()))),
    }


def _no_events(folder: Path) -> None:
    """What is no file of events."""
    (folder / "notes").mkdir()
    (folder / "notes" / "readme.md").write_text("nothing here\n")
    (folder / "frame.pkl").write_bytes(pickle.dumps(objects()))
    (folder / "picture.bin").write_bytes(random.Random(1).randbytes(4096))
    with zipfile.ZipFile(folder / "events.zip", "w") as archive:
        archive.writestr("shop.csv", table(iso))
    with zipfile.ZipFile(folder / "pictures.zip", "w") as archive:
        archive.writestr("1.png", "no event")
        archive.writestr("2.png", "nor this")
    with zipfile.ZipFile(folder / "events.xlsx", "w") as book:
        book.writestr("[Content_Types].xml", "<Types/>")
        book.writestr("xl/workbook.xml", "<workbook/>")
