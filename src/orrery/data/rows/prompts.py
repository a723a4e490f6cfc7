"""Prompts that a model is to answer: rows with a text, and whatever else their answers are judged by."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orrery.data.batches.rendering import render_prompt
from orrery.data.corpora import read_placed_rows
from orrery.data.files import Invalid, bad_record, kept
from orrery.data.rows.asked import asked, asked_text, beside, turns_of, with_system
from orrery.data.rows.conversations import Conversation
from orrery.data.rows.exported import usual_rows
from orrery.data.rows.messages import at
from orrery.errors import DataError
from orrery.text.chat.messages import Message, checked_messages
from orrery.text.chat.messages import text_of as said_in
from orrery.text.chat.render import ChatTemplate
from orrery.text.tokenizer import Tokenizer

PROMPTS = ("prompt", "question", "problem", "instruction", "query", "text", "input", "source", "messages")
"""Names of the column with the prompt, the likeliest first."""


@dataclass(frozen=True)
class Prompt:
    """One prompt.

    Attributes:
        where: where it stands, file:line.
        text: what is asked: of a conversation, what its last message says.
        row: all columns, in which a reward finds the right answer.
        messages: the conversation so far, where the prompt is one.
    """

    where: str
    text: str
    row: Mapping[str, Any]
    messages: tuple[Message, ...] = ()

    @property
    def conversation(self) -> Conversation:
        """The conversation that the assistant is to answer; a text alone is what the user says."""
        return Conversation(self.where, self.messages or tuple(turns_of(self.text)), beside(self.row, self.where))

    @property
    def first_prompt(self) -> str:
        """What the user says first; prompts that share it are about the same."""
        return self.conversation.first_prompt

    @property
    def parts(self) -> tuple[str, ...]:
        """The first prompt."""
        return (self.first_prompt,)

    @property
    def whole(self) -> tuple[str, ...]:
        """All that was said."""
        return self.conversation.whole


@dataclass(frozen=True)
class Answered:
    """An answer to a prompt.

    Attributes:
        prompt: what was asked.
        text: the answer, without its end token.
        tokens: how many it has, the end token among them.
        finished: whether it ended with an end token, rather than where no more tokens were allowed.
    """

    prompt: Prompt
    text: str
    tokens: int
    finished: bool

    def column(self, named: str | None, known: Sequence[str]) -> str:
        """Return what the prompt's row has in a column: the one asked for, else the first of the known names.

        Raises:
            DataError: there is none, or it holds no text.
        """
        row, where = self.prompt.row, self.prompt.where
        if isinstance(row.get("reward_model"), Mapping):
            row = {**row, **row["reward_model"]}  # verl's ground_truth
        name = named or next((name for name in known if name in row), None)
        if name is None or name not in row:
            message = f"{where}: no column {named or ' or '.join(known)} among {', '.join(row)[:200]}"
            raise DataError(message, "name the column with the right answer in the reward: column: NAME")
        value = row[name]
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise bad_record(where, f"column {name!r} is not a text but {type(value).__name__}")
        return str(value)


def read_prompts(
    source: str | Path, column: str | None = None, *, invalid: Invalid = "error", skip_bad: int = 0
) -> Iterator[Prompt]:
    """Yield the prompts of a source.

    Args:
        source: JSON lines, a table, Parquet, or a named or generated set.
        column: which holds the prompts; by default the first of the known names.
        invalid: what to do about bytes that are no UTF-8.
        skip_bad: how many bad rows are left out.

    Raises:
        DataError: there is no such column, or a prompt is empty or no text; its line is named; or there are none.
    """
    any_read = False
    placed = read_placed_rows(source, invalid=invalid, skip_bad=skip_bad)
    rows = placed if column else usual_rows(str(source), placed, pairs=False)
    for prompt in kept(rows, lambda where, row: _prompt(where, row, column), skip_bad):
        any_read = True
        yield prompt
    if not any_read:
        raise DataError(f"{source}: 0 prompts", "check that the file was written whole")


def _prompt(where: str, row: Mapping[str, Any], column: str | None) -> Prompt:
    name = column or next((name for name in PROMPTS if name in row), None)
    if name is None or name not in row:
        message = f"{where}: no column {column or 'is known to hold a prompt'} among {', '.join(row)[:200]}"
        raise DataError(message, "name it: `prompt=COLUMN`")
    text, messages = asked_text(row, name, where), with_system(row, asked(row, name, where))
    if text is not None and messages == turns_of(text):
        return Prompt(where, text, row)
    messages = at(where, lambda: checked_messages(messages))
    if messages[-1]["role"] == "assistant":
        raise bad_record(where, f"the conversation in column {name!r} ends with the assistant: nothing is asked")
    return Prompt(where, said_in(messages[-1]), row, tuple(messages))


def prompt_ids(prompts: Sequence[Prompt], tokenizer: Tokenizer, template: ChatTemplate | None) -> list[list[int]]:
    """Return the ids of prompts: as conversations up to where the assistant begins, or as plain texts.

    Raises:
        DataError: a conversation and no template, or one that the template cannot say; its place is named.
    """
    if template is not None:
        return [render_prompt(template, prompt.conversation) for prompt in prompts]
    if talks := [prompt.where for prompt in prompts if prompt.messages]:
        message = f"{talks[0]}: the prompt is a conversation, and the model has no chat template"
        raise DataError(message, "name one: --data.template chatml, or begin from a model that was trained with one")
    return tokenizer.encode_batch([prompt.text for prompt in prompts])
