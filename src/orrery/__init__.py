"""Orrery: the complete Transformer system, from one-hot vectors to RLHF.

What users touch resolves on first use, so that ``import orrery`` costs milliseconds and never imports torch.
"""

TYPE_CHECKING = False  # as type checkers understand it, without typing: until the program is in, Ctrl-C is a traceback
if TYPE_CHECKING:
    from typing import Any

    from orrery.exchange.exporting.average import average as average
    from orrery.language_model.load import load as load
    from orrery.page.see import see as see
    from orrery.planning.plan import plan as plan
    from orrery.runs.train import train as train
    from orrery.tasks import pipeline as pipeline
    from orrery.tasks.finetuning.finetune import finetune as finetune

__version__ = "0.1.0"

# Name -> the module that holds it; a module of this package stands for itself.
_ATTRIBUTES = {
    "average": "orrery.exchange.exporting.average",
    "finetune": "orrery.tasks.finetuning.finetune",
    "load": "orrery.language_model.load",
    "pipeline": "orrery.tasks",
    "plan": "orrery.planning.plan",
    "see": "orrery.page.see",
    "train": "orrery.runs.train",
}
_MODULES = frozenset(
    {
        "data",
        "errors",
        "families",
        "generation",
        "inspection",
        "metrics",
        "objectives",
        "settings",
        "tasks",
        "text",
        "training",
        "tuning",
    }
)


def __getattr__(name: str) -> "Any":
    from importlib import import_module

    if name in _ATTRIBUTES:
        return getattr(import_module(_ATTRIBUTES[name]), name)
    if name in _MODULES:
        return import_module(f"orrery.{name}")
    raise AttributeError(f"module 'orrery' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({"__version__", *_ATTRIBUTES, *_MODULES})
