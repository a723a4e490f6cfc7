"""Rollouts: prompts that the model which is trained answers itself, again and again."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import model_validator
from pydantic_core import PydanticCustomError

from orrery.data.rows.prompts import Prompt, prompt_ids, read_prompts
from orrery.data.sources import BatchRequest, Examples, HeldBack, Source, register
from orrery.data.sources._rows import NAME, BySettings, RowsSettings, divided, fingerprint_of
from orrery.errors import DataError, UsageError
from orrery.schema.numbers import AboveZero, Positive
from orrery.text.chat.folder import DEFAULT
from orrery.text.chat.of_run import template_of_run, templates_of_run

if TYPE_CHECKING:
    from orrery.data.batches.rollouts import PromptRow
    from orrery.text.chat.render import ChatTemplate
    from orrery.text.tokenizer import Tokenizer

PLAIN = "plain"
"""In the place of a template: prompts are bare texts."""


class RolloutSettings(RowsSettings):
    """Which prompts, how they are answered, and how many optimizer steps are made of a rollout.

    Each prompt is answered ``samples`` times, with at most ``max_new_tokens`` drawn at ``temperature``. A rollout has
    ``minibatches`` batches of ``batches.size`` answers, and serves ``passes`` passes over them. ``template`` is a chat
    format or the file of one, in which a prompt is what the user says; by default the base's own, without one the model
    goes on from the bare text, as it does with ``plain``.
    """

    kind: Literal["rollouts"] = "rollouts"
    split: BySettings | None = None  # type: ignore[assignment]  # by rows or by prompts
    prompt: str | None = None
    template: str | None = None
    samples: Positive = 8
    max_new_tokens: Positive = 64
    temperature: AboveZero = 1.0
    minibatches: Positive = 1
    passes: Positive = 1

    @model_validator(mode="after")
    def _val_is_rows(self) -> "RolloutSettings":
        if self.temperature > 100:
            raise PydanticCustomError("number", "temperature must be at most 100")
        return self


@register
class RolloutSource(Source):
    """Answers that the model draws to prompts, with their rewards; the order of prompts follows from (seed, step).

    ``ids`` [B L] are prompt and answer, ``written`` [B L] says which tokens the model wrote, ``scores`` [B L] their
    log probabilities as it wrote them; ``reward`` [B] is the weighted sum of ``rewards`` [B R]; ``group`` [B] is the
    same for answers to one prompt; ``finished`` [B] whether the end token came; ``most`` [B] the most tokens of an
    answer; ``temperature`` [B] that of the draw; ``fresh`` [B] says that the model has not changed since it wrote, and
    ``once`` [B], in training, that no later step learns from these answers. Whatever the objective observes or
    credits is beside them.
    """

    Settings = RolloutSettings
    gives = (
        "ids", "real", "written", "scores", "reward", "rewards", "group", "finished", "most", "temperature", "fresh",
    )  # fmt: skip
    must_be_read = ("reward",)
    batch_kinds = ("rollouts",)
    needs_tokenizer = gives_text = True

    def __init__(self, settings: RolloutSettings, train: Sequence[Prompt], held_back: Sequence[Prompt]) -> None:
        self.settings, self.train, self.held_back = settings, train, held_back

    @classmethod
    def read(cls, settings: RolloutSettings) -> "RolloutSource":
        """Read the prompts.

        Raises:
            DataError: there are none, or one is empty.
        """

        def read(source: str) -> Iterable[Prompt]:
            return read_prompts(source, settings.prompt, invalid=settings.invalid, skip_bad=settings.skip_bad)

        return cls(settings, *divided(settings, read))

    @property
    def fingerprint(self) -> str:
        """The sha256 of all prompts in their order, with their rows, those held back too."""
        return fingerprint_of((prompt.text, dict(prompt.row)) for prompt in (*self.train, *self.held_back))

    def texts(self) -> Iterable[str]:
        """Return the prompts to learn from."""
        return (prompt.text for prompt in self.train)

    def chat(self, base: Mapping[str, str]) -> Mapping[str, str]:
        """Return the templates of the base, ``default`` the one that the prompts are rendered with."""
        choice = self.settings.template
        return base if choice in (None, PLAIN) else templates_of_run(choice, base)

    def template(self, chat: Mapping[str, str], tokenizer: "Tokenizer") -> "ChatTemplate | None":
        """Return the format in which prompts are said, of the templates of a run or model; none for bare texts."""
        if self.settings.template == PLAIN or DEFAULT not in chat:
            return None
        return template_of_run(chat, tokenizer)

    def examples(self, request: BatchRequest) -> Examples:
        """Encode the prompts and return what has them answered.

        Raises:
            DataError: a prompt leaves no room for its answer.
            UsageError: a rollout is no whole number of prompts.
        """
        from orrery.data.batches.rollouts import HeldBackAnswers, How, Rollouts

        settings = self.settings
        rows = request.size * settings.minibatches
        if rows % settings.samples:
            message = f"a rollout of {rows} answers (batches.size times data.minibatches), {settings.samples} a prompt"
            raise UsageError(message, "make it a multiple of data.samples")
        how = How(
            settings.samples, settings.max_new_tokens, settings.temperature, settings.minibatches, settings.passes
        )
        template = self.template(request.chat, request.required_tokenizer)
        train = Rollouts(encoded(self.train, request, settings, template), how, request.size, request.seed)
        others = HeldBackAnswers(encoded(self.held_back, request, settings, template), how, request.size, request.seed)
        per_step = rows / (settings.samples * settings.minibatches * settings.passes)
        return Examples(
            train=train,
            held_back=HeldBack(others, request.limited(len(others))) if self.held_back else None,
            tokens={NAME: len(self.train) * settings.max_new_tokens},
            batch_tokens=request.size * settings.max_new_tokens,
            epochs=lambda step: {NAME: step * per_step / len(self.train)},
            notes=(
                f"a rollout: {rows // settings.samples:,} of {len(self.train):,} prompts, answered {settings.samples} "
                f"times each; {settings.passes * settings.minibatches} steps of {request.size} answers",
            ),
        )


def encoded(
    prompts: Sequence[Prompt], request: BatchRequest, settings: RolloutSettings, template: "ChatTemplate | None"
) -> "list[PromptRow]":
    """Return the prompts with their ids.

    Raises:
        DataError: a prompt has no tokens, or is so long that prompt and answer pass the length of a row.
    """
    from orrery.data.batches.rollouts import PromptRow

    ids = prompt_ids(prompts, request.required_tokenizer, template)
    room = request.length - settings.max_new_tokens
    for prompt, own in zip(prompts, ids, strict=True):
        if not 0 < len(own) <= room:
            message = f"{prompt.where}: a prompt of {len(own):,} tokens, and batches.length {request.length:,} leaves "
            message += f"{max(room, 0):,} beside an answer of {settings.max_new_tokens:,}"
            raise DataError(
                message, "shorten it, lower data.max_new_tokens, or raise batches.length as far as the context goes"
            )
    return [PromptRow(prompt, tuple(own)) for prompt, own in zip(prompts, ids, strict=True)]
