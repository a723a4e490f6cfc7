"""The task of the verb ``ppo``: a policy that answers prompts, taught by the objective of that name."""

from typing import ClassVar

from orrery.tasks.finetuning.tasks import register
from orrery.tasks.finetuning.tasks._answering import Answering


@register
class Ppo(Answering):
    """Answers to prompts, judged by the rewards of the recipe."""

    kind: ClassVar[str] = "ppo"
    objective = "ppo"
