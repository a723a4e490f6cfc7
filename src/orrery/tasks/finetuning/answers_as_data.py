"""A model's answers written as data to learn from: a teacher's, or the best of several by rewards."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from orrery.data.batches.seeds import derive_seed
from orrery.data.rows.prompts import Answered, Prompt, prompt_ids
from orrery.schema.writing import greedy

if TYPE_CHECKING:
    from orrery.language_model.model import LanguageModel
    from orrery.text.chat.render import ChatTemplate
    from orrery.training.rollouts import Judge

AT_ONCE = 64
"""Answers that are written together."""


@dataclass(frozen=True)
class Kept:
    """The answer to a prompt that is worth most, and its worth: 0 where nothing judges."""

    answered: Answered
    reward: float

    @property
    def row(self) -> Mapping[str, Any]:
        """The answer as a row of data: messages where the prompt is a conversation, else prompt and completion."""
        prompt, text = self.answered.prompt, self.answered.text
        if prompt.messages:
            said: dict[str, Any] = {"messages": [*prompt.messages, {"role": "assistant", "content": text}]}
        else:
            said = {"prompt": prompt.text, "completion": text}
        return {**said, "reward": self.reward}


def best_answers(
    lm: "LanguageModel",
    prompts: Sequence[Prompt],
    template: "ChatTemplate | None",
    judge: "Judge",
    *,
    samples: int = 1,
    max_new_tokens: int = 128,
    temperature: float = 1.0,
    seed: int = 1337,
) -> Iterator[Kept | None]:
    """Yield for each prompt the best finished answer of ``samples``, the first of equals; nothing where none ends.

    That is rejection sampling, or best of n (Stiennon et al. 2020; Touvron et al. 2023, section 3.2.3). With one sample
    and no reward it is a teacher's answer (Kim and Rush 2016, sequence-level distillation).

    Args:
        lm: what answers.
        prompts: what is asked.
        template: the format in which it is asked; none for bare texts.
        judge: the rewards; without any the first finished answer is taken.
        samples: answers to each prompt.
        max_new_tokens: of an answer at most; what has no end token by then is left out.
        temperature: divides the logits; 0 takes the likeliest tokens, and more samples are then the same.
        seed: of the draws.

    Raises:
        DataError: a reward is no finite number, or a prompt too long.
    """
    ends = lm.end if template is None else lm.end | template.end
    ids = prompt_ids(prompts, lm.tokenizer, template)
    drawn = {"do_sample": True, "temperature": temperature} if temperature else {}
    settings = greedy(max_new_tokens, eos_token_id=sorted(ends), **drawn)
    together = max(1, AT_ONCE // samples)
    for start in range(0, len(prompts), together):
        some = prompts[start : start + together]
        rows = [own for own in ids[start : start + together] for _ in range(samples)]
        seeds = [derive_seed(seed, "answer", start * samples + place) for place in range(len(rows))]
        answers_written = [each[0] for each in lm.write(rows, settings, seeds=seeds)]
        said = [
            _answered(lm, some[place // samples], own, own[-1:] and own[-1] in ends)
            for place, own in enumerate(answers_written)
        ]
        totals = _totals(judge, said)
        for place in range(len(some)):
            yield _best(said, totals, range(place * samples, (place + 1) * samples))


def _answered(lm: "LanguageModel", prompt: Prompt, ids: Sequence[int], finished: Any) -> Answered:
    text = lm.tokenizer.decode(list(ids[:-1] if finished else ids))
    return Answered(prompt, text, len(ids), bool(finished))


def _totals(judge: "Judge", said: Sequence[Answered]) -> list[float]:
    if not judge.rewards:
        return [0.0] * len(said)
    return [sum(w * value for w, value in zip(judge.weights, row, strict=True)) for row in judge(said)]


def _best(said: Sequence[Answered], totals: Sequence[float], places: range) -> Kept | None:
    finished = [place for place in places if said[place].finished and said[place].text.strip()]
    if not finished:
        return None
    best = max(finished, key=lambda place: totals[place])
    return Kept(said[best], totals[best])
