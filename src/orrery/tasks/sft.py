"""Supervised fine-tuning on conversations: how likely replies are that were not learnt, and what is answered."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from orrery.scores.resampled import AdditiveScore, mean_of
from orrery.tasks._task import Learned, register
from orrery.tasks.finetuning.findings import Findings, Mistake

if TYPE_CHECKING:
    from orrery.data.rows.conversations import Conversation
    from orrery.exchange.reading.read import Stored
    from orrery.language_model.model import LanguageModel

ANSWERED = 100
"""Conversations held back that are answered, evenly spread: each answer is written token by token."""


@register
class SupervisedFineTuning(Learned):
    """An assistant's replies, each from what was said before it."""

    kind = "sft"
    source = "conversations"
    objective = "sft"
    asked_as = "text_generation"
    longest = 1024
    whole = 1.0
    split_by = "prompt"

    @classmethod
    def data(cls, train: str, val: str | None, columns: Mapping[str, str]) -> dict[str, Any]:
        """Return the section ``data``; conversations longer than a row are left out, so that each keeps its end."""
        return {**super().data(train, val, columns), "long": "leave_out"}

    @classmethod
    def texts(cls, source: Any) -> Iterable[tuple[str, ...]]:
        """Return what is said in each conversation."""
        return (("\n".join(said(each)),) for each in source.train)

    @classmethod
    def lengths(cls, source: Any, stored: "Stored", most: int) -> tuple[int, list[int]]:
        """Return how many conversations there are, and how many ids some of them have in the template of the run."""
        from orrery.data.batches.rendering import render
        from orrery.text.chat.of_run import control_tokens, template_of_run
        from orrery.text.special import with_control

        assert stored.tokenizer is not None
        templates = source.chat(stored.chat)
        template = template_of_run(templates, with_control(stored.tokenizer, control_tokens(templates)))
        some = source.train[:: max(1, len(source.train) // most)]
        return len(source.train), [len(render(template, each).ids) for each in some]

    @classmethod
    def findings(cls, lm: "LanguageModel", source: Any, length: int, done: Any = None) -> Findings:
        """Return the perplexity of replies, the share of their tokens that are right, and how answers end."""
        from orrery.tasks.finetuning._replies import answers, fitting, measured, name_of, template_of

        kept = fitting(lm, source.held_back, source.settings.replies, length)
        sums = measured(lm, [rendered for _, rendered in kept])
        some = [kept[place] for place in range(0, len(kept), max(1, -(-len(kept) // ANSWERED)))]
        said = answers(lm, some, done)
        other = [each for each in said if each.text.strip() != each.right.strip()]
        template = f"template:{name_of(template_of(lm))}"
        perplexity = AdditiveScore(
            "perplexity",
            f"exp(nats / token) of the replies|{template}",
            sums[:, :2],
            lambda total: math.exp(min(total[0] / max(1.0, total[1]), 700)),
            higher_is_better=False,
        )
        right = AdditiveScore("token-accuracy", f"replies|{template}", sums[:, [2, 1]], lambda t: t[0] / max(1.0, t[1]))
        ended = mean_of("ends", "greedy|answers that end with the end token", [float(each.ended) for each in said])
        clean = mean_of("clean", "greedy|answers without another control token", [float(each.clean) for each in said])
        return Findings(
            scores=(perplexity, right, ended, clean),
            examples=f"{len(kept):,} conversations held back",
            mistakes=[Mistake(each.asked, each.right, each.text) for each in other],
        )


def said(conversation: "Conversation") -> Sequence[str]:
    """Return the texts of a conversation."""
    from orrery.text.chat.messages import text_of

    return [text_of(message) for message in conversation.messages]
