"""How good a model is on examples held back, one file each; `register` makes known what a program defines."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orrery.metrics._metric import METRICS, Metric, MetricSettings, register

__all__ = ["METRICS", "Metric", "MetricSettings", "register"]


def __getattr__(name: str) -> Any:
    """Import on first use: this imports no torch."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from orrery.metrics import _metric

    return getattr(_metric, name)
