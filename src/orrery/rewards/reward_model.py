"""A reward model: what one that was trained on preferences says of an answer."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from orrery.errors import DataError, UsageError
from orrery.rewards import Reward, RewardSettings, register
from orrery.schema.numbers import Positive

if TYPE_CHECKING:
    from orrery.data.rows.prompts import Answered
    from orrery.exchange.reading.read import Stored
    from orrery.text.chat.render import ChatTemplate


@register
class RewardModel(Reward):
    """The number that a head with one label gives the conversation with the answer as its last message.

    It is rendered with the reward model's own template; one without reads the prompt and behind it the answer. The
    answer is read as a finished one, whether or not it was.
    """

    class Settings(RewardSettings):
        """``model`` is a run or a folder; ``head`` its head; ``size`` answers are read together."""

        kind: Literal["reward_model"] = "reward_model"
        model: str
        head: str = "sequence"
        size: Positive = 32

    def __init__(self, model: str, head: str = "sequence", size: int = 32) -> None:
        self.model, self.head, self.size = model, head, size

    @cached_property
    def stored(self) -> "Stored":
        """The model, read when it is first asked for.

        Raises:
            ModelFileError: there is none.
            UsageError: it has no head of this name with one label, or no tokenizer.
        """
        from orrery.exchange.reading.read import read

        loaded = read(self.model)
        head: Any = loaded.model.spec.heads.get(self.head)
        if getattr(head, "labels", None) != 1:
            known = ", ".join(loaded.model.spec.head_names) or "none"
            message = f"{self.model} is no reward model: it has no head {self.head} with one number, it has {known}"
            raise UsageError(message, "train one with the objective reward")
        if loaded.tokenizer is None:
            raise UsageError(f"{self.model} has no tokenizer", "put its tokenizer.json into the folder")
        return loaded

    @property
    def fingerprint(self) -> str:
        """The sha256 of its weights."""
        digest = hashlib.sha256()
        for name, tensor in self.stored.model.state_dict().items():
            digest.update(name.encode())
            digest.update(str(tensor.dtype).encode())
            digest.update(tensor.contiguous().flatten().float().numpy().tobytes())
        return digest.hexdigest()

    def score(self, answers: "Sequence[Answered]") -> list[float]:
        """Return the number for each.

        Raises:
            DataError: a conversation is longer than the model reads; its prompt's place is named.
        """
        import torch

        ids = [self._ids(each) for each in answers]
        numbers: list[float] = []
        with torch.no_grad():
            for start in range(0, len(ids), self.size):
                numbers += self._numbers(ids[start : start + self.size])
        return numbers

    def _numbers(self, rows: Sequence[Sequence[int]]) -> list[float]:
        """Return the head's number for some rows of ids."""
        import torch

        lengths = torch.tensor([len(row) for row in rows])
        ids = torch.zeros(len(rows), int(lengths.max()), dtype=torch.long)
        for place, row in enumerate(rows):
            ids[place, : len(row)] = torch.tensor(row)
        real = torch.arange(ids.shape[1]) < lengths[:, None]
        numbers = self.stored.model({"ids": ids, "real": real}, (self.head,))[self.head]
        return [float(number) for number in numbers.flatten()]

    def _ids(self, answered: "Answered") -> list[int]:
        """Return the conversation with the answer, as it is read in training.

        Raises:
            DataError: it is longer than the model reads.
        """
        from orrery.data.sources.preferences import rendered

        assert self.stored.tokenizer is not None
        if self._template is None:
            ids_read = self.stored.tokenizer.encode(answered.prompt.text + answered.text)
        else:
            before = answered.prompt.conversation
            messages = (*before.messages, {"role": "assistant", "content": answered.text})
            ids_read = rendered(self._template, replace(before, messages=messages)).ids
        context = self.stored.model.spec.context
        if not 0 < len(ids_read) <= context:
            message = (
                f"{answered.prompt.where}: {len(ids_read):,} tokens with the answer, the reward model reads {context:,}"
            )
            raise DataError(message, "allow shorter answers (data.max_new_tokens), or train it with a longer context")
        return ids_read

    @cached_property
    def _template(self) -> "ChatTemplate | None":
        from orrery.text.chat.folder import DEFAULT
        from orrery.text.chat.of_run import template_of_run

        assert self.stored.tokenizer is not None
        known = DEFAULT in self.stored.chat
        return template_of_run(self.stored.chat, self.stored.tokenizer) if known else None
