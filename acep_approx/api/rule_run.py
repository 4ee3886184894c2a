"""Rules under way: events in, outputs out; calls are made, and checkpoints written."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

from acep_approx.arguments import checked
from acep_approx.diagrams.fragments import never_raises
from acep_approx.errors import RuleError
from acep_approx.events.source import Source
from acep_approx.results.rules import RuleCall, RuleOutput, StoreView
from acep_approx.rules.checkpoints import Checkpoints
from acep_approx.rules.execution import Outcome, joined
from acep_approx.rules.runner import Runner
from acep_approx.run.run import Run, parts_of

OnBatch = Callable[[int], None]
Function = Callable[[RuleCall], Any]
"""What CALL calls."""


class RuleRun(Run):
    """Rules under way; made by ``RuleSet.start``.

    Attributes
    ----------
    store : StoreView
        The tables: ``run.store["status"].to_arrow()``.
    undelivered : dict of str to pyarrow.Table
        With a file: matches of the last checkpoint of an earlier run that it may not have handed on, by rule.
    """

    def __init__(
        self, runner: Runner, functions: Mapping[str, Function], checkpoints: Checkpoints | None = None
    ) -> None:
        self._runner = runner
        self._functions = functions
        self._checkpoints = checkpoints
        self.undelivered = {} if checkpoints is None else checkpoints.waiting
        self._calls: deque[RuleCall] = deque()
        self._ready: list[RuleOutput] = []  # not given yet, because a function that was called has failed
        if checkpoints is not None:
            self._calls.extend(RuleCall.of(checkpoints.calls))
            self._call()

    @never_raises
    def _repr_html_(self) -> str:
        from acep_approx.api.views import rule_run_view

        return rule_run_view(self)

    def __repr__(self) -> str:
        return f"<RuleRun after {self.offset:,} events: {self.store!r}>"

    @property
    def store(self) -> StoreView:
        """The tables as they are now."""
        return StoreView(self._runner.execution.tables)

    @property
    def offset(self) -> int:
        """Events that were run."""
        return self._runner.arrived

    @property
    def counters(self) -> dict[str, int]:
        """Numbers of what happened so far: ``events``; ``conflicts`` and ``without_row``.

        A conflict is a value that a transaction writes where it has written another one; ``without_row`` counts UPDATE
        and DELETE that found no row.
        """
        return vars(self._runner.execution.counters).copy()

    def push(self, events: Any) -> RuleOutput:
        """Run more events.

        Parameters
        ----------
        events : table, frame or reader of any library, record batches, or iterable of dicts

        Returns
        -------
        RuleOutput

        Raises
        ------
        RuleError
            ``ACEP-R101``: an action cannot be done. It is undone; ``error.outcome`` has what came before it.
        DataError
            The events are wrong.
        """
        found: list[RuleOutput] = []
        try:
            found.extend(self.outputs(self._opened(events, self._runner)))
        except RuleError as error:
            if isinstance(error.outcome, RuleOutput):
                error.outcome = self.joined([*found, error.outcome])
            raise
        return self.joined(found)

    def outputs(
        self, source: Source, *, sort: bool = False, skips: bool = False, on_progress: OnBatch | None = None
    ) -> Iterator[RuleOutput]:
        """What comes of the events of a source, batch by batch; ``skips``: those that were run are left out."""
        self._hand_on()
        try:
            for outcome in parts_of(self._runner, source, sort=sort, skips=skips, on_batch=on_progress):
                yield from self._delivered(outcome)
        except RuleError as error:
            raise self._with_output(error) from error.__cause__

    def _with_output(self, error: RuleError) -> RuleError:
        """An error that has the output of what came before it, which is lasting."""
        if isinstance(error.outcome, Outcome):
            error.outcome = self.joined([*self._delivered(error.outcome, now=True)])
        return error

    @checked
    def pass_time(self, tick: int) -> RuleOutput:
        """No event before ``tick`` will come any more: what waited for windows that end before it."""
        return self._closed(tick, now=False)

    def finish(self) -> RuleOutput:
        """The stream has ended: what waited for the end of its window. With a file, a checkpoint is written."""
        self.malformed.finish()
        return self._closed(None, now=True)

    def _closed(self, before: int | None, *, now: bool) -> RuleOutput:
        self._hand_on()
        try:
            outcome = self._runner.close(before)
        except RuleError as error:
            raise self._with_output(error) from error.__cause__
        return self.joined([*self._delivered(outcome, now=now)])

    def checkpoint(self) -> RuleOutput:
        """Write a checkpoint now; gives what has come since the last one."""
        self._hand_on()
        return self.joined([*self._delivered(self._runner.execution.nothing(), now=True)])

    def _delivered(self, outcome: Outcome, *, now: bool = False) -> Iterator[RuleOutput]:
        """What can be handed on: it is lasting, where that was asked for. Calls are made before."""
        lasting: Outcome | None = outcome
        if self._checkpoints is not None:
            lasting = self._checkpoints.note(outcome)
            if lasting is None and now:
                lasting = self._checkpoints.write()
        if lasting is not None:
            self._ready.append(RuleOutput(lasting, self.store))
            if lasting.calls.num_rows:
                self._calls.extend(RuleCall.of(lasting.calls))
        self._call()
        while self._ready:
            yield self._ready.pop(0)

    def _hand_on(self) -> None:
        if self._checkpoints is not None and not self._ready:
            self._checkpoints.hand_on()

    def _call(self) -> None:
        """Make the calls that wait; one that fails stays the next one."""
        while self._calls:
            call = self._calls[0]
            if call.name in self._functions:
                self._functions[call.name](call)
            self._calls.popleft()
            if self._checkpoints is not None:
                self._checkpoints.made(call.id)

    def close(self) -> None:
        """Let go of the file, if there is one: what is not in the last checkpoint is not in it."""
        self._close(is_failed=False)

    def _close(self, *, is_failed: bool) -> None:
        if self._checkpoints is not None:
            self._checkpoints.close(is_failed=is_failed)
            self._checkpoints = None

    def joined(self, outputs: list[RuleOutput]) -> RuleOutput:
        """Outputs as one, with the store as it is now."""
        outcome = joined([one.outcome for one in outputs]) if outputs else self._runner.execution.nothing()
        return RuleOutput(outcome, self.store)

    def state_bytes(self) -> bytes:
        """All that is needed to go on, here or elsewhere: see ``RuleSet.from_state``."""
        return self._runner.state()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._close(is_failed=kind is not None)
