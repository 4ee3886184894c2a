"""What several test files share: one Spark session, for all tests of a process that ask for one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

settings.register_profile("patient", deadline=None)  # a busy machine is no failure
settings.load_profile("patient")

@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A Spark session of two cores. A test that uses it must be marked ``xdist_group("spark")``, so that one
    process runs them all: a session takes 20 seconds to start."""
    from acep_approx.spark.setup.session import session

    running = session("local[2]", **{"spark.driver.memory": "1g"})
    yield running
    running.stop()
