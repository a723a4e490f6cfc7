"""How good a model is on examples held back, one file each; `register` makes known what a program defines."""

from typing import TYPE_CHECKING

from orrery.schema.lazy import lazily

if TYPE_CHECKING:
    from orrery.metrics._metric import METRICS, Metric, MetricSettings, possible, register

__all__ = ["METRICS", "Metric", "MetricSettings", "possible", "register"]


__getattr__ = lazily(__name__, {"_metric": __all__})
