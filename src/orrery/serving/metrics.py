"""What the server counts, as Prometheus reads it."""

import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import final

FIRST = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Seconds, bounds of the time to a first token and of whole requests."""
EACH = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)
"""Seconds, bounds of the time a token."""

Labels = tuple[tuple[str, str], ...]


@final
class Histogram:
    """How often a measure lay below each of some bounds."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds, self._counts = tuple(bounds), [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, seconds: float) -> None:
        """Count one measure."""
        self._counts[next((i for i, bound in enumerate(self._bounds) if seconds <= bound), len(self._bounds))] += 1
        self._sum += seconds

    def lines(self, name: str) -> Iterator[str]:
        """Yield what Prometheus reads."""
        reached = 0
        for bound, count in zip((*map(str, self._bounds), "+Inf"), self._counts, strict=True):
            reached += count
            yield f'{name}_bucket{{le="{bound}"}} {reached}'
        yield f"{name}_sum {self._sum:.9g}"
        yield f"{name}_count {reached}"


@final
class Metrics:
    """Counters of one server; any thread may count."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, Labels]] = Counter()
        self._histograms = {
            "orrery_time_to_first_token_seconds": Histogram(FIRST),
            "orrery_time_per_output_token_seconds": Histogram(EACH),
            "orrery_request_seconds": Histogram(FIRST),
        }

    def count(self, name: str, by: int = 1, **labels: str) -> None:
        """Add to a counter."""
        with self._lock:
            self._counts[name, tuple(sorted(labels.items()))] += by

    def observe(self, name: str, seconds: float) -> None:
        """Count one measure."""
        with self._lock:
            self._histograms[name].observe(seconds)

    def answered(self, prompt: int, reused: int, tokens: int, to_first: float | None, seconds: float) -> None:
        """Count an answer that has ended, by its tokens and seconds."""
        self.count("orrery_prompt_tokens_total", prompt)
        self.count("orrery_prompt_tokens_reused_total", reused)
        self.count("orrery_generation_tokens_total", tokens)
        if to_first is not None:
            self.observe("orrery_time_to_first_token_seconds", to_first)
            if tokens > 1:
                self.observe("orrery_time_per_output_token_seconds", (seconds - to_first) / (tokens - 1))

    def text(self, gauges: Mapping[str, float]) -> str:
        """Return everything, with what is so at this moment, in Prometheus' text format."""
        with self._lock:
            counts = sorted(self._counts.items())
            histograms = {name: list(one.lines(name)) for name, one in self._histograms.items()}
        lines: list[str] = []
        for name in dict.fromkeys(name for (name, _), _ in counts):
            own = [(labels, count) for (other, labels), count in counts if other == name]
            lines += [f"# TYPE {name} counter", *(f"{name}{_shown(labels)} {count}" for labels, count in own)]
        for name, lines_of_histogram in histograms.items():
            lines += [f"# TYPE {name} histogram", *lines_of_histogram]
        for name, value in gauges.items():
            lines += [f"# TYPE {name} gauge", f"{name} {value:g}"]
        return "\n".join(lines) + "\n"


def _shown(labels: Iterable[tuple[str, str]]) -> str:
    pairs = ",".join(f'{name}="{value}"' for name, value in labels)
    return f"{{{pairs}}}" if pairs else ""
