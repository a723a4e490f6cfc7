"""What the tasks share that learn from the model's own answers: answers to prompts held back, and their rewards."""

from abc import ABC
from contextlib import suppress
from heapq import nlargest
from typing import TYPE_CHECKING, Any, ClassVar

from orrery.errors import UsageError
from orrery.runs.going_on import FOUND_FOR_ANSWERS
from orrery.schema.writing import greedy
from orrery.scores.resampled import AdditiveScore, mean_of
from orrery.tasks._task import Learned
from orrery.tasks.finetuning.findings import Findings, Mistake

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orrery.data.rows.prompts import Answered
    from orrery.exchange.reading.read import Stored
    from orrery.language_model.model import LanguageModel
    from orrery.recipes.config import Recipe
    from orrery.text.chat.render import ChatTemplate
    from orrery.training.rollouts import Judge

AT_ONCE = 64
"""Prompts that are answered together."""


class Answering(Learned, ABC):
    """A policy that answers prompts."""

    source: ClassVar[str] = "rollouts"
    batches: ClassVar[str] = "rollouts"
    whole: ClassVar[float] = 1.0
    found_in_recipes: ClassVar[tuple[str, ...]] = FOUND_FOR_ANSWERS
    split_by: ClassVar[str] = "prompt"
    asked_as: ClassVar[str] = "text_generation"

    @classmethod
    def lengths(cls, source: Any, stored: "Stored", most: int) -> tuple[int, list[int]]:
        """Return how many prompts there are, and how many tokens the longest have with the longest answer."""
        from orrery.data.rows.prompts import prompt_ids

        assert stored.tokenizer is not None
        some = nlargest(most, source.train, key=lambda prompt: len(prompt.text) + len(str(prompt.messages)))
        ids = prompt_ids(some, stored.tokenizer, source.template(stored.chat, stored.tokenizer))
        return len(source.train), [len(own) + source.settings.max_new_tokens for own in ids]

    @classmethod
    def found(cls, lm: "LanguageModel", source: Any, recipe: "Recipe", done: Any = None) -> Findings:
        """Return the rewards of the likeliest answer to each prompt held back, their length, and how many end."""
        from orrery.runs.assemble import judge as judge_of

        judge = judge_of(recipe.rewards)
        said = answered(lm, source, done)
        judged, totals = judge(said), totals_of(judge, said)
        how = f"greedy|max_new_tokens:{source.settings.max_new_tokens}"
        scores = [mean_of("reward", f"{how}|weights:{judge.weights}", totals)]
        if len(judge.rewards) > 1:
            scores += [mean_of(name, how, [row[place] for row in judged]) for place, name in enumerate(judge.rewards)]
        scores += [mean_of("length", f"{how}|tokens", [float(each.tokens) for each in said])]
        scores += [mean_of("ends", f"{how}|end token", [float(each.finished) for each in said])]
        worst = sorted(range(len(said)), key=lambda place: totals[place])
        return Findings(
            scores=tuple(scores),
            examples=f"{len(said):,} prompts held back",
            mistakes=[Mistake(said[n].prompt.text, f"{totals[n]:.3f}", said[n].text) for n in worst],
            floors=[("the model that it began from", begun(recipe, source, judge, how, done))]
            if recipe.model.begin
            else [],
        )

    @classmethod
    def findings(cls, lm: "LanguageModel", source: Any, length: int, done: Any = None) -> Findings:
        """Refuse: what answers are worth stands in a recipe.

        Raises:
            UsageError: always.
        """
        raise UsageError("answers are judged by the rewards of a recipe", "score the run, which has one")


def totals_of(judge: "Judge", said: "Sequence[Answered]") -> list[float]:
    """Return the weighted sum of the rewards of each answer."""
    return [sum(w * value for w, value in zip(judge.weights, row, strict=True)) for row in judge(said)]


def begun(recipe: "Recipe", source: Any, judge: "Judge", how: str, done: Any = None) -> "AdditiveScore":
    """Return the rewards of the model that a run began from, on the same prompts."""
    from orrery.language_model.load import load

    lm = load(str(recipe.model.begin), device=recipe.training.device, say=lambda line: None)
    return mean_of("reward", how, totals_of(judge, answered(lm, source, done)))


def answered(lm: "LanguageModel", source: Any, done: Any = None) -> "list[Answered]":
    """Return the likeliest answer to each prompt held back."""
    from orrery.data.rows.prompts import Answered, prompt_ids

    template = template_of(lm, source)
    ends = lm.end if template is None else lm.end | template.end
    settings = greedy(source.settings.max_new_tokens, eos_token_id=sorted(ends))
    prompts, ids = source.held_back, prompt_ids(source.held_back, lm.tokenizer, template)
    answers = []
    for start in range(0, len(ids), AT_ONCE):
        some = [each[0] for each in lm.write(ids[start : start + AT_ONCE], settings)]
        for prompt, own in zip(prompts[start : start + AT_ONCE], some, strict=True):
            finished = bool(own) and own[-1] in ends
            text = lm.tokenizer.decode(own[:-1] if finished else own)
            answers.append(Answered(prompt, text, len(own), finished))
        if done is not None:
            done(len(answers), len(ids))
    return answers


def template_of(lm: "LanguageModel", source: Any) -> "ChatTemplate | None":
    """Return the format in which a source's prompts are said to a model; none for bare texts."""
    return template_for(lm, source.settings.template)


def template_for(lm: "LanguageModel", choice: str | None) -> "ChatTemplate | None":
    """Return a chat format for a model: one by name or file, by default its own where it has one; none for ``plain``.

    Raises:
        UsageError: the choice is neither a format nor a file.
    """
    from orrery.data.sources.rollouts import PLAIN
    from orrery.errors import ModelFileError
    from orrery.tasks.finetuning._replies import template_of as chat_of

    if choice == PLAIN:
        return None
    if choice is not None:
        return lm.chat_template(choice)
    with suppress(ModelFileError):
        return chat_of(lm)
    return None
