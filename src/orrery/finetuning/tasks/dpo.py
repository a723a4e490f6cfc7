"""Direct preference optimisation: replies that were chosen become likelier than those that were rejected."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from orrery.finetuning.tasks import register
from orrery.finetuning.tasks._preferred import OnPreferences

if TYPE_CHECKING:
    from orrery.evaluation.resampled import Resampled
    from orrery.finetuning.findings import Findings
    from orrery.language_model.model import LanguageModel

ANSWERED = 100
"""Prompts held back that are answered, evenly spread: each answer is written token by token."""
BEGUN = "the model it began from"


@register
class DirectPreferences(OnPreferences):
    """Replies as people prefer them, learnt from pairs, or from replies that are good or bad each by itself (KTO)."""

    kind: ClassVar[str] = "dpo"
    objective = "dpo"
    objectives = ("dpo", "dpo_norm", "ipo", "kto", "orpo", "simpo")
    longest = 1024
    whole = 1.0

    @classmethod
    def findings(cls, lm: "LanguageModel", source: Any, length: int, done: Any = None) -> "Findings":
        """Return how often the chosen reply is the likelier, and how a judge of words finds what the model answers."""
        from orrery.evaluation.resampled import mean_of
        from orrery.finetuning.findings import Findings, Mistake
        from orrery.finetuning.tasks._pairs import counted_pairs, judge_of, pairs_of, reply_of, shorter
        from orrery.finetuning.tasks._replies import template_of

        rows = [row for row, _ in pairs_of(lm, source, length)]
        judge, ends = judge_of(source.train), template_of(lm).end | lm.end
        some, said = answers(lm, rows)
        texts = [lm.tokenizer.decode(ids) for ids in said]
        return Findings(
            scores=(
                likelier(lm, source, length),
                mean_of("judged-chosen", JUDGED, [float(judge.predict(text) == "chosen") for text in texts]),
                mean_of(
                    "ends",
                    "greedy|answers that end with the end token",
                    [float(ids[-1:] != [] and ids[-1] in ends) for ids in said],
                ),
                mean_of("length", "greedy|tokens of an answer", [float(len(ids)) for ids in said]),
            ),
            examples=f"{len(rows):,} pairs held back",
            floors=[
                ("the shorter reply", shorter(rows)),
                ("naive Bayes over words of replies", counted_pairs(judge, rows)),
            ],
            mistakes=[
                Mistake(row.first_prompt, reply_of(row.chosen), text) for row, text in zip(some, texts, strict=True)
            ],
        )

    @classmethod
    def beside(
        cls, lm: "LanguageModel", begun: "Callable[[], LanguageModel]", source: Any, length: int
    ) -> "Sequence[tuple[str, Resampled]]":
        """Return the same of the model that the run began from, and the divergence from it of what is answered.

        Nothing where that one has other tokens, as a base has that knew no conversations.
        """
        from orrery.evaluation.resampled import mean_of
        from orrery.finetuning.tasks._pairs import answered, divergence, judge_of, pairs_of, prompts_of, reply_nats

        other = with_chat(begun(), lm)
        if other.tokenizer.fingerprint != lm.tokenizer.fingerprint:
            return []
        pairs = pairs_of(lm, source, length)
        sides = [side for _, both in pairs for side in both]
        gained = [after - before for after, before in zip(reply_nats(lm, sides), reply_nats(other, sides), strict=True)]
        right = [float(chosen > rejected) for chosen, rejected in zip(gained[::2], gained[1::2], strict=True)]
        some, said = answers(other, [row for row, _ in pairs])
        judge = judge_of(source.train)
        prompts = prompts_of(lm, some)
        drawn = answered(lm, prompts, length, do_sample=True, temperature=1.0, top_k=0, top_p=1.0)
        polite = [float(judge.predict(other.tokenizer.decode(ids)) == "chosen") for ids in said]
        return [
            (BEGUN, likelier(other, source, length)),
            (BEGUN, mean_of("judged-chosen", JUDGED, polite)),
            (f"the model against {BEGUN}", mean_of("reward-accuracy", "pairs|log p / p_ref, chosen > rejected", right)),
            (f"the model and {BEGUN}", divergence(lm, other, prompts, drawn)),
        ]


JUDGED = "greedy|answers that naive Bayes over the words of training replies calls chosen"


def likelier(lm: "LanguageModel", source: Any, length: int) -> "Resampled":
    """Return how often the chosen reply has the larger probability, all its tokens together."""
    from orrery.evaluation.resampled import mean_of
    from orrery.finetuning.tasks._pairs import pairs_of, reply_nats

    pairs = pairs_of(lm, source, length)
    nats = reply_nats(lm, [side for _, sides in pairs for side in sides])
    right = [float(chosen > rejected) for chosen, rejected in zip(nats[::2], nats[1::2], strict=True)]
    return mean_of("accuracy", "pairs|log p(chosen) > log p(rejected)", right)


def answers(lm: "LanguageModel", rows: Sequence[Any]) -> tuple[list[Any], list[list[int]]]:
    """Return some rows, and what the model answers their prompts with, of at most 3/2 of the tokens of a reply."""
    from orrery.finetuning.tasks._pairs import answered, prompts_of, reply_of

    some = [rows[place] for place in range(0, len(rows), max(1, -(-len(rows) // ANSWERED)))]
    longest = max(len(lm.tokenizer.encode(reply_of(side))) for row in some for side, _ in row.sides)
    return some, answered(lm, prompts_of(lm, some), 3 * longest // 2)


def with_chat(begun: "LanguageModel", lm: "LanguageModel") -> "LanguageModel":
    """Return the model that a run began from; one that had no chat template has the run's."""
    from dataclasses import replace

    from orrery.language_model.model import LanguageModel

    stored = begun._stored
    return begun if stored.chat else LanguageModel(replace(stored, chat=lm._stored.chat))
