"""Counters of a worker for Prometheus, without queries or judgements."""

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client import generate_latest as write_text

# Upper ends of the bins of answer times, in seconds.
BINS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Telemetry:
    """Counters of one worker."""

    def __init__(self) -> None:
        self._registry = own = CollectorRegistry()
        labels = ("method", "route", "status")
        self._requests = Counter(
            "linkspread_requests", "Answers.", labels, registry=own
        )
        self._seconds = Histogram(
            "linkspread_request_seconds", "Time of answers.", buckets=BINS, registry=own
        )
        self._events = Counter(
            "linkspread_events", "What happened.", ("event", "kind"), registry=own
        )
        self._gauges: dict[str, Gauge] = {}

    def count(self, event: str, kind: str) -> None:
        """Count an event."""
        self._events.labels(event, kind).inc()

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count an answer."""
        self._requests.labels(method, route, status).inc()
        self._seconds.observe(seconds)

    def text(self, gauges: Mapping[str, float]) -> str:
        """Return all counters in the text format of Prometheus."""
        for name, value in gauges.items():
            if name not in self._gauges:
                about = name.replace("_", " ")
                self._gauges[name] = Gauge(
                    f"linkspread_{name}", about, registry=self._registry
                )
            self._gauges[name].set(value)
        return write_text(self._registry).decode()
