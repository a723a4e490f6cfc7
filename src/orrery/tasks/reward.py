"""Reward modelling: a number for a conversation, larger where its last reply was preferred."""

from typing import TYPE_CHECKING, Any

from orrery.scores.resampled import mean_of
from orrery.tasks._task import register
from orrery.tasks.finetuning._preferred import OnPreferences
from orrery.tasks.finetuning.findings import Findings, Mistake

if TYPE_CHECKING:
    from orrery.language_model.model import LanguageModel


@register
class RewardModelling(OnPreferences):
    """A number for each conversation, by which replies can be ranked or a policy rewarded."""

    kind = "reward"
    objective = "reward"
    head = "sequence"

    @classmethod
    def findings(cls, lm: "LanguageModel", source: Any, length: int, done: Any = None) -> Findings:
        """Return how often the chosen side has the larger reward; the floors are a reply's length and its words."""
        from orrery.language_model.rewards import rewards_of_ids
        from orrery.tasks.finetuning._pairs import counted, floors, judge_of, pairs_of, reply_of

        pairs = pairs_of(lm, source, length)
        rows = [row for row, _ in pairs]
        rewards = rewards_of_ids(lm.stored, [side.ids for _, sides in pairs for side in sides])
        margins = [chosen - rejected for chosen, rejected in zip(rewards[::2], rewards[1::2], strict=True)]
        wrong = sorted((n for n in range(len(rows)) if margins[n] <= 0), key=margins.__getitem__)
        return Findings(
            scores=(
                mean_of("accuracy", "pairs|r(chosen) > r(rejected)", [float(margin > 0) for margin in margins]),
                mean_of("margin", "mean r(chosen) - r(rejected)", margins),
            ),
            examples=counted(rows),
            floors=floors(judge_of(source.train), rows),
            mistakes=[
                Mistake(rows[n].first_prompt, reply_of(rows[n].chosen), reply_of(rows[n].rejected)) for n in wrong
            ],
        )
