"""What a worker counts and logs: never what was asked, shown or said."""

import json
import logging
import sys
import threading
import time
from collections import Counter

# Upper ends of the bins of answer times, in seconds.
BINS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Telemetry:
    """Counters of one worker, as Prometheus reads them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str]] = Counter()
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._bins: Counter[float] = Counter()
        self._seconds = 0.0

    def count(self, name: str, kind: str) -> None:
        """Count something that happened."""
        with self._lock:
            self._counts[name, kind] += 1

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count an answer."""
        with self._lock:
            self._requests[method, route, status] += 1
            self._seconds += seconds
            self._bins[next((own for own in BINS if seconds <= own), float("inf"))] += 1

    def text(self, gauges: dict[str, float]) -> str:
        """Return all counters in the text format of Prometheus."""
        with self._lock:
            lines = ["# TYPE linkspread_requests_total counter"]
            for (method, route, status), n in sorted(self._requests.items()):
                labels = f'method="{method}",route="{route}",status="{status}"'
                lines.append(f"linkspread_requests_total{{{labels}}} {n}")
            lines.append("# TYPE linkspread_request_seconds histogram")
            total = 0
            for end in (*BINS, float("inf")):
                total += self._bins[end]
                name = "+Inf" if end == float("inf") else f"{end:g}"
                lines.append(
                    f'linkspread_request_seconds_bucket{{le="{name}"}} {total}'
                )
            lines.append(f"linkspread_request_seconds_sum {self._seconds:.6f}")
            lines.append(f"linkspread_request_seconds_count {total}")
            lines.append("# TYPE linkspread_events_total counter")
            for (event, kind), n in sorted(self._counts.items()):
                labels = f'event="{event}",kind="{kind}"'
                lines.append(f"linkspread_events_total{{{labels}}} {n}")
        for name, value in sorted(gauges.items()):
            lines += [f"# TYPE linkspread_{name} gauge", f"linkspread_{name} {value:g}"]
        return "\n".join(lines) + "\n"


class LineFormatter(logging.Formatter):
    """Write each record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created)),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **getattr(record, "event", {}),
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=True)


def start_logging() -> None:
    """Log lines of JSON to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter())
    logger = logging.getLogger("linkspread.web")
    logger.handlers, logger.propagate = [handler], False
    logger.setLevel(logging.INFO)
