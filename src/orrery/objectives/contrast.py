"""Contrast: of all pictures and texts of a batch, those that belong together have similar vectors, and no others."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from orrery.errors import UsageError
from orrery.objectives import Objective, Term, register
from orrery.schema.section import Section

if TYPE_CHECKING:
    import torch
    from jaxtyping import Bool, Float, Int
    from torch import Tensor

    from orrery.models.dual_encoder import FilledRows
    from orrery.models.inputs import Batch
    from orrery.models.model import ModelSpec
    from orrery.text.tokenizer import Tokenizer

TERM = "pair"
SIMILARITY = "similarity"


@register
class Contrast(Objective):
    """``-(log softmax_rows(S)_bb + log softmax_columns(S)_bb) / 2`` in nats, ``S`` saying how well pictures fit texts.

    Radford et al. 2021, figure 3. Where the similarity has a bias it is ``-sum_n log sigmoid(z_bn S_bn)`` instead, with
    ``z`` 1 for the text of the picture and -1 for every other (Zhai et al. 2023, section 3.2).

    A batch has ``images`` and ``targets`` (the text as the tokenizer frames it, then its end token, -100 behind it)
    [B, L]; ``prepare`` makes ``ids`` and ``real`` of the latter, filled up where the model reads such texts. Every
    other text of the batch is a wrong one, also where two pictures have equal captions. The term couples all rows of a
    batch, so that the batch cannot be split.

    Differs from the paper: the scale is learned without a limit of 100, as in the reference's loss.
    """

    class Settings(Section):
        """Which text of a batch belongs to a picture, and which picture to a text."""

        kind: Literal["contrast"] = "contrast"

    needs = ("images", "targets")
    makes = ("ids", "real")
    metrics: ClassVar[tuple[str, ...]] = ("loss",)

    def __init__(self) -> None:
        self.cost: Callable[[Tensor], Tensor] = both_ways
        self.framed: Callable[[Tensor, Tensor], dict[str, Tensor]] = _padded

    def config(self, tokenizer: "Tokenizer | None") -> dict[str, Any]:
        """Return the token whose vector is a text's: the one that ends it."""
        return {} if tokenizer is None else {"eos_token_id": tokenizer.special("end")}

    def bind(self, spec: "ModelSpec", tokenizer: "Tokenizer | None") -> None:
        """Take what the model's similarity is learnt by and how its texts end.

        Raises:
            UsageError: it compares no pictures with texts, or looks for another end than texts have.
        """
        if SIMILARITY not in spec.heads:
            hint = "name the family clip or siglip, or begin from a model of one"
            raise UsageError("the objective contrast needs a model of pictures and texts, this model is none", hint)
        end = getattr(getattr(spec, "reads", None), "end", None)
        token = getattr(end, "token", None)
        if tokenizer is not None and token is not None and token != tokenizer.special("end"):
            message = f"the vector of a text stands at token {token}, and the tokenizer ends texts with "
            message += str(tokenizer.special("end"))
            raise UsageError(message, "leave eos_token_id out of model.config, or name the tokenizer of the model")
        similarity: Any = spec.heads[SIMILARITY]
        self.cost = each_pair if similarity.bias else both_ways
        fill = getattr(spec, "fill", None)
        self.framed = _padded if fill is None else partial(_filled, fill, fill.padding(tokenizer))

    def heads(self, spec: "ModelSpec") -> tuple[str, ...]:
        """Return the head that scores every picture with every text."""
        return (SIMILARITY,)

    def prepare(self, batch: "Batch", rng: "torch.Generator") -> "Batch":
        """Return the batch with the texts as the model reads them."""
        return {**batch, **self.framed(batch["targets"], batch["targets"] >= 0)}

    def counts(self, batch: "Batch") -> dict[str, int]:
        """Count the pictures, each with its text."""
        return {TERM: len(batch["images"])}

    def loss(self, model: Any, batch: "Batch") -> dict[str, Term]:
        """Return the summed cost of finding the text of each picture and the picture of each text."""
        from orrery.models.model import apply

        def summed(head: Any, pair: Any, real_BL: Any) -> "Tensor":
            return self.cost(apply(head, pair, real_BL))

        (total,) = model(batch, {SIMILARITY: summed}).values()
        return {TERM: Term(total, len(batch["images"]), coupled=True)}


def both_ways(scores_BB: "Float[Tensor, 'B B']") -> "Float[Tensor, '']":
    """Return half the summed cross entropy of rows and columns, whose right entry stands on the diagonal.

    At least in float32.
    """
    import torch
    import torch.nn.functional as F

    wide_BB = _wide(scores_BB)
    right_B = torch.arange(len(wide_BB), device=wide_BB.device)
    ways = (F.cross_entropy(each, right_B, reduction="sum") for each in (wide_BB, wide_BB.mT))
    return sum(ways, wide_BB.new_zeros(())) / 2


def each_pair(scores_BB: "Float[Tensor, 'B B']") -> "Float[Tensor, '']":
    """Return the summed cost of saying of each pair alone whether it fits, which those on the diagonal do.

    At least in float32. Differs from the paper: one device holds the whole batch.
    """
    import torch
    import torch.nn.functional as F

    wide_BB = _wide(scores_BB)
    sign_BB = 2 * torch.eye(len(wide_BB), dtype=wide_BB.dtype, device=wide_BB.device) - 1
    return -F.logsigmoid(sign_BB * wide_BB).sum()


def _wide(scores_BB: "Float[Tensor, 'B B']") -> "Float[Tensor, 'B B']":
    import torch

    return scores_BB if scores_BB.dtype == torch.float64 else scores_BB.float()


def _padded(targets_BL: "Int[Tensor, 'B L']", real_BL: "Bool[Tensor, 'B L']") -> "dict[str, Tensor]":
    """Return texts whose padding no token sees."""
    return {"ids": targets_BL.masked_fill(~real_BL, 0), "real": real_BL}


def _filled(
    fill: "FilledRows", token: int, targets_BL: "Int[Tensor, 'B L']", real_BL: "Bool[Tensor, 'B L']"
) -> "dict[str, Tensor]":
    """Return texts whose padding is read as any token."""
    import torch

    ids_BL = fill.of(targets_BL, real_BL, token)
    return {"ids": ids_BL, "real": torch.ones_like(ids_BL, dtype=torch.bool)}
