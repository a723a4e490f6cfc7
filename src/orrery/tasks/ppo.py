"""The task of the verb ``ppo``: a policy that answers prompts, taught by the objective of that name."""

from orrery.tasks._task import register
from orrery.tasks.finetuning._answering import Answering


@register
class Ppo(Answering):
    """Answers to prompts, judged by the rewards of the recipe."""

    kind = "ppo"
    objective = "ppo"
