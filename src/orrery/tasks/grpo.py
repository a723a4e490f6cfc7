"""The task of the verb ``grpo``: a policy that answers prompts, taught by the objective of that name."""

from orrery.tasks._task import register
from orrery.tasks.finetuning._answering import Answering


@register
class Grpo(Answering):
    """Answers to prompts, judged by the rewards of the recipe."""

    kind = "grpo"
    objective = "grpo"
    objectives = ("grpo", "dr_grpo", "dapo", "rloo")
