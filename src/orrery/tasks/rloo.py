"""The task of the verb ``rloo``: a policy that answers prompts, taught by the objective of that name."""

from orrery.tasks._task import register
from orrery.tasks.finetuning._answering import Answering


@register
class Rloo(Answering):
    """Answers to prompts, judged by the rewards of the recipe."""

    kind = "rloo"
    objective = "rloo"
