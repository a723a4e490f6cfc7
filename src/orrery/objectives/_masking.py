"""The corruption of masked language modelling, which several objectives share."""

from typing import TYPE_CHECKING

from orrery.errors import UsageError

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from orrery.models.model import ModelSpec
    from orrery.text.tokenizer import Tokenizer

MASKED, RANDOM = 0.8, 0.1
"""Of the chosen tokens: the share that becomes the mask token, and that which becomes another one."""


class Masking:
    """Chooses tokens, hides them, and says what they were.

    ``probability`` of the ordinary tokens are chosen: each by itself, or with ``whole_words`` all of a word or none.
    Of these 80 % become the mask token, 10 % an ordinary token drawn from all, 10 % stay (Devlin et al. 2019, section
    3.1). ``masked`` and ``random`` are these shares. Everything is drawn again in each step (Liu et al. 2019).

    Differs from BERT's code, which chooses exactly 15 % of a row and at most 20 tokens, and from whose random tokens
    the special ones are not left out; transformers draws as here, with special tokens among the random ones.
    """

    def __init__(
        self, probability: float, whole_words: bool = False, masked: float = MASKED, random: float = RANDOM
    ) -> None:
        self.probability, self.whole_words = probability, whole_words
        self.masked, self.random = masked, random
        self.mask = 0
        self.ordinary_N: Tensor
        self.ordinary_V: Tensor
        self.begins_V: Tensor

    def bind(self, tokenizer: "Tokenizer | None", name: str) -> None:
        """Make the tables over the vocabulary.

        Raises:
            UsageError: there is no tokenizer, it has no mask token, or does not say where words begin.
        """
        import torch

        from orrery.text.word_starts import word_starts

        if tokenizer is None or "mask" not in tokenizer.roles:
            what = "the data need no tokenizer" if tokenizer is None else "the tokenizer has none"
            hint = "tokenizer.frame: bert or roberta gives a trained tokenizer a mask token; or name tokenizer.file"
            raise UsageError(f"the objective {name} needs a mask token, and {what}", hint)
        self.mask = tokenizer.special("mask")
        self.ordinary_V = torch.ones(tokenizer.size, dtype=torch.bool)
        self.ordinary_V[list(tokenizer.control)] = False
        self.ordinary_N = self.ordinary_V.nonzero()[:, 0]
        if self.whole_words:
            self.begins_V = torch.tensor(word_starts(tokenizer))

    def draw(self, ids_BL: "Tensor", real_BL: "Tensor", rng: "torch.Generator") -> tuple["Tensor", "Tensor"]:
        """Return the corrupted ids, and the targets: what a chosen token was, -100 elsewhere. Shapes: ``[B, L]``."""
        import torch

        from orrery.nn.cross_entropy import IGNORED

        ordinary_BL = real_BL & self.ordinary_V[ids_BL]
        drawn_BL = torch.rand(ids_BL.shape, generator=rng)
        if self.whole_words:
            # One draw a word: each token looks up that of its word, numbered along the row.
            words_BL = (self.begins_V[ids_BL] | ~ordinary_BL).long().cumsum(1)
            drawn_BL = drawn_BL.gather(1, (words_BL - 1).clamp(min=0))
        chosen_BL = ordinary_BL & (drawn_BL < self.probability)
        places_M = chosen_BL.flatten().nonzero()[:, 0]
        kind_M = torch.rand(places_M.shape, generator=rng)
        others_M = self.ordinary_N[torch.randint(len(self.ordinary_N), places_M.shape, generator=rng)]
        was_M = ids_BL.flatten()[places_M]
        becomes_M = torch.where(kind_M < self.masked + self.random, others_M, was_M)
        becomes_M = torch.where(kind_M < self.masked, self.mask, becomes_M)
        corrupted = ids_BL.flatten().clone()
        corrupted[places_M] = becomes_M
        return corrupted.view_as(ids_BL), ids_BL.masked_fill(~chosen_BL, IGNORED)


def masked_head(spec: "ModelSpec", name: str) -> str:
    """Return the head that fills in masked tokens: ``masked``, or the main one.

    Raises:
        UsageError: the model reads from left to right, or its head is no score for every token of the vocabulary.
    """
    from orrery.nn.heads import LanguageModelHead

    head = "masked" if "masked" in spec.heads else next(iter(spec.heads), "")
    if spec.writes or not isinstance(spec.heads.get(head), LanguageModelHead.Spec):
        hint = "name an encoder's family: bert, roberta, albert, distilbert, deberta_v2, electra, modernbert"
        raise UsageError(
            f"the objective {name} needs an encoder with a head for masked tokens, this model is none", hint
        )
    return head


def fill_in(head: "torch.nn.Module", x_BLD: "Tensor", targets_BL: "Tensor") -> "Tensor":
    """Return the summed cross entropy of a head at the chosen tokens alone: the others cost no logits."""
    from orrery.nn.cross_entropy import IGNORED, head_cross_entropy

    chosen_BL = targets_BL != IGNORED
    return head_cross_entropy(head, x_BLD[chosen_BL], targets_BL[chosen_BL])
