"""The continuation of a text, or the answer in a chat: ``[{"generated_text": ...}]``."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from orrery.errors import UsageError
from orrery.language_model.model import LanguageModel
from orrery.schema.writing import said
from orrery.tasks._task import register
from orrery.tasks.pipelines._pipeline import Pipeline, text_of
from orrery.tasks.pipelines._rows import InputRow, row, whole
from orrery.tasks.pipelines._writing import WritingSettings, written

USUAL: Mapping[str, Any] = {"max_new_tokens": 256, "do_sample": True, "temperature": 0.7}
"""What holds where neither the caller nor the model's files say anything."""


class TextGenerationSettings(WritingSettings):
    """Whether the prompt comes back too, strings that end an answer; ``hole`` cuts a prompt to make room."""

    return_full_text: bool = True
    stop_sequence: str | list[str] | None = None
    handle_long_generation: Literal["hole"] | None = None


@register
class TextGeneration(Pipeline):
    """A decoder goes on with a text, or with a chat: a list of ``{"role", "content"}`` through the model's template.

    A chat comes back with the answer as its last message. Draws depend on ``seed`` and the number of the text, never on
    ``batch_size``; they are not the draws of transformers. A chat whose last message is the assistant's is refused.
    """

    kind = "text_generation"
    Settings = TextGenerationSettings

    def __init__(self, lm: LanguageModel, task: str, batch_size: int = 1, **settings: Any) -> None:
        if not lm.model.spec.writes or lm.model.spec.reads_source:
            raise UsageError(f"{task} needs a decoder", "text2text-generation answers with an encoder-decoder")
        super().__init__(lm, task, batch_size, **settings)

    def is_many(self, inputs: Any) -> bool:
        """Say whether what is given is a list of texts or of chats; a chat itself is a list."""
        return isinstance(inputs, list) and not _is_chat(inputs)

    def rows(self, item: Any, settings: TextGenerationSettings) -> Sequence[InputRow]:
        """Return the one row of a text or of a chat."""
        if _is_chat(item):
            if item[-1].get("role") == "assistant":
                raise UsageError("the chat ends with a message of the assistant", "end it with one of the user")
            ids = self.lm.chat_template().render(item, True).ids
            return [InputRow(ids, [0] * len(ids), [0] * len(ids))]
        text = (settings.prefix or "") + text_of(item, self.task)
        if not self.lm.tokenizer.around(ids := self.lm.tokenizer.encode(text)).ids:
            return [InputRow([], [], [])]
        if settings.handle_long_generation == "hole":
            return [self._with_room(row(self.lm, ids), settings)]
        return [whole(self.lm, text, truncation=settings.truncation)]

    def ask(self, rows: Sequence[InputRow], settings: TextGenerationSettings) -> Sequence[list[list[int]]]:
        """Return the ids of the answers to each row."""
        stop = [settings.stop_sequence] if isinstance(settings.stop_sequence, str) else settings.stop_sequence or []
        return written(self.lm, rows, settings, USUAL, self.lm.files_say(self.task), stop)

    def answer(
        self, item: Any, rows: Sequence[InputRow], outputs: Sequence[list[list[int]]], settings: TextGenerationSettings
    ) -> list[dict[str, Any]]:
        """Return the answers, by default behind what they go on with."""
        if settings.return_tensors:
            return [{"generated_token_ids": [*rows[0].ids, *ids]} for ids in outputs[0]]
        texts = [self.lm.tokenizer.decode(ids) for ids in outputs[0]]
        if not settings.return_full_text:
            return [{"generated_text": text} for text in texts]
        if _is_chat(item):
            return [{"generated_text": [*item, {"role": "assistant", "content": text}]} for text in texts]
        return [{"generated_text": item + text} for text in texts]

    def _with_room(self, row: InputRow, settings: TextGenerationSettings) -> InputRow:
        """Return a row without its beginning where it leaves no room for the answer.

        Raises:
            UsageError: the answer alone fills the context.
        """
        longest = (
            said(settings, "pipeline").get("max_new_tokens")
            or self.lm.writing.get("max_new_tokens")
            or USUAL["max_new_tokens"]
        )
        keep = self.lm.context - longest
        if keep < 1:
            hint = "lower max_new_tokens"
            raise UsageError(
                f"an answer of {longest:,} tokens leaves no room in the context of {self.lm.context:,}", hint
            )
        return InputRow(row.ids[-keep:], row.token_types[-keep:], row.texts[-keep:])


def _is_chat(item: Any) -> bool:
    return isinstance(item, list) and bool(item) and all(isinstance(one, dict) and "role" in one for one in item)
