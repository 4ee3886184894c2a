"""A table of a database as the place of matches, by JDBC: each micro-batch is there once, or not yet."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from acep_approx.errors import UsageError
from acep_approx.masks import masked
from acep_approx.spark.setup.kinds import has_class, is_connect

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructField

DRIVERS = {
    "postgresql": ("org.postgresql.Driver", "org.postgresql:postgresql:42.7.14"),
    "sqlite": ("org.sqlite.JDBC", "org.xerial:sqlite-jdbc:3.54.1.0"),
}
"""Drivers that are fetched where a session has none: their classes, and their packages."""
ONE_WRITER = ("sqlite",)
"""Databases that let one write at a time."""
STAGED = "_acep_batch"
"""What the table is called besides its name that holds a micro-batch until it is whole."""
NUMBER = "batch"
"""The column with the number of the micro-batch."""
EPOCH = "1970-01-01 00:00:00"
_TABLE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)?", re.ASCII)


@dataclass(frozen=True)
class Database:
    """A table of a database. A micro-batch that comes again takes the place of what it wrote, in one transaction.

    Parameters
    ----------
    url : str
        As JDBC has it.
    table : str
        Made by the first micro-batch, if it is not there; with the number of the micro-batch as ``batch``.
    """

    url: str = field(repr=False)
    table: str

    @classmethod
    def of(cls, address: str) -> Database:
        """Return the table of an address: that of JDBC, with ``table=NAME`` among its parameters.

        Raises
        ------
        UsageError
            ``ACEP-S086``: it names no table.

        Examples
        --------
        >>> made = Database.of("jdbc:postgresql://host/shop?table=found&user=ann")
        >>> made.url, made.table
        ('jdbc:postgresql://host/shop?user=ann', 'found')
        """
        url, _, query = address.partition("?")
        given = query.split("&") if query else []
        names = [one.partition("=")[2] for one in given if one.startswith("table=")]
        if len(names) != 1 or not _TABLE.fullmatch(names[0]):
            raise UsageError(
                f"{masked(address)!r} names no table",
                code="ACEP-S086",
                hint="write jdbc:postgresql://HOST/DATABASE?table=NAME",
            )
        others = "&".join(one for one in given if not one.startswith("table="))
        return cls(f"{url}?{others}" if others else url, names[0])

    @property
    def kind(self) -> str:
        """Which database it is, as the URL says."""
        return self.url.split(":")[1]

    def prepare(self, spark: SparkSession) -> None:
        """Let Spark have the driver, if it is known.

        Raises
        ------
        AcepError
            ``ACEP-S080``: it cannot be fetched.
        UsageError
            ``ACEP-S044``: by Spark Connect there is no transaction that could move a micro-batch into the table.
        """
        from acep_approx.spark.setup.connectors import add_package

        if is_connect(spark):
            raise UsageError(
                "a stream cannot write to a table of a database by Spark Connect: each match would not be there once",
                code="ACEP-S044",
                hint="write to a folder, -o FOLDER (to= in Python), and load its files into the table",
            )
        if self.kind in DRIVERS:
            driver, package = DRIVERS[self.kind]
            if not has_class(spark, driver):
                add_package(spark, package)

    def write(self, table: DataFrame, batch: int, rows: int, *, is_first: bool) -> None:
        """Write the rows of a micro-batch; see ``Sink``.

        Workers write them to a table of their own. What is in that moves in one transaction of the driver.
        """
        from pyspark.sql import functions as F

        if not (rows or is_first):  # what a crash may have left is of the first one
            return
        plain = table.select(*map(_plain, table.schema), F.lit(batch).cast("bigint").alias(NUMBER))
        staged, spark = f"{self.table}{STAGED}", table.sparkSession
        with self._connected(spark) as (statement, dialect):  # Spark itself cannot ask SQLite whether a table is there
            columns = _sql_types(plain, dialect)
            statement.executeUpdate(f"DROP TABLE IF EXISTS {staged}")
            statement.executeUpdate(f"CREATE TABLE {staged} ({columns})")
        plain.write.format("jdbc").options(**self._options()).mode("append").save()
        with self._connected(spark) as (statement, dialect):  # names of tables are checked, those of columns quoted
            names = ", ".join(map(dialect.quoteIdentifier, plain.columns))
            number = dialect.quoteIdentifier(NUMBER)
            statement.executeUpdate(f"CREATE TABLE IF NOT EXISTS {self.table} ({columns})")
            statement.executeUpdate(f"DELETE FROM {self.table} WHERE {number} = {batch}")  # noqa: S608
            statement.executeUpdate(f"INSERT INTO {self.table} ({names}) SELECT {names} FROM {staged}")  # noqa: S608
            statement.executeUpdate(f"DROP TABLE {staged}")

    def _options(self) -> dict[str, str]:
        options = {"url": self.url, "dbtable": f"{self.table}{STAGED}"}
        if self.kind in DRIVERS:
            options["driver"] = DRIVERS[self.kind][0]
        return options | ({"numPartitions": "1"} if self.kind in ONE_WRITER else {})

    @contextmanager
    def _connected(self, spark: SparkSession) -> Iterator[tuple[Any, Any]]:
        """A statement of a transaction of the driver, and how the database writes names and types."""
        machine: Any = spark.sparkContext._jvm
        options = machine.org.apache.spark.api.python.PythonUtils.toScalaMap(self._options())
        dialect = machine.org.apache.spark.sql.jdbc.JdbcDialects.get(self.url)
        jdbc = machine.org.apache.spark.sql.execution.datasources.jdbc.JDBCOptions(options)
        connection = dialect.createConnectionFactory(jdbc).apply(-1)
        try:
            connection.setAutoCommit(False)
            yield connection.createStatement(), dialect
            connection.commit()
        finally:
            connection.close()  # what is not committed is undone


def _sql_types(table: DataFrame, dialect: Any) -> str:
    """The columns of a table as a database declares them."""
    machine: Any = table.sparkSession.sparkContext._jvm
    known = machine.org.apache.spark.sql.execution.datasources.jdbc.JdbcUtils
    return str(known.schemaString(dialect, table._jdf.schema(), False, machine.scala.Option.empty()))


def _plain(given: StructField) -> Column:
    """A column as databases have it: times without a zone, in UTC; lists and structs as JSON."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, MapType, StructType, TimestampType

    from acep_approx.spark.plan.columns import column

    value = column(given.name)
    if isinstance(given.dataType, ArrayType | MapType | StructType):
        value = F.to_json(value)
    elif isinstance(given.dataType, TimestampType):  # a cast would give the time of the session's zone
        seconds = (F.unix_micros(value) / F.lit(10**6)).cast("decimal(20, 6)")
        value = F.lit(EPOCH).cast("timestamp_ntz") + F.make_dt_interval(secs=seconds)
    return value.alias(given.name)
