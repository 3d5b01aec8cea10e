"""What a worker counts, as Prometheus reads it: never what was searched or judged."""

import threading
from bisect import bisect_left
from collections import Counter

# Upper ends of the bins of answer times, in seconds.
BINS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, float("inf"))


class Telemetry:
    """Counters of one worker."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._bins = [0] * len(BINS)
        self._seconds = 0.0

    def count(self, event: str, kind: str) -> None:
        """Count something that happened."""
        with self._lock:
            self._counts[f'events_total{{event="{event}",kind="{kind}"}}'] += 1

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count an answer."""
        labels = f'method="{method}",route="{route}",status="{status}"'
        with self._lock:
            self._counts[f"requests_total{{{labels}}}"] += 1
            self._bins[bisect_left(BINS, seconds)] += 1
            self._seconds += seconds

    def text(self, gauges: dict[str, float]) -> str:
        """Return all counters in the text format of Prometheus."""
        with self._lock:
            counts, bins = sorted(self._counts.items()), list(self._bins)
        lines = []
        for kind in ("events", "requests"):
            lines.append(f"# TYPE linkspread_{kind}_total counter")
            own = [(name, n) for name, n in counts if name.startswith(kind)]
            lines += [f"linkspread_{name} {n}" for name, n in own]
        lines.append("# TYPE linkspread_request_seconds histogram")
        for k, end in enumerate(BINS, start=1):
            name = "+Inf" if end == BINS[-1] else f"{end:g}"
            total = sum(bins[:k])
            lines.append(f'linkspread_request_seconds_bucket{{le="{name}"}} {total}')
        lines.append(f"linkspread_request_seconds_sum {self._seconds:.6f}")
        lines.append(f"linkspread_request_seconds_count {sum(bins)}")
        for name, value in sorted(gauges.items()):
            lines += [f"# TYPE linkspread_{name} gauge", f"linkspread_{name} {value:g}"]
        return "\n".join(lines) + "\n"
