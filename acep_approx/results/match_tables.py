"""What a query finds in some events, as tables: each call runs it over them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from numbers import Integral
from types import NoneType
from typing import Any

import pyarrow as pa

from acep_approx.engines.progress import RunProgress
from acep_approx.errors import UsageError, expect
from acep_approx.events.columns import readable, to_numpy
from acep_approx.events.source import Source
from acep_approx.matching.choice import OutputKind
from acep_approx.matching.execution import Execution
from acep_approx.matching.outputs.counted import warn_at_least
from acep_approx.matching.pipeline import Pipeline
from acep_approx.matching.renumber import renumbered, row_columns
from acep_approx.matching.tracing.compressed import Compressed, RunShared, compressed_plan
from acep_approx.matching.unseen import warn_of_unseen_types
from acep_approx.planning.planner import Plan
from acep_approx.results.bundles import bundles
from acep_approx.run.run import parts_of


class MatchTables:
    """What a query finds in some events, as tables; see ``Matches``, which has the parameters."""

    row_column: str | None = None
    """A column that events get beside their own, with their row numbers; matches show whole events then."""

    def __init__(
        self,
        plan: Plan,
        source: Source,
        options: dict[str, Any],
        *,
        sort: bool = False,
        limit: int | None = None,
        on_progress: Callable[[int], None] | None = None,
    ) -> None:
        expect("limit", limit, (Integral, NoneType), "a whole number")
        expect("on_progress", on_progress, (Callable, NoneType), "a function of the number of events done")  # type: ignore[arg-type]
        if limit is not None and limit < 0:
            raise UsageError(f"limit is {limit}", code="ACEP-U002", hint="it cannot be negative")
        source.late.check(sort=sort)
        self.plan = plan
        self.source = source
        self.limit = limit
        self.is_cut = False
        self.progress = RunProgress()
        self._options = options
        self._sort = sort
        self._on_progress = on_progress
        self.has_warned = False
        self._counting: Pipeline | None = None  # that of the last run, where its events are gone

    def _run(self, kind: OutputKind) -> Iterator[pa.Table]:
        """Run a fresh matcher over the input; the first table is empty and shows the columns."""
        matcher, pipeline = self.source.settle(partial(self._bound, kind))
        if pipeline is not None:
            yield from self._through(matcher, pipeline)

    def _bound(self, kind: OutputKind, schema: pa.Schema) -> tuple[Execution, Pipeline | None]:
        """A fresh matcher with its pipeline; without columns there are no events, and there is none."""
        if self.row_column is not None:
            self._options = {**self._options, "bind": [self.row_column, *readable(schema).names]}
        matcher = self._matcher(self.plan, kind)
        matcher.row_column = self.row_column
        return matcher, matcher.bind(schema) if len(schema) else None

    def _matcher(self, plan: Plan, kind: OutputKind) -> Execution:
        """A fresh matcher for one pass over the events."""
        return Execution(plan, output=kind, **self._options)

    def _through(self, matcher: Execution, pipeline: Pipeline) -> Iterator[pa.Table]:
        late, columns = self.source.late, () if matcher.bind_by else row_columns(self.plan, matcher.output)
        for table in self._found(matcher, pipeline):
            # of compressed output the links must change their numbers with the hits
            is_changed = late.renumbers and table.num_rows and matcher.output != "compressed"
            yield renumbered(table, columns, late.original) if is_changed else table

    def _found(self, matcher: Execution, pipeline: Pipeline) -> Iterator[pa.Table]:
        """The results, with rows numbered as if there were no late events."""
        self.progress = matcher.progress
        if not self.source.reusable:
            self._counting, pipeline.preparer.counts_classes = pipeline, True
        yield pipeline.nothing()
        yield from parts_of(matcher, self.source, sort=self._sort, on_batch=self._on_progress)
        yield from pipeline.finish()
        if matcher.progress.events and not self.has_warned:
            self.has_warned = True
            warn_of_unseen_types(self.plan.automaton, matcher.types_seen)

    @property
    def work(self) -> RunProgress:
        """What the last run over the events saw and did."""
        return self.progress

    def tables(self) -> Iterator[pa.Table]:
        """The matches as a stream of tables, each of bounded size; see ``to_arrow`` for the columns."""
        self.is_cut = False
        left = self.limit
        for table in self._run("matches"):
            if left is None:
                yield table
                continue
            self.is_cut = table.num_rows > left
            taken = min(left, table.num_rows)
            yield table.slice(0, taken)
            left -= taken
            if self.is_cut:
                return

    def to_arrow(self) -> pa.Table:
        """All matches as one table, in the order of docs/reference/language.md: as they are known, fewer errors first.

        Returns
        -------
        pyarrow.Table
            Equivalence attributes; ``errors`` (int64); ``start``, ``end`` (timestamp or int64); ``missing`` (list of
            string); then per variable the row number of its event: int64, null where none is bound, a list where the
            variable repeats; with ``bind`` values of the event. With RETURN its columns instead. A bare regular
            expression has one column ``events``.

        Complexity: linear in the number of events and in the size of the output.
        """
        return joined(self.tables())

    def count_by_errors(self) -> dict[int, int]:
        """Number of matches by number of errors, counted without listing them; ``limit`` plays no role.

        The count of one match point stops growing at 2**63 - 1; sums are exact up to there. A number from there on
        means at least so many, and ``CappedCountWarning`` says so.
        """
        counts = dict.fromkeys(range(self.plan.automaton.errors + 1), 0)
        for table in self._run("counts"):
            add_counts(counts, table)
        warn_at_least(counts.values())
        return counts

    def counts(self) -> pa.Table:
        """Per match point and number of errors how many matches it completes.

        Returns
        -------
        pyarrow.Table
            Equivalence attributes, ``errors``, ``end``, ``row``, ``matches``, and ``at_least``: whether there may be
            more than that, as counts stop growing at 2**63 - 1.
        """
        return joined(self._run("counts"))

    def points(self) -> pa.Table:
        """The match points: events that complete a match.

        Returns
        -------
        pyarrow.Table
            Equivalence attributes, ``errors`` (the least), ``start`` (the latest, at that number of errors; in a count
            window ``span`` in events instead), ``end``, ``row``.

        Complexity: O(1) per event for a fixed query, however many matches there are.
        """
        return joined(self._run("points"))

    def point_tables(self) -> Iterator[pa.Table]:
        """``points`` as a stream of tables."""
        return self._run("points")

    def partial(self) -> pa.Table:
        """Partial matches that timed out: the events that began a run of the pattern, and with which no match began.

        Returns
        -------
        pyarrow.Table
            One row per such event, with the furthest partial match (most events, then fewest errors, then latest last
            event): equivalence attributes; ``errors`` so far; ``start``, ``end`` (its last event so far); ``bound``,
            the number of its events; ``awaited``, the variables that could have come next, those that need no error
            first; ``why``; then the variables as in ``to_arrow``. ``why`` is "window closed", "stream ended", "broken"
            (a neighbour came that did not fit; contiguity only) or "refused" (all came, but a condition on the whole
            match or a negation failed). In the order in which windows close.

        Notes
        -----
        NON OVERLAP plays no role, and no runs are merged: it costs what all partial matches cost.
        """
        return joined(self._run("partial"))

    def partial_tables(self) -> Iterator[pa.Table]:
        """``partial`` as a stream of tables."""
        return self._run("partial")

    def compressed(self) -> Compressed:
        """All matches as the structure that they share, to spell out some of them later.

        Returns
        -------
        Compressed
            Found by the runs engine, whatever the plan says. ``limit`` plays no role.

        Raises
        ------
        UsageError
            ``ACEP-U007``: NON OVERLAP, or conditions that only complete matches can be tested with.

        Complexity: memory for what the matches share; never for the matches themselves.
        """
        matcher = self._matcher(compressed_plan(self.plan), "compressed")
        if not len(self.source.schema):
            return Compressed(pa.table({}), pa.table({}), None)
        pipeline = matcher.bind(self.source.schema)
        assert isinstance(pipeline.results, RunShared), "this was asked for"
        found = pipeline.results.compressed(joined(self._through(matcher, pipeline)))
        return found.renumbered(self.source.late.original) if self.source.late.renumbers else found

    def bundles(self) -> pa.Table:
        """The match bundles (Li and Ge 2016, Definition 3): first, last, points, errors; see ``results.bundles``."""
        if self._options.get("key_idle") is not None and self.plan.is_count_window:
            raise UsageError(
                "key_idle= (--key-idle) and bundles in windows of events do not go together: what chains them is the "
                "numbers of the events of a key",
                code="ACEP-U200",
                hint="leave one of them out, or take the match points",
            )
        points = self.points()
        if not points.num_columns:
            return points  # no columns, no events
        if self._options.get("bind") is not None:  # bundles are chained by rows, whatever stands for them
            last = points.num_columns - 1
            points = points.remove_column(last).append_column("row", pa.array(range(points.num_rows), pa.int64()))
        pipeline = Execution(self.plan, output="points", **self._options).bind(self.source.schema)
        return bundles(points, pipeline.preparer.shown_columns, pipeline.window)

    def fresh(self, kind: OutputKind) -> Execution:
        """What runs the query once, of which nothing is remembered here."""
        return Execution(self.plan, output=kind, **self._options)

    @property
    def is_sorted(self) -> bool:
        """Whether the events are sorted first."""
        return self._sort

    @property
    def roles(self) -> dict[str, Any]:
        """The options that say what columns mean."""
        return {name: value for name, value in self._options.items() if name not in ("merge", "bind", "key_idle")}


def joined(tables: Iterable[pa.Table]) -> pa.Table:
    """Tables as one; one that has columns even where no row was found."""
    parts = list(tables)
    filled = [part for part in parts if part.num_rows] or parts[:1]
    return pa.concat_tables(filled, promote_options="permissive") if filled else pa.table({})


def add_counts(counts: dict[int, int], table: pa.Table) -> None:
    """Add numbers of matches.

    Parameters
    ----------
    counts : dict of int to int
        Matches by number of errors; gets what is added.
    table : pyarrow.Table
        As ``Matches.counts`` gives it.
    """
    errors, matches = (to_numpy(table.column(name).combine_chunks()) for name in ("errors", "matches"))
    for err in counts:
        mine = matches[errors == err]
        high, low = int((mine >> 32).sum()), int((mine & 0xFFFFFFFF).sum())  # their sum may not fit 64 bits
        counts[err] += (high << 32) + low
