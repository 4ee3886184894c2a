"""Tables of a database as places of results, by JDBC: each micro-batch is there once, or not yet.

Rows of results are added; tables of rules are kept as they stand, too (``Mirror``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from acep_approx.errors import DataError, UsageError
from acep_approx.masks import masked
from acep_approx.spark.setup.kinds import has_class, is_connect

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructField

    from acep_approx.spark.worker.program import KeptTable

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
    def of(cls, address: str, default: str | None = None) -> Database:
        """Return the table of an address: that of JDBC, with ``table=NAME`` among its parameters.

        Parameters
        ----------
        address : str
        default : str, optional
            The name of the table where the address has none; by default it must have one.

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
        if not names and default is not None:
            return cls(address, default)
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
        if not (rows or is_first):  # what a crash may have left is of the first one
            return
        plain = _plain_table(table, batch)
        with self._staged(plain) as (statement, dialect):
            names = ", ".join(map(dialect.quoteIdentifier, plain.columns))
            number = dialect.quoteIdentifier(plain.columns[-1])
            statement.executeUpdate(f"DELETE FROM {self.table} WHERE {number} = {batch}")  # noqa: S608
            statement.executeUpdate(f"INSERT INTO {self.table} ({names}) SELECT {names} FROM {self.staged}")  # noqa: S608

    @property
    def staged(self) -> str:
        """The table that holds a micro-batch until it is whole."""
        return f"{self.table}{STAGED}"

    @contextmanager
    def _staged(self, plain: DataFrame, beside: Sequence[str] = ()) -> Iterator[tuple[Any, Any]]:
        """The transaction that moves rows from where workers have written them; the table is there by then.

        ``beside``: columns that it has not.
        """
        spark = plain.sparkSession
        with self._connected(spark) as (statement, dialect):  # Spark itself cannot ask SQLite whether a table is there
            statement.executeUpdate(f"DROP TABLE IF EXISTS {self.staged}")
            statement.executeUpdate(f"CREATE TABLE {self.staged} ({_sql_types(plain, dialect)})")
        plain.write.format("jdbc").options(**self._options()).mode("append").save()
        with self._connected(spark) as (statement, dialect):  # names of tables are checked, those of columns quoted
            columns = _sql_types(plain.drop(*beside), dialect)
            statement.executeUpdate(f"CREATE TABLE IF NOT EXISTS {self.table} ({columns})")
            yield statement, dialect
            statement.executeUpdate(f"DROP TABLE {self.staged}")

    def _options(self) -> dict[str, str]:
        options = {"url": self.url, "dbtable": self.staged}
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


@dataclass(frozen=True)
class Mirror(Database):
    """A table of rules in a database, as it stands after each micro-batch.

    Each row has the number of the micro-batch that wrote it last. A micro-batch that comes again writes the same rows.

    Parameters
    ----------
    kept : KeptTable
    """

    kept: KeptTable

    def write(self, table: DataFrame, batch: int, rows: int, *, is_first: bool) -> None:  # noqa: ARG002
        """Write the last change of each row; see ``Sink``.

        Raises
        ------
        DataError
            ``ACEP-S091``: a job begins, and the table has rows of another one.
        """
        if not rows and batch:  # a job begins with the micro-batch 0: rows may be given before any event
            return
        plain = self._latest(table, batch)
        with self._staged(plain, [DONE]) as (statement, dialect):
            quoted = [dialect.quoteIdentifier(name) for name in plain.columns if name != DONE]
            names, keys = ", ".join(quoted), quoted[: len(self.kept.keys)]
            if batch == 0:
                self._begin(statement, quoted[-1])
            same = " AND ".join(f"{self.staged}.{key} = {self.table}.{key}" for key in keys)
            there = f"SELECT 1 FROM {self.staged} WHERE {same}"  # noqa: S608
            statement.executeUpdate(f"DELETE FROM {self.table} WHERE EXISTS ({there})")  # noqa: S608
            new = f"SELECT {names} FROM {self.staged} WHERE {dialect.quoteIdentifier(DONE)} <> 'delete'"  # noqa: S608
            statement.executeUpdate(f"INSERT INTO {self.table} ({names}) {new}")

    def _begin(self, statement: Any, number: str) -> None:
        """Take away what a first attempt has left; refuse a table that has other rows."""
        statement.executeUpdate(f"DELETE FROM {self.table} WHERE {number} = 0")  # noqa: S608
        found = statement.executeQuery(f"SELECT count(*) FROM {self.table}")  # noqa: S608
        found.next()
        if count := int(found.getLong(1)):
            raise DataError(
                f"the job begins, and the table {self.table!r} of the database has {count:,} rows of another job",
                code="ACEP-S091",
                hint=f"go on with the checkpoint of that job, or drop the table: DROP TABLE {self.table}",
            )

    def _latest(self, table: DataFrame, batch: int) -> DataFrame:
        """The last change of each row, with what was done; of a job that begins also the rows that were given.

        Changes of a row come from one shard, so they are in order within their partition.
        """
        from pyspark.sql import functions as F

        from acep_approx.spark.plan.columns import column

        names, at = [*self.kept.keys, *self.kept.values], "_acep_at"
        done, *own = (column(name) for name in table.columns[table.columns.index("op") :])
        changes = table.select(done.alias(DONE), *(one.alias(name) for one, name in zip(own, names, strict=True)))
        changes = changes.withColumn(at, F.monotonically_increasing_id())
        if batch == 0 and len(self.kept.rows):
            given = table.sparkSession.createDataFrame(self.kept.rows.select(names))
            given = given.select(F.lit("insert").alias(DONE), *map(column, names), F.lit(-1).cast("bigint").alias(at))
            changes = given.unionAll(changes)
        keys = list(map(column, self.kept.keys))
        last = changes.groupBy(*keys).agg(F.max_by(F.struct(*map(column, (*names, DONE))), at).alias("last"))
        return _plain_table(last.select(*(F.col("last")[name].alias(name) for name in (*names, DONE))), batch)


DONE = "_acep_op"
"""What was done to a row, in the table of a micro-batch."""


def tables_of(address: str, tables: Sequence[str], *, mirrors: dict[str, KeptTable] | None = None) -> list[Database]:
    """Return the tables of a database for those of rules.

    Parameters
    ----------
    address : str
        As ``Database.of`` takes it. ``table=NAME`` stands before the names of the tables of rules: ``NAME_seen``.
    tables : sequence of str
        The tables of rules.
    mirrors : dict of str to KeptTable, optional
        To keep the tables as they stand: then the address need not name a table. Default: to add what was written.

    Examples
    --------
    >>> [one.table for one in tables_of("jdbc:sqlite:base.db?table=log", ["seen", "status"])]
    ['log_seen', 'log_status']
    """
    made = Database.of(address, None if mirrors is None else "")
    before = f"{made.table}_" if made.table else ""
    if mirrors is None:
        return [replace(made, table=f"{before}{name}") for name in tables]
    return [Mirror(made.url, f"{before}{name}", mirrors[name]) for name in tables]


def _plain_table(table: DataFrame, batch: int) -> DataFrame:
    """A table as databases have it, with the number of the micro-batch in the last column."""
    from pyspark.sql import functions as F

    number, taken = NUMBER, {name.lower() for name in table.columns}
    while number in taken:
        number += "_"
    return table.select(*map(_plain, table.schema), F.lit(batch).cast("bigint").alias(number))


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
