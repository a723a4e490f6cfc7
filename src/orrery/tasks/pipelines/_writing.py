"""What the tasks that write share: the settings of writing, and a source of an encoder-decoder in, its answers out."""

from abc import ABC
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch

from orrery.errors import UsageError
from orrery.language_model.model import LanguageModel
from orrery.models.default_device import on_cpu_by_default
from orrery.schema import writing
from orrery.schema.numbers import Seed
from orrery.schema.writing_fields import with_settings
from orrery.tasks.pipelines._pipeline import Pipeline, PipelineSettings, text_of
from orrery.tasks.pipelines._rows import InputRow, whole

KEYS = tuple(writing.at("pipeline"))
"""The settings that are keys of a generation_config.json; what is not given is as the model's files say."""


@with_settings(*KEYS)
class CaptionSettings(PipelineSettings, ABC):
    """The keys of a generation_config.json, with the meaning that transformers gives them, and ``seed`` of draws."""

    return_tensors: bool = False
    seed: Seed = 1337


@with_settings(*KEYS)
class WritingSettings(PipelineSettings, ABC):
    """The same keys, and ``prefix``, which stands before a text."""

    return_tensors: bool = False
    prefix: str | None = None
    seed: Seed = 1337


def written(
    lm: LanguageModel,
    rows: Sequence[Any],
    settings: Any,
    usual: Mapping[str, Any],
    of_task: Mapping[str, Any],
    stop: Sequence[str] = (),
) -> list[list[list[int]]]:
    """Return the ids of the answers to each row.

    What is given counts before what config.json says of the task, this before the rest of the model's files, and
    ``usual`` is what holds where nobody says anything.
    """
    said = {**lm.writing, **{key: value for key, value in of_task.items() if key in KEYS}}
    given = writing.said(settings, "pipeline")
    said |= given
    left = {key: value for key, value in usual.items() if key not in said}
    if "max_length" in said:
        left.pop("max_new_tokens", None)
    seeds = [settings.seed + row.number * given.get("num_return_sequences", 1) for row in rows]
    return lm.write([row.read for row in rows], {**left, **said}, seeds=seeds, stop=stop)


def told(lm: LanguageModel, name: str, answers: Sequence[Sequence[int]], *, ids: bool) -> list[dict[str, Any]]:
    """Return the answers of an encoder-decoder as texts, or their ids behind the token that they begin with."""
    if ids:
        return [{f"{name}_token_ids": torch.tensor([lm.model.first_token, *one])} for one in answers]
    return [{f"{name}_text": lm.tokenizer.decode(one)} for one in answers]


class FromSource(Pipeline, ABC):
    """A text in, the answers of an encoder-decoder out: ``[{"..._text": ...}]``.

    ``returns`` begins the names of what comes back. Where neither the caller nor the model's files say anything, four
    beams write at most 256 tokens; ``task_specific_params`` and the ``prefix`` of config.json count.
    """

    Settings: ClassVar[type[WritingSettings]] = WritingSettings
    returns: ClassVar[str]
    usual: ClassVar[Mapping[str, Any]] = writing.OF_SOURCE

    def __init__(self, lm: LanguageModel, task: str, batch_size: int = 1, **settings: Any) -> None:
        if not self.fits(lm):
            raise UsageError(
                f"{task} needs an encoder-decoder that reads texts", "text-generation continues texts with a decoder"
            )
        super().__init__(lm, task, batch_size, **settings)

    @on_cpu_by_default
    def __call__(self, inputs: Any, **settings: Any) -> Any:
        """Return the answers; one to each of a list of texts stands there without a list of its own."""
        answered = super().__call__(inputs, **settings)
        if isinstance(inputs, list) and all(len(answers) == 1 for answers in answered):
            return [answers[0] for answers in answered]
        return answered

    @classmethod
    def fits(cls, lm: LanguageModel) -> bool:
        """Say whether the model writes what it reads in another form."""
        return lm.model.spec.reads_source and lm.model.spec.vocabulary is not None

    def writer(self, settings: Any) -> LanguageModel:
        """Return the model as the settings want it to read and write."""
        return self.lm

    def rows(self, item: Any, settings: WritingSettings) -> Sequence[InputRow]:
        """Return the one row of a text, behind the prefix."""
        said = self.lm.files_say(self.task).get("prefix", "")
        prefix = said if settings.prefix is None else settings.prefix
        return [whole(self.writer(settings), prefix + text_of(item, self.task), truncation=settings.truncation)]

    def ask(self, rows: Sequence[InputRow], settings: WritingSettings) -> Sequence[list[list[int]]]:
        """Return the ids of the answers to each row."""
        return written(self.writer(settings), rows, settings, self.usual, self.lm.files_say(self.task))

    def answer(
        self, item: Any, rows: Sequence[InputRow], outputs: Sequence[list[list[int]]], settings: WritingSettings
    ) -> list[dict[str, Any]]:
        """Return the answers as texts, or their ids behind the token that they begin with."""
        return told(self.lm, self.returns, outputs[0], ids=settings.return_tensors)
