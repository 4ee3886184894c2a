"""The numbers of a run for Prometheus, on a port of this machine; Spark serves those of a job in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Self

from acep_approx.errors import UsageError

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.metrics_core import Metric

EVENTS = "acep_events"
RESULTS = "acep_results"
MATCHES = "acep_matches"
STEPS = "acep_run_steps"
SHED = "acep_shed"
LIVE = "acep_partial_matches"
BEHIND = "acep_input_behind"
TEXTS = {
    EVENTS: "Events: matched against the pattern, ignored as it is not about them, or left out as late, malformed or "
    "without_key; read, where it is not known which of them the patterns are about.",
    RESULTS: "Rows of results put out.",
    MATCHES: "Matches found.",
    STEPS: "Run-steps made.",
    SHED: "Runs shed, by reason.",
    LIVE: "Live runs.",
    BEHIND: "What of the input is there and not read yet: bytes of a file, or messages of a topic.",
}
"""What numbers mean, wherever they come from; Spark has others, too."""
GAUGES = (LIVE, BEHIND)
"""Those that also fall."""


class Served:
    """Numbers at ``http://ADDRESS:PORT/metrics``.

    Parameters
    ----------
    port : int
        0: any free one; see ``port``.
    address : str, default "127.0.0.1"
        Who may ask: by default only this machine; ``0.0.0.0``: everyone.

    Attributes
    ----------
    port : int
    registry : prometheus_client.CollectorRegistry

    Raises
    ------
    UsageError
        ``ACEP-S053``: prometheus-client is not installed; ``ACEP-S054``: the port cannot be used.
    """

    def __init__(self, port: int, address: str = "127.0.0.1") -> None:
        try:
            from prometheus_client import CollectorRegistry, start_http_server
        except ImportError as error:
            raise UsageError(
                "numbers for Prometheus need the package prometheus-client",
                code="ACEP-S053",
                hint="pip install 'acep-approx[metrics]'",
            ) from error
        self.registry = CollectorRegistry()
        self._define(self.registry)
        try:
            self._server, self._thread = start_http_server(port, address, self.registry)
        except (OSError, OverflowError) as error:
            raise UsageError(
                f"Prometheus cannot be served on port {port} of {address}: {error}",
                code="ACEP-S054",
                hint="choose another port; 0 takes any free one",
            ) from error
        self.port = int(self._server.server_port)

    def _define(self, registry: CollectorRegistry) -> None:
        """Say which numbers there are."""

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class RunNumbers(Served):
    """Serves the numbers of one run, as they are when somebody asks.

    Parameters
    ----------
    port : int
    pattern : str
        What the run is called.

    Examples
    --------
    >>> numbers = RunNumbers(0, "late.acep")  # doctest: +SKIP
    >>> numbers.tell(EVENTS, lambda: source.given, result="read")  # doctest: +SKIP
    """

    def __init__(self, port: int, pattern: str) -> None:
        self._pattern = pattern
        self._told: dict[tuple[str, str], Callable[[], int | None]] = {}
        super().__init__(port)

    def _define(self, registry: CollectorRegistry) -> None:
        registry.register(self)  # it has what is asked of a collector

    def tell(self, name: str, number: Callable[[], int | None], result: str = "") -> None:
        """Serve a number.

        Parameters
        ----------
        name : str
            One of ``TEXTS``.
        number : callable
            Gives it, in another thread; None: it is not known now.
        result : str
            Of events, what became of them.
        """
        self._told = {**self._told, (name, result): number}

    def freeze(self) -> None:
        """Let the numbers stay as they are: what is done now is not the run any more."""
        known = {one: number() for one, number in self._told.items()}
        self._told = {one: partial(known.get, one) for one in known}

    def collect(self) -> Iterator[Metric]:
        """As a registry asks."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        told = self._told
        for name in dict.fromkeys(name for name, _ in told):
            labels = ["pattern", "result"] if name == EVENTS else ["pattern"]
            kind = GaugeMetricFamily if name in GAUGES else CounterMetricFamily
            family = kind(name, TEXTS[name], labels=labels)
            for (of, result), number in told.items():
                if of == name and (value := number()) is not None:
                    family.add_metric([self._pattern, result][: len(labels)], value)
            yield family
