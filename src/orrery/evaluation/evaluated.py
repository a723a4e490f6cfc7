"""What a task that scores items found: the scores, and of each item what it says and how it went."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from orrery.language_model.model import LanguageModel
from orrery.scores.resampled import Resampled

Done = Callable[[str], None]
"""Told after each batch what has been done so far."""


@dataclass(frozen=True)
class Evaluated:
    """The result of a task.

    Attributes:
        scores: each of the same items in the same order; the first is the task's own.
        items: the text of each item, as training data could have held it.
        details: what is known of each item, as JSON can say it.
        groups: (score, items) of each group of items, by name.
        notes: what else must be known to read the scores.
    """

    scores: Sequence[Resampled]
    items: Sequence[str]
    details: Sequence[Mapping[str, Any]]
    groups: Mapping[str, tuple[float, int]] = field(default_factory=dict)
    notes: Sequence[str] = ()


def answers(
    lm: LanguageModel,
    prompts: Sequence[str],
    *,
    seeds: Sequence[int],
    stop: Sequence[str],
    max_new_tokens: int,
    batch_size: int,
    done: Done | None = None,
    **sampling: Any,
) -> list[str]:
    """Return what a model writes after each prompt, up to the first of the stop strings.

    Prompts of like length are continued together, the longest first; each row is what it would be alone with its
    seed. A prompt that leaves no room for an answer loses its beginning.

    Args:
        lm: a model that writes.
        prompts: the texts to continue.
        seeds: of the draws, one for each prompt.
        stop: strings that end an answer and do not belong to it.
        max_new_tokens: the most tokens of an answer.
        batch_size: answers written at once.
        done: told after each batch.
        sampling: how tokens are drawn, as in ``LanguageModel.generations``.
    """
    order = sorted(range(len(prompts)), key=lambda place: (-len(prompts[place]), place))
    answers: dict[int, str] = {}
    for start in range(0, len(order), batch_size):
        batch = order[start : start + batch_size]
        generations = lm.generations(
            [prompts[place] for place in batch], max_new_tokens=max_new_tokens, stop=list(stop),
            seed=[seeds[place] for place in batch], truncate="left", **sampling,
        )  # fmt: skip
        answers.update(zip(batch, (one.text for one in generations), strict=True))
        if done is not None:
            done(f"{len(answers):,} of {len(prompts):,} answers written")
    return [answers[place] for place in range(len(prompts))]
