"""A language without grammar: sentences of different words, to be written backwards."""

from dataclasses import dataclass

import torch
from torch import Tensor

from orrery.models.sequence_to_sequence import SequenceToSequence
from orrery.objectives.protocols import Batch

START, END, FIRST = 1, 2, 3
"""The tokens around a target, and the first word; 0 is nothing."""


@dataclass(frozen=True)
class Backwards:
    """Pairs of a sentence and the same sentence from its end; no word comes twice, so it is clear where to look."""

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
        draws = torch.rand(self.rows, self.words, generator=rng)
        source_BS = FIRST + draws.argsort(1)[:, :length]
        target_BL = source_BS.flip(1)
        start_B1, end_B1 = (torch.full((self.rows, 1), token) for token in (START, END))
        return {
            "source": source_BS,
            "source_real": torch.ones_like(source_BS, dtype=torch.bool),
            "ids": torch.cat([start_B1, target_BL], 1),
            "targets": torch.cat([target_BL, end_B1], 1),
        }


@torch.no_grad()
def write(model: SequenceToSequence, source_BS: Tensor, tokens: int) -> Tensor:
    """Return what the model writes, greedily, ``tokens`` a row: it hears its own mistakes, and the end ends nothing."""
    logits_BV, state = model.start(source_BS, tokens)
    written = [logits_BV.argmax(-1, keepdim=True)]
    while len(written) < tokens:
        logits_B1V, state = model.step(written[-1], state)
        written.append(logits_B1V[:, -1].argmax(-1, keepdim=True))
    return torch.cat(written, 1)


def accuracy(model: SequenceToSequence, batch: Batch) -> float:
    """Return the part of the target's tokens, the end among them, that the model writes in their places."""
    targets_BL = batch["targets"]
    return float((write(model, batch["source"], targets_BL.shape[1]) == targets_BL).float().mean())


def translator(family: str, vocabulary: int, width: int) -> dict[str, object]:
    """Return the configuration of a small recurrent encoder-decoder."""
    layers = {"num_layers": 1} if family in ("luong", "sutskever") else {}
    ends = {"decoder_start_token_id": START, "max_position_embeddings": 128}
    return {"vocab_size": vocabulary, "hidden_size": width, **ends, **layers}
