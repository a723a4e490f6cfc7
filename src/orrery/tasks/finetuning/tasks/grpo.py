"""The task of the verb ``grpo``: a policy that answers prompts, taught by the objective of that name."""

from typing import ClassVar

from orrery.tasks.finetuning.tasks import register
from orrery.tasks.finetuning.tasks._answering import Answering


@register
class Grpo(Answering):
    """Answers to prompts, judged by the rewards of the recipe."""

    kind: ClassVar[str] = "grpo"
    objective = "grpo"
    objectives = ("grpo", "dr_grpo", "dapo", "rloo")
