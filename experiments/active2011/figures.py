"""The figures of ``active2011``: each is a function that gives the rows of its table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

from experiments.active2011.lab import Costs, Load, Machine, Outcome, simulate
from experiments.report import Row

READS = (1, 2, 3, 4, 5, 6)
WRITES = (0.125, 0.25, 0.5, 0.75, 1)
LENGTHS = (2, 3, 4, 5, 6)
RATES = (50, 100, 200, 500, 1_000, 1_500, 2_000, 5_000, 10_000, 20_000)
UNDERLOADED = (50, 100, 200)
"""Events per second of Figure 10; the paper says no more than that it is much less than the engine can take."""
WAYS = {"SEI": "sei", "S2PL": "s2pl", "S2PL, lock by lock": "by_lock", "LWM": "lwm"}
"""Schedulers, with the key of their columns."""


@dataclass(frozen=True)
class Asked:
    """How much is simulated: so many events a run, of a load, at these costs, on this machine."""

    load: Load = field(default_factory=Load)
    costs: Costs = field(default_factory=Costs)
    machine: Machine = field(default_factory=Machine)
    few_points: bool = False
    """Whether the first and the last place of each figure are enough."""

    def run(self, way: str, **load: float | bool) -> Outcome:
        """A run under a scheduler, with another load."""
        return simulate(way, replace(self.load, **load), self.costs, self.machine)  # type: ignore[arg-type]

    def places(self, all_of_them: Sequence[float]) -> Sequence[float]:
        """The places of a figure that are asked for."""
        return (all_of_them[0], all_of_them[-1]) if self.few_points else all_of_them


def throughputs(asked: Asked, **load: float | bool) -> Row:
    """Events per second of each scheduler, and their ratios."""
    row: Row = {key: asked.run(way, **load).throughput for way, key in WAYS.items()}
    return row | {
        "lwm_s2pl": row["lwm"] / row["s2pl"],
        "lwm_by_lock": row["lwm"] / row["by_lock"],
        "lwm_sei": row["lwm"] / row["sei"],
        "s2pl_sei": row["s2pl"] / row["sei"],
    }


def _with_mean(rows: list[Row], key: str, paper: dict[str, str]) -> list[Row]:
    ratios = {name: fmean(row[name] for row in rows) for name in ("lwm_s2pl", "lwm_by_lock", "lwm_sei", "s2pl_sei")}
    rows = [*rows, {key: "mean", **ratios}]
    return [row | {"paper": paper.get(row[key])} for row in rows]


def figure_5(asked: Asked) -> list[Row]:
    """Reads, locks on rows."""
    rows = [{"read_n": f"{n}", **throughputs(asked, read_n=n)} for n in asked.places(READS)]
    return _with_mean(rows, "read_n", {})


def figure_6(asked: Asked) -> list[Row]:
    """Reads, locks on tables."""
    rows = [{"read_n": f"{n}", **throughputs(asked, read_n=n, by_table=True)} for n in asked.places(READS)]
    return _with_mean(rows, "read_n", {"6": "LWM 3x S2PL, 4.5x SEI", "mean": "LWM 2.5x S2PL, 3.4x SEI"})


def figure_7(asked: Asked) -> list[Row]:
    """Writes, locks on rows."""
    rows = [{"write_n": f"{n:g}", **throughputs(asked, write_n=n)} for n in asked.places(WRITES)]
    return _with_mean(rows, "write_n", {})


def figure_8(asked: Asked) -> list[Row]:
    """Writes, locks on tables."""
    rows = [{"write_n": f"{n:g}", **throughputs(asked, write_n=n, by_table=True)} for n in asked.places(WRITES)]
    return _with_mean(rows, "write_n", {"1": "S2PL ~ SEI"})


def baseline(asked: Asked, seq_l: int) -> Outcome:
    """A query and its rule without a scheduler, event by event."""
    costs = replace(asked.costs, lock=0, version=0)
    load = replace(asked.load, events=200, rate=1, seq_l=seq_l, read_n=1)
    return simulate("SEI", load, costs, asked.machine)


def figure_10(asked: Asked) -> list[Row]:
    """Length of patterns, underloaded: per cent of latency above the baseline."""
    rows = []
    for rate in asked.places(UNDERLOADED):
        for seq_l in asked.places(LENGTHS):
            base, row = baseline(asked, int(seq_l)), Row(rate=rate, seq_l=seq_l)
            for way, key in WAYS.items():
                here = asked.run(way, seq_l=seq_l, rate=rate)
                row[f"{key}_query"] = 100 * (here.query / base.query - 1)
                row[f"{key}_rule"] = 100 * (here.rule / base.rule - 1)
                row[key] = 100 * (here.combined / base.combined - 1)
            row |= {"sei_s2pl": row["sei"] / row["s2pl"], "sei_lwm": row["sei"] / row["lwm"]}
            rows.append(row)
    return rows


def figure_11(asked: Asked) -> list[Row]:
    """Rate of the input: combined latency, and what it is above the baseline."""
    base, rows = baseline(asked, asked.load.seq_l).combined, []
    for rate in asked.places(RATES):
        row = Row(rate=rate)
        for way, key in WAYS.items():
            row[key] = asked.run(way, rate=rate).combined
        row |= {
            "lwm_sei": row["lwm"] / row["sei"],
            "lwm_s2pl": row["lwm"] / row["s2pl"],
            "above_sei": (row["lwm"] - base) / (row["sei"] - base),
            "above_s2pl": (row["lwm"] - base) / (row["s2pl"] - base),
            "paper": {2_000: "1/9, 1/3"}.get(int(rate)),
        }
        rows.append(row)
    return rows


def figure_12(asked: Asked) -> list[Row]:
    """Rate of the input: the most versions and buffered events at once."""
    rows = []
    for rate in asked.places(RATES):
        row = Row(rate=rate)
        for way, key in {**WAYS, "LWM, all versions": "all"}.items():
            here = asked.run(way, rate=rate)
            row[key] = here.versions + here.buffered
            row[f"{key}_versions"], row[f"{key}_buffered"] = here.versions, here.buffered
        rows.append(row)
    return rows


HELD = (0, 300, 1_000, 3_000)


def held(asked: Asked) -> list[Row]:
    """How much LWM gains depends on how long readers hold their locks behind their last read."""
    rows = []
    for read_n in (1, 6):
        for time in asked.places(HELD):
            here = replace(asked, costs=replace(asked.costs, reader_ends=time))
            rows.append(Row(read_n=read_n, held=time, **throughputs(here, read_n=read_n, by_table=True)))
    return rows


OTHERS: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "as in the figures": ({}, {}, {}),
    "queries are threads": ({}, {}, {"threads": "operators"}),
    "16 cores": ({}, {}, {"cores": 16}),
    "3 tables": ({"tables": 3}, {}, {}),
    "8 tables": ({"tables": 8}, {}, {}),
    "8 tables, the store is 3x as slow": ({"tables": 8}, {"read": 900, "write": 900}, {}),
    "half of the writes happen": ({"fires": 0.5}, {}, {}),
    "the store needs a core": ({}, {"ask": 350, "read": 0, "write": 0}, {}),
    "the store is 3x as slow": ({}, {"read": 900, "write": 900}, {}),
    "writes are 4x as slow": ({}, {"write": 1_200}, {}),
}
"""Other loads, costs and machines."""


def others(asked: Asked) -> list[Row]:
    """The same with tables locked, where something else is supposed."""
    rows = []
    for name, (load, costs, machine) in OTHERS.items():
        here = replace(
            asked,
            load=replace(asked.load, **load),
            costs=replace(asked.costs, **costs),
            machine=replace(asked.machine, **machine),
        )
        for read_n, write_n in ((1, 0.25), (6, 0.25), (1, 1)):
            found = throughputs(here, read_n=read_n, write_n=write_n, by_table=True)
            rows.append(Row(supposed=name, read_n=read_n, write_n=write_n, **found))
    return rows


def rows_of_tables(asked: Asked) -> list[Row]:
    """The same with rows locked, by how many there are."""
    rows = []
    for count in asked.places((10, 20, 50, 200)):
        for read_n, write_n in ((1, 0.25), (6, 0.25), (1, 1)):
            found = throughputs(asked, read_n=read_n, write_n=write_n, rows=count)
            rows.append(Row(rows=count, read_n=read_n, write_n=write_n, **found))
    return rows
