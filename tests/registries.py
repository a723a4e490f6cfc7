"""The registries of parts, put back after a test: a part that only a test or a page defines is not met by the next."""

import sys
from collections.abc import Iterator

from orrery.schema.registry import Registry

REGISTRIES = {
    "orrery.data.generated._set": "GENERATED",
    "orrery.data.sources._source": "SOURCES",
    "orrery.tasks._task": "TASKS",
    "orrery.metrics._metric": "METRICS",
    "orrery.models.heads._head": "HEADS",
    "orrery.objectives._objective": "OBJECTIVES",
    "orrery.reports.observers._observer": "OBSERVERS",
    "orrery.rewards._reward": "REWARDS",
    "orrery.text.kinds._kind": "TOKENIZERS",
    "orrery.tuning._registry": "KINDS",
    "orrery.page.views._view": "_REGISTRY",
}
"""The module of every registry, and its name there."""


def imported() -> Iterator[Registry]:
    """Yield the registries that this process has imported."""
    for module, name in REGISTRIES.items():
        if module in sys.modules:
            yield getattr(sys.modules[module], name)


def forget_made_up() -> None:
    """Forget every part that no imported module holds: classes of a test's own body and of a page's examples."""
    for registry in imported():
        for name, part in list(registry._parts.items()):
            if getattr(sys.modules.get(part.__module__), part.__qualname__, None) is not part:
                del registry._parts[name]
