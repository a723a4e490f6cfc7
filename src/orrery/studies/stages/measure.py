"""What is measured of the stages that write: perplexity, rewards, wins, divergence, how answers end, conversations."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from orrery.data.batches.rendering import render_prompt
from orrery.data.rows.conversations import Conversation, read_conversations
from orrery.data.sources.preferences import rendered as whole
from orrery.errors import UsageError
from orrery.language_model.load import load
from orrery.language_model.rewards import rewards_of_ids
from orrery.nn.heads import Headless
from orrery.schema.writing import greedy
from orrery.scores.resampled import AdditiveScore, Resampled, mean_of
from orrery.studies.stages.recipe import ReportSettings, Staged
from orrery.studies.stages.talks import Talk, TalkAnswer, answer_of, talks, user_turns, written
from orrery.tasks.dpo import with_chat
from orrery.tasks.finetuning._pairs import divergence
from orrery.tasks.finetuning._replies import before_last_reply, fitting, measured, template_of

if TYPE_CHECKING:
    from orrery.language_model.model import LanguageModel

Now = Callable[[str], None]


@dataclass(frozen=True)
class Material:
    """What all stages are measured on.

    Attributes:
        dialogues: conversations that no stage has learnt.
        prompts: conversations that the judge has held back, up to the reply.
        asked: what users say, turn by turn.
        judge: the reward model.
        against: the stage with which others are compared.
        settings: of the report.
    """

    dialogues: Sequence[Conversation]
    prompts: Sequence[Conversation]
    asked: Sequence[Sequence[str]]
    judge: "LanguageModel"
    against: "LanguageModel"
    settings: ReportSettings


@dataclass(frozen=True)
class StageResult:
    """What is found of one stage.

    Attributes:
        name: of the stage.
        scores: each with what is needed for its interval.
        answers: to the prompts, in their order.
        rewards: of these.
        talks: the conversations.
    """

    name: str
    scores: Sequence[Resampled]
    answers: Sequence[TalkAnswer]
    rewards: Sequence[float]
    talks: Sequence[Talk]

    def score(self, name: str) -> Resampled | None:
        """Return a score by its name."""
        return next((each for each in self.scores if each.name == name), None)


def material(staged: Staged, folder: Path) -> Material:
    """Read what the stages are measured on.

    Raises:
        UsageError: the judge is no stage with preferences, some of them held back.
        DataError: the dialogues cannot be read.
    """
    settings = staged.settings.report
    assert settings is not None
    judged = next(stage for stage in staged.stages if stage.name == settings.judge)
    recipe = judged.recipe(folder)
    source: Any = recipe.source_class.read(recipe.data)
    rows = getattr(source, "held_back", ())
    if recipe.data.kind != "preferences" or not rows:
        hint = "let report.judge name a stage with the objective reward, and hold rows back: data.split"
        raise UsageError(f"the stage {judged.name} judges, and holds back no preferences", hint)
    different = {row.first_prompt: before_last_reply(row.either) for row in rows}
    against = quiet(folder / settings.against)
    talk = list(read_conversations(settings.dialogues))
    return Material(
        talk[: settings.conversations],
        list(different.values())[: settings.prompts],
        user_turns(talk, settings.conversations, settings.turns),
        quiet(folder / settings.judge),
        against,
        settings,
    )


def quiet(run: Path) -> "LanguageModel":
    """Return the model of a run."""
    return load(run, say=lambda line: None)


def writing_stages(staged: Staged, folder: Path, material: Material) -> "dict[str, LanguageModel]":
    """Return the models that write and read the same tokens as the one that all are compared with, by stage."""
    by_name = {}
    for stage in staged.stages:
        lm = quiet(folder / stage.name)
        if has_words(lm) and lm.tokenizer.fingerprint == material.against.tokenizer.fingerprint:
            by_name[stage.name] = with_chat(lm, material.against)
    return by_name


def has_words(lm: "LanguageModel") -> bool:
    """Say whether a model writes: a decoder whose head was replaced by a reward's does not."""
    spec: Any = lm.model.spec
    return bool(spec.writes) and not isinstance(getattr(spec, "head", None), Headless.Spec)


def measure(
    name: str, lm: "LanguageModel", material: Material, beside: Sequence[float] | None, now: Now
) -> StageResult:
    """Return what is found of a stage; ``beside`` are the rewards of the stage that it is compared with."""
    settings, template = material.settings, template_of(lm)
    now(f"{name}: reads {len(material.dialogues):,} dialogues")
    kept = fitting(lm, material.dialogues, "all", lm.context)
    perplexity = AdditiveScore(
        "perplexity", "exp(nats / token) of replies in dialogues held back",
        measured(lm, [rendered for _, rendered in kept])[:, :2],
        lambda total: math.exp(min(total[0] / max(1.0, total[1]), 700)), higher_is_better=False,
    )  # fmt: skip
    prompts, ends = prompt_rows(lm, material), lm.end | template.end
    how = greedy(settings.max_new_tokens, eos_token_id=sorted(ends))
    now(f"{name}: answers {len(prompts):,} prompts")
    said = [answer_of(lm, ids, ends) for ids in written(lm, prompts, how, settings.temperature)]
    rewards = judged(material, said)
    now(f"{name}: draws answers for the divergence")
    drawn = written(lm, prompts, how, 1.0, turn=1)
    apart = divergence(lm, material.against, prompts, drawn)
    held = talks(
        lm, template, material.asked, max_new_tokens=settings.max_new_tokens, temperature=settings.temperature,
        done=lambda turn, count: now(f"{name}: turn {turn} of {settings.turns}, {count:,} conversations answered"),
    )  # fmt: skip
    scores = (perplexity, *of_answers(said, rewards, beside, settings), apart, *of_talks(held, settings))
    return StageResult(name, scores, said, rewards, held)


def prompt_rows(lm: "LanguageModel", material: Material) -> list[list[int]]:
    """Return the ids of the prompts, without those that leave no room for an answer."""
    template, room = template_of(lm), lm.context - material.settings.max_new_tokens
    rows = [render_prompt(template, each) for each in material.prompts]
    return [row[-max(1, room) :] for row in rows]


@torch.no_grad()
def judged(material: Material, said: Sequence[TalkAnswer]) -> list[float]:
    """Return the rewards of answers to the prompts; an answer is read as a finished one, whether or not it was."""
    template, context = template_of(material.judge), material.judge.context
    rows = []
    for prompt, answer in zip(material.prompts, said, strict=True):
        messages = (*prompt.messages, {"role": "assistant", "content": answer.text})
        rows.append(whole(template, Conversation(prompt.where, messages)).ids[-context:])
    return rewards_of_ids(material.judge.stored, rows)


def of_answers(
    said: Sequence[TalkAnswer], rewards: Sequence[float], beside: Sequence[float] | None, settings: ReportSettings
) -> list[Resampled]:
    """Return reward, wins, length and how answers end."""
    how = f"max_new_tokens:{settings.max_new_tokens}|temperature:{settings.temperature:g}"
    measured: list[Resampled] = [mean_of("reward", f"{how}|judge:{settings.judge}", rewards)]
    if beside is not None:
        wins = [
            1.0 if own > other else 0.5 if own == other else 0.0 for own, other in zip(rewards, beside, strict=True)
        ]
        measured.append(mean_of("wins", f"{how}|larger reward than {settings.against}, ties half", wins))
    measured.append(mean_of("length", f"{how}|tokens of an answer", [float(each.tokens) for each in said]))
    measured.append(mean_of("ends", f"{how}|end token within the limit", [float(each.ended) for each in said]))
    leaks = [float(each.leaked) for each in said]
    return [*measured, mean_of("leaks", f"{how}|role or control token in the answer", leaks, higher_is_better=False)]


def of_talks(held: Sequence[Talk], settings: ReportSettings) -> list[Resampled]:
    """Return the share of conversations that keep the format in every turn."""
    how = f"{settings.turns} turns|max_new_tokens:{settings.max_new_tokens}|temperature:{settings.temperature:g}"
    return [
        mean_of("format", f"{how}|every answer ends, none leaks a role or control token", [float(t.kept) for t in held])
    ]


def measure_all(staged: Staged, folder: Path, now: Now) -> tuple[Material, Mapping[str, StageResult]]:
    """Measure every stage that writes, that first with which the others are compared.

    Raises:
        UsageError: the stage to compare with does not write.
    """
    now("reads what the stages are measured on")
    shared = material(staged, folder)
    if not has_words(shared.against):
        raise UsageError(f"report.against: the stage {shared.settings.against} writes no text", "name one that does")
    models = writing_stages(staged, folder, shared)
    first = shared.settings.against
    results = {first: measure(first, models[first], shared, None, now)}
    for name, lm in models.items():
        if name != first:
            results[name] = measure(name, lm, shared, results[first].rewards, now)
    return shared, {name: results[name] for name in models}
