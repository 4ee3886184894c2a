"""The push interface: batches of events in, tables of results out; the state can be saved between any two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import pyarrow as pa

from acep_approx.diagrams.fragments import never_raises
from acep_approx.diagrams.text_layout import one_line
from acep_approx.errors import DataError
from acep_approx.matching.execution import Execution
from acep_approx.run.run import Run, parts_of


class Matcher(Execution, Run):
    """Runs one query over a stream of batches; made by ``Query.matcher``, or from a plan.

    See ``Execution`` for the parameters. ``push`` takes batches, ``pass_time`` and ``finish`` give what waited, and
    ``state_bytes`` is what ``from_state`` goes on from. Rows without a time that can be used are an error, or left out
    (``on_malformed="skip"``): ``malformed.count`` of them, which no state holds.
    """

    may_search = True

    @never_raises
    def _repr_html_(self) -> str:
        from acep_approx.api.views import matcher_view

        return matcher_view(self)

    def __repr__(self) -> str:
        query, done = one_line(self.plan.query.text), self.progress
        return f"<{type(self).__name__} of {query!r}: {done.events:,} events, {done.live:,} live runs>"

    @property
    def stage(self) -> Self:
        """What the events go through."""
        return self

    def reads(self, names: Sequence[str]) -> list[str]:
        """Which columns of an input are read: of these names."""
        assert self.roles is not None, "there are columns"
        return [name for name in names if name in self.columns or name == self.roles.time]

    def push(self, events: Any) -> pa.Table:
        """Run more events and return the results that they complete.

        Parameters
        ----------
        events : table, frame or reader of any library, record batches, or iterable of dicts
            The next events of the stream.

        Returns
        -------
        pyarrow.Table
            As documented for the output; in order of the events that complete the matches.

        Raises
        ------
        DataError
            A missing column, a wrong type, or time that runs backwards;
            ``ACEP-D045``: an error stopped it in the middle of a batch before. Events are run in batches of 131,072:
            those of batches before the wrong one were taken in, and ``error.found`` has their results.
        """
        tables: list[pa.Table] = []
        done: list[int] = []  # how many tables there were with each batch that was taken in
        try:
            tables.extend(parts_of(self, self._at_hand(events), on_batch=lambda _: done.append(len(tables))))
        except DataError as error:
            error.found = self._joined(tables[: done[-1]]) if done else None
            raise
        return self._joined(tables)

    def _joined(self, tables: list[pa.Table]) -> pa.Table:
        return pa.table({}) if self.pipeline is None else self.pipeline.joined(tables)

    def finish(self, *, ended: bool = True) -> pa.Table:
        """The stream has ended: the matches that were waiting for the end of their window; see ``Execution.finish``."""
        self.malformed.finish()
        return super().finish(ended=ended)
