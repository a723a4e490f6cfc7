"""What is counted of pairs of replies: floors, a judge of words, and how far two models are from each other."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float
from torch import Tensor

from orrery.data.batches.rendering import render_prompt
from orrery.data.rows.preferences import Preference
from orrery.data.sources.preferences import fitted, rendered
from orrery.errors import UsageError
from orrery.generation.batched import in_batches
from orrery.schema.writing import greedy
from orrery.scores.resampled import AdditiveScore, Resampled
from orrery.tasks.finetuning._counting import NaiveBayes
from orrery.tasks.finetuning._replies import BATCH, before_last_reply, template_of
from orrery.tasks.finetuning._separation import told_apart
from orrery.text.chat.messages import text_of

if TYPE_CHECKING:
    from orrery.data.batches.preferences import RenderedReply
    from orrery.exchange.reading.read import Stored
    from orrery.language_model.model import LanguageModel
    from orrery.tasks._task import Done

GOOD, BAD = "chosen", "rejected"


def reply_of(conversation: Any) -> str:
    """Return the last reply of a conversation."""
    return text_of(conversation.messages[-1])


def lengths(source: Any, stored: "Stored", most: int) -> tuple[int, list[int]]:
    """Return how many rows there are, and how many ids the longer side of some has in the template of the run."""
    from orrery.text.chat.of_run import control_tokens, template_of_run
    from orrery.text.special import with_control

    assert stored.tokenizer is not None
    templates = source.chat(stored.chat)
    template = template_of_run(templates, with_control(stored.tokenizer, control_tokens(templates)))
    some = source.train[:: max(1, len(source.train) // most)]
    return len(source.train), [max(len(rendered(template, side).ids) for side, _ in row.sides) for row in some]


def rows_of(lm: "LanguageModel", source: Any, length: int) -> "list[tuple[Preference, list[RenderedReply]]]":
    """Return the rows held back whose sides fit into a row as in training, rendered as the model's own chats are.

    Raises:
        UsageError: there is none.
    """
    template, most = template_of(lm), min(length, lm.context)
    rows = []
    for row in source.held_back:
        sides = fitted([rendered(template, side) for side, _ in row.sides], most, source.long, row.where)
        if sides is not None:
            rows.append((row, sides))
    if not rows:
        raise UsageError("no preference held back fits into a row", "raise batches.length, or set data.long to cut")
    return rows


def pairs_of(lm: "LanguageModel", source: Any, length: int) -> "list[tuple[Preference, list[RenderedReply]]]":
    """Return the pairs among the rows held back.

    Raises:
        UsageError: there is none.
    """
    pairs = [(row, sides) for row, sides in rows_of(lm, source, length) if len(sides) > 1]
    if not pairs:
        raise UsageError("no pair is held back: every reply stands alone", "give --val FILE with pairs")
    return pairs


def counted(rows: Iterable[Preference]) -> str:
    """Say how many pairs are held back, and how many replies that stand alone."""
    sides = [len(row.sides) for row in rows]
    counts = {"pairs": sides.count(2), "replies that stand alone": sides.count(1)}
    return f"{' and '.join(f'{count:,} {what}' for what, count in counts.items() if count)} held back"


def judge_of(rows: Iterable[Preference]) -> NaiveBayes:
    """Return naive Bayes over the words of the replies that were chosen and rejected in training."""
    said = [(reply_of(side), GOOD if good else BAD) for row in rows for side, good in row.sides]
    return NaiveBayes([text for text, _ in said], [label for _, label in said])


def floors(judge: NaiveBayes, rows: Sequence[Preference]) -> list[tuple[str, Resampled]]:
    """Return how well the length of a reply and its words tell the chosen from the rejected, where they can."""
    said = [side for row in rows for side, _ in row.sides]
    scores = {
        "the shorter reply": told_apart(rows, [-float(len(reply_of(side))) for side in said], "- characters"),
        "naive Bayes over words of replies": told_apart(rows, [odds_of(judge, side) for side in said], "odds of words"),
    }
    return [(name, score) for name, score in scores.items() if score is not None]


def odds_of(judge: NaiveBayes, conversation: Any) -> float:
    """Return ``log p(chosen | words) - log p(rejected | words)`` of a reply; 0 where training had one kind alone."""
    sums = dict(zip(judge.labels, judge.sums(reply_of(conversation)), strict=True))
    return sums[GOOD] - sums[BAD] if len(sums) > 1 else 0.0


@torch.no_grad()
def reply_nats(lm: "LanguageModel", sides: "Sequence[RenderedReply]", done: "Done | None" = None) -> list[float]:
    """Return ``log p(y | x)`` of the last reply of each, in nats, all its tokens together."""
    from orrery.data.batches.preferences import SingleReply, mismatched
    from orrery.objectives._replies import token_log_probabilities

    def measure(numbers: list[int]) -> list[float]:
        batch = mismatched(lm.context)([SingleReply(sides[number], True) for number in numbers])
        own = {name: batch[name][:, 0].to(lm.device) for name in ("ids", "real", "reply")}
        nats: list[float] = token_log_probabilities(lm.model, own).double().sum(-1).tolist()
        return nats

    return in_batches([len(side.ids) for side in sides], BATCH, measure, of_whole(done, len(sides)))


def of_whole(done: "Done | None", total: int) -> Callable[[int], None] | None:
    """Return what tells how many are done beside how many there are."""
    return None if done is None else lambda count: done(count, total)


def answered(
    lm: "LanguageModel", prompts: Sequence[Sequence[int]], most: int, done: "Done | None" = None, **settings: Any
) -> list[list[int]]:
    """Return the ids that a model answers prompts with, greedily unless the settings say otherwise."""
    limit = max(1, min(most, lm.context - max(map(len, prompts))))
    settings_of_answers = greedy(limit, **settings)

    def write(numbers: list[int]) -> list[list[int]]:
        seeds = [1337 + number for number in numbers] if settings_of_answers["do_sample"] else None
        return [each[0] for each in lm.write([prompts[number] for number in numbers], settings_of_answers, seeds=seeds)]

    return in_batches([len(prompt) for prompt in prompts], BATCH, write, of_whole(done, len(prompts)))


def prompts_of(lm: "LanguageModel", rows: Iterable[Preference]) -> list[list[int]]:
    """Return the ids of what is asked in each row, up to where the reply begins."""
    template = template_of(lm)
    return [render_prompt(template, before_last_reply(row.either)) for row in rows]


@torch.no_grad()
def divergence(
    lm: "LanguageModel", other: "LanguageModel", prompts: Sequence[list[int]], answers: Sequence[list[int]]
) -> AdditiveScore:
    """Return ``sum_t KL(p(. | x, y_<t) || q(. | x, y_<t))`` in nats of answers that the first model has drawn.

    The mean over its answers is the divergence of the two models; each token's is exact, so that it varies less than
    ``log p - log q`` of what was drawn does.
    """
    from orrery.data.batches.preferences import RenderedReply, SingleReply, mismatched

    sides = [RenderedReply([*prompt, *answer], len(prompt)) for prompt, answer in zip(prompts, answers, strict=True)]

    def measure(numbers: list[int]) -> list[list[float]]:
        batch = mismatched(lm.context)([SingleReply(sides[number], True) for number in numbers])
        ids_BL, reply_BL = (batch[name][:, 0].to(lm.device) for name in ("ids", "reply"))
        own_BLV, others_BLV = (predicted(each, ids_BL) for each in (lm, other))
        kl_BL = (own_BLV.exp() * (own_BLV - others_BLV)).sum(-1) * reply_BL[:, 1:]
        return torch.stack([kl_BL.sum(-1), reply_BL[:, 1:].sum(-1).double()], 1).tolist()

    import numpy as np

    sums = np.array(in_batches([len(side.ids) for side in sides], BATCH, measure), np.float64)
    return AdditiveScore(
        "KL", "nats a token|answers drawn at temperature 1", sums, lambda total: float(total[0] / max(1.0, total[1])),
        higher_is_better=False,
    )  # fmt: skip


def predicted(lm: "LanguageModel", ids_BL: Tensor) -> Float[Tensor, "B M V"]:
    """Return the log probabilities of every next token; rows padded on the right read the same as alone."""
    log_probabilities_BMV: Tensor = lm.model.logits(ids_BL)[:, :-1].double().log_softmax(-1)
    return log_probabilities_BMV
