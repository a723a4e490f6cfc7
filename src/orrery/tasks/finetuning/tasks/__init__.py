"""Tasks that a model is fine-tuned on, one file each; `register` makes known what a program defines."""

from typing import TYPE_CHECKING

from orrery.schema.lazy import lazily

if TYPE_CHECKING:
    from orrery.tasks.finetuning.tasks._task import TASKS, Task, register

__all__ = ["TASKS", "Task", "register"]


__getattr__ = lazily(__name__, {"_task": __all__})
