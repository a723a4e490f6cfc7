"""Direct preference optimisation: replies that were chosen become likelier than those that were rejected."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from orrery.scores.resampled import Resampled, mean_of
from orrery.tasks._task import register
from orrery.tasks.finetuning._preferred import OnPreferences
from orrery.tasks.finetuning.findings import Findings, Mistake

if TYPE_CHECKING:
    from orrery.data.batches.preferences import RenderedReply
    from orrery.data.rows.preferences import Preference
    from orrery.language_model.model import LanguageModel

ANSWERED = 100
"""Prompts held back that are answered, evenly spread: each answer is written token by token."""
BEGUN = "the model it began from"


@register
class DirectPreferences(OnPreferences):
    """Replies as people prefer them, learnt from pairs, or from replies that are good or bad each by itself (KTO)."""

    kind = "dpo"
    objective = "dpo"
    asked_as = "text_generation"
    objectives = ("dpo", "dpo_norm", "ipo", "kto", "orpo", "simpo")
    longest = 1024
    whole = 1.0

    @classmethod
    def findings(cls, lm: "LanguageModel", source: Any, length: int, done: Any = None) -> Findings:
        """Return how often the chosen reply is the likelier, and how a judge of words finds what the model answers."""
        from orrery.tasks.finetuning._pairs import counted, floors, judge_of, reply_of, rows_of
        from orrery.tasks.finetuning._replies import template_of

        held_back = rows_of(lm, source, length)
        rows = [row for row, _ in held_back]
        judge, ends = judge_of(source.train), template_of(lm).end | lm.end
        some, said = answers(lm, rows, done)
        texts = [lm.tokenizer.decode(ids) for ids in said]
        first = likelier(lm, held_back, done)
        return Findings(
            scores=(
                *([] if first is None else [first]),
                mean_of("judged-chosen", JUDGED, [float(judge.predict(text) == "chosen") for text in texts]),
                mean_of(
                    "ends",
                    "greedy|answers that end with the end token",
                    [float(ids[-1:] != [] and ids[-1] in ends) for ids in said],
                ),
                mean_of("length", "greedy|tokens of an answer", [float(len(ids)) for ids in said]),
            ),
            examples=counted(rows),
            floors=floors(judge, rows),
            mistakes=[
                Mistake(row.first_prompt, "" if row.chosen is None else reply_of(row.chosen), text)
                for row, text in zip(some, texts, strict=True)
            ],
        )

    @classmethod
    def beside(
        cls,
        lm: "LanguageModel",
        begun: "Callable[[], LanguageModel]",
        source: Any,
        length: int,
        done: Any = None,
    ) -> "Sequence[tuple[str, Resampled]]":
        """Return the same of the model that the run began from, and the divergence from it of what is answered.

        Nothing where that one has other tokens, as a base has that knew no conversations.
        """
        from orrery.tasks.finetuning._pairs import answered, divergence, judge_of, prompts_of, reply_nats, rows_of
        from orrery.tasks.finetuning._separation import told_apart

        other = with_chat(begun(), lm)
        if other.tokenizer.fingerprint != lm.tokenizer.fingerprint:
            return []
        held_back = rows_of(lm, source, length)
        rows, sides = [row for row, _ in held_back], [side for _, own in held_back for side in own]
        both = [reply_nats(each, sides, done) for each in (lm, other)]
        gained = [after - before for after, before in zip(*both, strict=True)]
        some, said = answers(other, rows, done)
        judge = judge_of(source.train)
        prompts = prompts_of(lm, some)
        drawn = answered(lm, prompts, length, done, do_sample=True, temperature=1.0, top_k=0, top_p=1.0)
        polite = [float(judge.predict(other.tokenizer.decode(ids)) == "chosen") for ids in said]
        scores = (
            (BEGUN, likelier(other, held_back, done)),
            (BEGUN, mean_of("judged-chosen", JUDGED, polite)),
            (f"the model against {BEGUN}", told_apart(rows, gained, "log p / p_ref", "reward-accuracy")),
            (f"the model and {BEGUN}", divergence(lm, other, prompts, drawn)),
        )
        return [(name, score) for name, score in scores if score is not None]


JUDGED = "greedy|answers that naive Bayes over the words of training replies calls chosen"


def likelier(
    lm: "LanguageModel", held_back: "Sequence[tuple[Preference, list[RenderedReply]]]", done: Any = None
) -> "Resampled | None":
    """Return how well the likelihood of replies tells the chosen from the rejected: in a pair, all tokens together.

    Replies to different prompts, of different lengths, are compared by the mean over their tokens.
    """
    from orrery.tasks.finetuning._pairs import reply_nats
    from orrery.tasks.finetuning._separation import told_apart

    rows, sides = [row for row, _ in held_back], [side for _, own in held_back for side in own]
    nats = reply_nats(lm, sides, done)
    if any(len(row.sides) > 1 for row in rows):
        return told_apart(rows, nats, "log p")
    each = [own / (len(side.ids) - side.start) for own, side in zip(nats, sides, strict=True)]
    return told_apart(rows, each, "log p a token")


def answers(lm: "LanguageModel", rows: Sequence[Any], done: Any = None) -> tuple[list[Any], list[list[int]]]:
    """Return some rows, and what the model answers their prompts with, of at most 3/2 of the tokens of a reply."""
    from orrery.tasks.finetuning._pairs import answered, prompts_of, reply_of

    some = [rows[place] for place in range(0, len(rows), max(1, -(-len(rows) // ANSWERED)))]
    longest = max(len(lm.tokenizer.encode(reply_of(side))) for row in some for side, _ in row.sides)
    return some, answered(lm, prompts_of(lm, some), 3 * longest // 2, done)


def with_chat(begun: "LanguageModel", lm: "LanguageModel") -> "LanguageModel":
    """Return the model that a run began from; one that had no chat template has the run's."""
    from dataclasses import replace

    from orrery.language_model.model import LanguageModel

    stored = begun.stored
    return begun if stored.chat else LanguageModel(replace(stored, chat=lm.stored.chat))
