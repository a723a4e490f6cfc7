"""Contrast: of all pictures and texts of a batch, those that belong together have the most similar vectors."""

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from orrery.errors import UsageError
from orrery.objectives import Objective, Term, register
from orrery.schema.section import Section

if TYPE_CHECKING:
    import torch
    from jaxtyping import Float
    from torch import Tensor

    from orrery.models.inputs import Batch
    from orrery.models.model import ModelSpec
    from orrery.text.tokenizer import Tokenizer

TERM = "pair"
SIMILARITY = "similarity"


@register
class Contrast(Objective):
    """``-(log softmax_rows(S)_bb + log softmax_columns(S)_bb) / 2`` in nats, ``S`` saying how well pictures fit texts.

    Radford et al. 2021, figure 3. A batch has ``images`` and ``targets`` (the text as the tokenizer frames it, then its
    end token, -100 behind it) [B, L]; ``prepare`` makes ``ids`` and ``real`` of the latter. Every other text of the
    batch is a wrong one, also where two pictures have equal captions. The term couples all rows of a batch, so that the
    batch cannot be split.

    Differs from the paper: the scale is learned without a limit of 100, as in the reference's loss.
    """

    class Settings(Section):
        """Which text of a batch belongs to a picture, and which picture to a text."""

        kind: Literal["contrast"] = "contrast"

    needs = ("images", "targets")
    makes = ("ids", "real")
    metrics: ClassVar[tuple[str, ...]] = ("loss",)

    def config(self, tokenizer: "Tokenizer | None") -> dict[str, Any]:
        """Return the token whose vector is a text's: the one that ends it."""
        return {} if tokenizer is None else {"eos_token_id": tokenizer.special("end")}

    def bind(self, spec: "ModelSpec", tokenizer: "Tokenizer | None") -> None:
        """Refuse what compares no pictures with texts, and what looks for another end than texts have.

        Raises:
            UsageError: it is, or does.
        """
        if SIMILARITY not in spec.heads:
            hint = "name the family clip, or begin from a model of it"
            raise UsageError("the objective contrast needs a model of pictures and texts, this model is none", hint)
        end = getattr(getattr(spec, "reads", None), "end", None)
        token = getattr(end, "token", None)
        if tokenizer is not None and token is not None and token != tokenizer.special("end"):
            message = f"the vector of a text stands at token {token}, and the tokenizer ends texts with "
            message += str(tokenizer.special("end"))
            raise UsageError(message, "leave eos_token_id out of model.config, or name the tokenizer of the model")

    def heads(self, spec: "ModelSpec") -> tuple[str, ...]:
        """Return the head that scores every picture with every text."""
        return (SIMILARITY,)

    def prepare(self, batch: "Batch", rng: "torch.Generator") -> "Batch":
        """Return the batch with the texts as the model reads them."""
        real_BL = batch["targets"] >= 0
        return {**batch, "ids": batch["targets"].masked_fill(~real_BL, 0), "real": real_BL}

    def counts(self, batch: "Batch") -> dict[str, int]:
        """Count the pictures, each with its text."""
        return {TERM: len(batch["images"])}

    def loss(self, model: Any, batch: "Batch") -> dict[str, Term]:
        """Return the summed cost of finding the text of each picture and the picture of each text."""
        from orrery.models.model import apply

        def summed(head: Any, pair: Any, real_BL: Any) -> "Tensor":
            return both_ways(apply(head, pair, real_BL))

        (total,) = model(batch, {SIMILARITY: summed}).values()
        return {TERM: Term(total, len(batch["images"]), coupled=True)}


def both_ways(scores_BB: "Float[Tensor, 'B B']") -> "Float[Tensor, '']":
    """Return half the summed cross entropy of rows and columns, whose right entry stands on the diagonal.

    At least in float32.
    """
    import torch
    import torch.nn.functional as F

    wide_BB = scores_BB if scores_BB.dtype == torch.float64 else scores_BB.float()
    right_B = torch.arange(len(wide_BB), device=wide_BB.device)
    ways = (F.cross_entropy(each, right_B, reduction="sum") for each in (wide_BB, wide_BB.mT))
    return sum(ways, wide_BB.new_zeros(())) / 2
