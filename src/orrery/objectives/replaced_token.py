"""Replaced-token detection: which tokens of a text a small generator has written."""

from typing import TYPE_CHECKING, Any, Literal

from orrery.errors import UsageError
from orrery.objectives import Objective, Term, register
from orrery.objectives._generator import generator_spec
from orrery.objectives._masking import Masking, fill_in
from orrery.objectives._real import real_tokens, with_real
from orrery.schema.numbers import AboveZero, Part
from orrery.schema.section import Section

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch
    from torch import Tensor, nn

    from orrery.models.inputs import Batch
    from orrery.models.model import ModelSpec
    from orrery.text.tokenizer import Tokenizer

HEAD = "replaced"
GENERATED = "generated"


@register
class ReplacedTokenDetection(Objective):
    """``masked(generator) + weight * BCE(D(x'), x' != x)``, over chosen and over all real tokens.

    ``x'`` is the text whose chosen tokens, all of them masked, the generator has replaced, drawn from its
    distribution; what it happens to write as it was counts as original. No gradient goes through the draw. Clark et
    al. 2020, section 3: 15 %, weight 50. Both in nats.

    Differs from the paper: the generator has embeddings of its own, which cost a table more, because what an objective
    owns is saved beside the model and apart from it.
    """

    class Settings(Section):
        """``generator`` is the share of the model's width and heads; ``weight`` that of the second term."""

        kind: Literal["replaced_token"] = "replaced_token"
        probability: Part = 0.15
        generator: Part = 0.25
        weight: AboveZero = 50.0

    needs = ("ids",)
    makes = ("ids", "targets", "masked", "uniform", "whole")

    def __init__(self, probability: float = 0.15, generator: float = 0.25, weight: float = 50.0) -> None:
        self.masking = Masking(probability, masked=1.0, random=0.0)
        self.fraction, self.weight = generator, weight
        self.generator: Any = None

    def bind(self, spec: "ModelSpec", tokenizer: "Tokenizer | None") -> None:
        """Refuse a model without a score for each token, and one that no generator can be derived from.

        Raises:
            UsageError: the model is one of these, or the tokenizer has no mask token.
        """
        from orrery.nn.heads import TokenHead

        head = spec.heads.get(HEAD)
        reads_alone = not spec.writes and "ids" in spec.inputs
        if not reads_alone or not isinstance(head, TokenHead.Spec) or head.labels != 1:
            message = (
                "the objective replaced_token needs an encoder with a head replaced of one label, this model has none"
            )
            hint = (
                "model.family: electra with model.config.architectures: [ElectraForPreTraining]; or model.heads with "
            )
            raise UsageError(message, hint + "replaced: {kind: token, labels: 1}")
        encoder: Any = spec
        generator_spec(encoder, self.fraction)
        self.masking.bind(tokenizer, "replaced_token")

    def heads(self, spec: "ModelSpec") -> tuple[str, ...]:
        """Return the head that tells replaced tokens."""
        return (HEAD,)

    def modules(self, model: "nn.Module") -> "Mapping[str, nn.Module]":
        """Make the generator, with fresh weights."""
        import torch

        from orrery.models.initialise import initialise

        described: Any = model
        self.generator = generator_spec(described.spec, self.fraction).build()
        initialise(self.generator, len(self.generator.stack.blocks), int(torch.randint(2**62, ())))
        self.generator.kernel = described.kernel
        return {"generator": self.generator}

    def prepare(self, batch: "Batch", rng: "torch.Generator") -> "Batch":
        """Hide tokens, and draw the number by which the generator's distribution at each place is drawn from.

        ``masked`` is what the generator reads, ``ids`` the text; ``uniform`` is [B L]; ``whole`` marks the real tokens.
        """
        import torch

        real_BL = real_tokens(batch)
        masked_BL, targets_BL = self.masking.draw(batch["ids"], real_BL, rng)
        uniform_BL = torch.rand(batch["ids"].shape, generator=rng, dtype=torch.float64)
        made = {"targets": targets_BL, "masked": masked_BL, "uniform": uniform_BL, "whole": real_BL}
        return {**with_real(batch, real_BL), **made}

    def counts(self, batch: "Batch") -> dict[str, int]:
        """Count the chosen tokens, and all real ones."""
        from orrery.nn.cross_entropy import IGNORED

        return {GENERATED: int((batch["targets"] != IGNORED).sum()), HEAD: int(batch["whole"].sum())}

    def loss(self, model: Any, batch: "Batch") -> dict[str, Term]:
        """Return the loss of the generator, and that of the model on what it wrote."""
        from torch.nn.functional import binary_cross_entropy_with_logits

        from orrery.nn.cross_entropy import IGNORED

        targets_BL, whole_BL = batch["targets"], batch["whole"]
        chosen_BL = targets_BL != IGNORED
        drawn_M: list[Tensor] = []

        def written(head: "nn.Module", x_BLD: "Tensor", real_BL: "Tensor | None") -> "Tensor":
            drawn_M.append(sampled(head(x_BLD[chosen_BL].detach()), batch["uniform"][chosen_BL]))
            return fill_in(head, x_BLD, targets_BL)

        # In the mode of the model, so that evaluation drops nothing out.
        self.generator.train(model.training)
        generated = self.generator({**batch, "ids": batch["masked"]}, {"masked": written})["masked"]
        ids_BL = batch["ids"].masked_scatter(chosen_BL, drawn_M[0])
        replaced_BL = ids_BL != batch["ids"]

        def told(head: "nn.Module", x_BLD: "Tensor", real_BL: "Tensor | None") -> "Tensor":
            import torch

            logits_N = head(x_BLD, real_BL)[..., 0][whole_BL]
            wide_N = logits_N if logits_N.dtype == torch.float64 else logits_N.float()
            return binary_cross_entropy_with_logits(wide_N, replaced_BL[whole_BL].to(wide_N.dtype), reduction="sum")

        loss_found = model({**batch, "ids": ids_BL}, {HEAD: told})[HEAD]
        return {GENERATED: Term(generated, chosen_BL.sum()), HEAD: Term(loss_found, whole_BL.sum(), self.weight)}


def sampled(logits_MV: "Tensor", uniform_M: "Tensor") -> "Tensor":
    """Return a token of each distribution: the first whose cumulative probability is above a uniform number.

    Shapes: ``[M, V]`` and ``[M]`` to ``[M]``.
    """
    import torch

    with torch.no_grad():
        cumulative_MV = logits_MV.double().softmax(-1).cumsum(-1)
        wanted_M = uniform_M[:, None] * cumulative_MV[:, -1:]
        ids_M: Tensor = torch.searchsorted(cumulative_MV, wanted_M, right=True)[:, 0]
        return ids_M.clamp(max=logits_MV.shape[-1] - 1)
