"""Two languages to translate from, each with one rule: the order is turned around, or it is free."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from orrery.models.encoder_decoder import EncoderDecoder
from orrery.models.inputs import Batch

START, END, FIRST = 1, 2, 3
"""The tokens around a target, and the first word; 0 is nothing."""


@dataclass(frozen=True)
class Pairs(ABC):
    """Draws batches of ``rows`` pairs; those of a training have from ``shortest`` to ``longest`` words."""

    words: int
    rows: int
    shortest: int
    longest: int

    @property
    def vocabulary(self) -> int:
        """How many tokens there are."""
        return FIRST + self.words

    def __call__(self, rng: torch.Generator) -> Batch:
        """Draw a batch of sentences of one length."""
        return self.of_length(int(torch.randint(self.shortest, self.longest + 1, (), generator=rng)), rng)

    def of_length(self, length: int, rng: torch.Generator) -> Batch:
        """Draw a batch of sentences of this length."""
        source_BS, target_BL = self.draw(length, rng)
        start_B1, end_B1 = (torch.full((self.rows, 1), token) for token in (START, END))
        return {
            "source": source_BS,
            "source_real": torch.ones_like(source_BS, dtype=torch.bool),
            "ids": torch.cat([start_B1, target_BL], 1),
            "targets": torch.cat([target_BL, end_B1], 1),
        }

    @abstractmethod
    def draw(self, length: int, rng: torch.Generator) -> tuple[Int[Tensor, "B S"], Int[Tensor, "B L"]]:
        """Draw sentences of this length and their translations."""


class ReversedPairs(Pairs):
    """Sentences to be written from their end; no word comes twice, so it is clear where to look."""

    def draw(self, length: int, rng: torch.Generator) -> tuple[Int[Tensor, "B S"], Int[Tensor, "B L"]]:
        """Draw different words."""
        source_BS = FIRST + torch.rand(self.rows, self.words, generator=rng).argsort(1)[:, :length]
        return source_BS, source_BS.flip(1)


@dataclass(frozen=True)
class FreeOrder(Pairs):
    """From a language of free word order into one where each part of speech has its place, as Latin into English.

    The words of a part of speech follow each other in the vocabulary. A sentence has any of the ``parts``, none twice,
    in any order; its translation has them in theirs. Where to look next is a question of what the words are, and
    counting the places does not help.
    """

    parts: int

    def draw(self, length: int, rng: torch.Generator) -> tuple[Int[Tensor, "B S"], Int[Tensor, "B L"]]:
        """Draw parts of speech, then a word of each."""
        each = self.words // self.parts
        part_BS = torch.rand(self.rows, self.parts, generator=rng).argsort(1)[:, :length]
        source_BS = FIRST + each * part_BS + torch.randint(each, part_BS.shape, generator=rng)
        return source_BS, source_BS.sort(1).values


@torch.no_grad()
def write(model: EncoderDecoder, source_BS: Tensor, tokens: int) -> Tensor:
    """Return what the model writes, greedily, ``tokens`` a row: it reads its own mistakes, and no end stops it."""
    logits_BV, session = model.start(source_BS, tokens)
    tokens_B1 = [logits_BV.argmax(-1, keepdim=True)]
    while len(tokens_B1) < tokens:
        tokens_B1.append(model.step(tokens_B1[-1], session)[:, -1].argmax(-1, keepdim=True))
    return torch.cat(tokens_B1, 1)


def accuracy(model: EncoderDecoder, batch: Batch) -> float:
    """Return the part of the target's tokens, the end among them, that the model writes in their places."""
    targets_BL = batch["targets"]
    return float((write(model, batch["source"], targets_BL.shape[1]) == targets_BL).float().mean())


def translator(family: str, vocabulary: int, width: int, **more: object) -> dict[str, object]:
    """Return the configuration of a small recurrent encoder-decoder; ``more`` belongs to it."""
    layers = {"num_layers": 1} if family in ("luong", "sutskever") else {}
    ends = {"decoder_start_token_id": START, "max_position_embeddings": 128}
    return {"vocab_size": vocabulary, "hidden_size": width, **ends, **layers, **more}
