"""What the objectives that learn from the model's own answers share: log probabilities, the reference, measures."""

from abc import ABC
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from orrery.errors import RunError, UsageError
from orrery.objectives import Objective, Term
from orrery.schema.registry import label_of
from orrery.schema.section import Section

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor, nn

    from orrery.models.inputs import Batch
    from orrery.models.model import ModelSpec
    from orrery.objectives._reference import Reference
    from orrery.text.tokenizer import Tokenizer

ROWS, TOKENS = ("reward", "length", "finished"), ("entropy", "kl_k1", "kl_k2", "kl_k3", "ratio", "clipped")
"""The measures of each row, and of each token that was written."""
LAW, AUTOCAST = 1e-5, 5e-2
"""How far log probabilities may be from those that tokens were drawn by, over ``max(1, max |log p|)``, as in every law.

With products in bfloat16 the cached and the whole forward pass round differently: the second bound is for these.
"""


Measure: TypeAlias = "Callable[[Tensor, Tensor, Tensor], Tensor]"
"""From the chosen tokens [N], the log probabilities at the temperature of the draw and the logits [N, V] to [N]."""


@dataclass(frozen=True)
class Told:
    """What a model says of the tokens that were written.

    Attributes:
        measures: of each measure, a value for each token, 0 where none was written, [B, L].
        stream_BLD: the final stream behind which each token is predicted: place ``t`` tells of token ``t``.
    """

    measures: "tuple[Tensor, ...]"
    stream_BLD: "Float[Tensor, 'B L D']"


def tell(model: Any, batch: "Batch", *measures: Measure) -> Told:
    """Return what a model says of what was written: logits are computed where a token was written and nowhere else."""
    from orrery.models.model import HIDDEN, LANGUAGE_MODEL

    written_BL, ids_BL = batch["written"], batch["ids"]
    tokens_N = ids_BL[written_BL]
    temperature_N1 = batch["temperature"][:, None].expand_as(ids_BL)[written_BL][:, None]

    def measured(head: "nn.Module", x_BLD: "Tensor", real_BL: "Tensor | None") -> "tuple[Tensor, ...]":
        logits_NV = head(before(x_BLD)[written_BL])
        logits_NV = logits_NV if logits_NV.dtype.itemsize > 4 else logits_NV.float()
        log_probs_NV = (logits_NV / temperature_N1.to(logits_NV.dtype)).log_softmax(-1)
        return tuple(placed(measure(tokens_N, log_probs_NV, logits_NV), written_BL) for measure in measures)

    def stream(head: "nn.Module", x_BLD: "Tensor", real_BL: "Tensor | None") -> "Tensor":
        return before(x_BLD)

    values = model(batch, {LANGUAGE_MODEL: measured, HIDDEN: stream})
    return Told(values[LANGUAGE_MODEL], values[HIDDEN])


def log_probability(tokens_N: "Tensor", log_probs_NV: "Tensor", logits_NV: "Tensor") -> "Tensor":
    """Return the log probability of each token at the temperature of the draw, in nats."""
    return log_probs_NV.gather(1, tokens_N[:, None])[:, 0]


def score(tokens_N: "Tensor", log_probs_NV: "Tensor", logits_NV: "Tensor") -> "Tensor":
    """Return the log probability of each token by the model's own logits, as the engine tells it."""
    return logits_NV.log_softmax(-1).gather(1, tokens_N[:, None])[:, 0]


def entropy(tokens_N: "Tensor", log_probs_NV: "Tensor", logits_NV: "Tensor") -> "Tensor":
    """Return the entropy of the distribution that each token was drawn from, in nats."""
    return -(log_probs_NV.exp() * log_probs_NV).sum(-1)


def seen_entropy(tokens_N: "Tensor", log_probs_NV: "Tensor", logits_NV: "Tensor") -> "Tensor":
    """Return the entropy without a gradient."""
    return entropy(tokens_N, log_probs_NV.detach(), logits_NV)


def seen_score(tokens_N: "Tensor", log_probs_NV: "Tensor", logits_NV: "Tensor") -> "Tensor":
    """Return the score without a gradient."""
    return score(tokens_N, log_probs_NV, logits_NV.detach())


def before(x_BLD: "Float[Tensor, 'B L D']") -> "Float[Tensor, 'B L D']":
    """Return the stream moved by one place: what stands before each token, and zeros before the first."""
    import torch

    return torch.cat([torch.zeros_like(x_BLD[:, :1]), x_BLD[:, :-1]], 1)


def placed(values_N: "Tensor", where_BL: "Bool[Tensor, 'B L']") -> "Tensor":
    """Return values at their places, in the order of rows, and 0 at all others."""
    return values_N.new_zeros(where_BL.shape).masked_scatter(where_BL, values_N)


def kl_estimates(new_BL: "Tensor", reference_BL: "Tensor") -> "tuple[Tensor, Tensor, Tensor]":
    """Return k1, k2 and k3 of ``KL(new || reference)`` at tokens that the new one has drawn (Schulman 2020).

    With ``d = log reference - log new``: ``k1 = -d``, ``k2 = d^2 / 2``, ``k3 = exp(d) - 1 - d``. k1 and k3 have the
    divergence as their mean; k2 and k3 are never below 0.

    Raises:
        RunError: k3 is below 0 by more than rounding.
    """
    d_BL = reference_BL - new_BL
    k3_BL = d_BL.expm1() - d_BL
    if bool((k3_BL < -1e-6 * (1 + d_BL.abs())).any()):
        raise RunError(f"the estimate k3 of the divergence is {float(k3_BL.min()):.2e}, below 0", "report this")
    return -d_BL, d_BL * d_BL / 2, k3_BL


class PolicySettings(Section, ABC):
    """What is said of any objective on the model's own answers."""


class Policy(Objective, ABC):
    """An objective on the model's own answers: it owns the reference, and remembers the log probabilities of the draw.

    The old log probabilities are the trainer's own, computed when a rollout is written, in the pieces and with the
    kernel of its first step: there the ratio is 1 to the last bit, or the run stops. They are within 1e-5 of those
    that the engine drew by, or the run stops. Where nothing but a rollout's only step asks for them, they are those of
    that step.
    """

    needs = ("ids", "real", "written", "scores", "reward", "group", "finished", "most", "temperature", "fresh")
    metrics = ("reward",)
    reports: tuple[str, ...] = (*ROWS, *TOKENS)

    reference: "Reference"

    def bind(self, spec: "ModelSpec", tokenizer: "Tokenizer | None") -> None:
        """Refuse what is no decoder, and dropout, with which no ratio of the first step is 1.

        Raises:
            UsageError: the model does not continue what it reads, or has dropout.
        """
        from orrery.models.dropout import without_dropout

        name = label_of(type(self))
        if not spec.writes or spec.reads_source:
            raise UsageError(f"the objective {name} needs a decoder, this model is none", "begin from a decoder")
        if without_dropout(spec) != spec:
            message = f"the objective {name}: the model has dropout, so that no two passes give the same probabilities"
            raise UsageError(message, "give --model.dropout 0")

    def modules(self, model: "nn.Module") -> "Mapping[str, nn.Module]":
        """Copy the model as the run begins."""
        from orrery.objectives._reference import Reference

        self.reference = Reference(model)
        return {"reference": self.reference}

    def check(self) -> None:
        """Look whether the reference is what it was."""
        self.reference.check()

    def observe(self, model: Any, batch: "Batch") -> "Mapping[str, Tensor]":
        """Return the log probabilities of what was written, by the model as it wrote it and by the reference.

        Raises:
            RunError: they are not those that the engine drew by.
        """
        return self.observed(tell(model, batch, log_probability, score), batch)

    def observed(self, output: Told, batch: "Batch") -> "dict[str, Tensor]":
        """Return the log probabilities of the draw, as told with their scores, and those of the reference."""
        old_BL, scores_BL = output.measures
        refuse_other_scores(scores_BL, batch["scores"])
        (reference_BL,) = tell(self.reference, batch, log_probability).measures
        return {"old": old_BL, "reference": reference_BL}

    def evaluated(self) -> Objective:
        """Return what has nothing to learn: the rewards of answers held back."""
        return RewardAlone()

    def measures(self, batch: "Batch", new_BL: "Tensor", entropy_BL: "Tensor", clipped_BL: "Tensor") -> dict[str, Term]:
        """Return the terms of weight 0: reward, length, entropy, divergence, ratio and what was clipped.

        Raises:
            RunError: the ratio of the first step on a rollout is not 1.
        """
        written_BL, rows = batch["written"], len(batch["ids"])
        new_BL = new_BL.detach()
        ratio_BL = (new_BL - batch["old"]).exp()
        refuse_other_ratio(ratio_BL, batch)
        k1_BL, k2_BL, k3_BL = kl_estimates(new_BL, batch["reference"])
        by_token = (entropy_BL.detach(), k1_BL, k2_BL, k3_BL, ratio_BL, clipped_BL)
        by_row = (batch["reward"], written_BL.sum(1), batch["finished"])
        tokens = written_BL.sum()
        terms = {name: Term(x_B.to(new_BL.dtype).sum(), rows, 0.0) for name, x_B in zip(ROWS, by_row, strict=True)}
        for name, x_BL in zip(TOKENS, by_token, strict=True):
            terms[name] = Term(x_BL.to(new_BL.dtype)[written_BL].sum(), tokens, 0.0)
        return terms

    def counted(self, batch: "Batch") -> dict[str, int]:
        """Count what the measures sum."""
        rows, tokens = len(batch["ids"]), int(batch["written"].sum())
        return {**dict.fromkeys(ROWS, rows), **dict.fromkeys(TOKENS, tokens)}


def refuse_other_scores(own_BL: "Tensor", drawn_BL: "Tensor") -> None:
    """Refuse log probabilities that are not those that the tokens were drawn by.

    Raises:
        RunError: they differ by more than the law allows.
    """
    import torch

    bound = AUTOCAST if torch.is_autocast_enabled(own_BL.device.type) else LAW
    gap = float((own_BL - drawn_BL).abs().max() / drawn_BL.abs().max().clamp(min=1))
    if not gap <= bound:
        message = f"the log probabilities of a rollout and of the trainer differ by {gap:.1e}, at most {bound:.0e} may"
        raise RunError(message, "the two computed different models: report this")


def refuse_other_ratio(ratio_BL: "Tensor", batch: "Batch") -> None:
    """Refuse a first step on a rollout whose ratio is not 1.

    Raises:
        RunError: it is not 1, to the last bit.
    """
    first_BL = batch["written"] & batch["fresh"][:, None]
    if bool((ratio_BL[first_BL] != 1).any()):
        worst = float((ratio_BL[first_BL] - 1).abs().max())
        message = f"the ratio of the first step on a rollout differs from 1 by {worst:.1e}"
        raise RunError(message, "the model has changed since it wrote, or computes otherwise: report this")


def centred(values_N: "Float[Tensor, ' N']") -> "Float[Tensor, ' N']":
    """Return values less their mean, in float64; where all are equal exactly 0, as their mean may be rounded."""
    import torch

    wide_N = values_N.double()
    return wide_N - wide_N.mean() if bool((wide_N != wide_N[:1]).any()) else torch.zeros_like(wide_N)


def deviation(values_N: "Float[Tensor, ' N']") -> float:
    """Return the standard deviation, with one less than their number below; 0 of a single value."""
    return float(centred(values_N).norm()) / (len(values_N) - 1) ** 0.5 if len(values_N) > 1 else 0.0


def refuse_unnormalised(values_N: "Tensor", what: str, *, scale: float | None = 1.0) -> None:
    """Refuse advantages whose mean is not 0, or whose standard deviation is not ``scale``, where one is given.

    Raises:
        RunError: they are not normalised.
    """
    import torch

    wide_N = values_N.double()
    mean, spread = float(wide_N.mean()) if len(wide_N) else 0.0, deviation(wide_N)
    size = max(1.0, float(wide_N.abs().max())) if len(wide_N) else 1.0
    wrong = not abs(mean) <= 1e-4 * size or (scale is not None and not abs(spread - scale) <= 1e-2)
    if wrong or not bool(torch.isfinite(wide_N).all()):
        message = f"the advantages of {what} have the mean {mean:.2e} and the scale {spread:.4f}"
        scale_note = "" if scale is None else f" and their scale {scale:.4g}"
        raise RunError(message, f"their mean should be 0{scale_note}: report this")


class RewardAlone(Objective):
    """``-reward``, averaged over answers: what is told of answers held back, with nothing to learn from it."""

    class Settings(Section):
        """It has no settings."""

        kind: Literal["reward_alone"] = "reward_alone"

    needs = ("ids", "real", "reward")
    metrics = ("reward",)

    def counts(self, batch: "Batch") -> dict[str, int]:
        """Count the answers."""
        return {"reward": len(batch["reward"])}

    def loss(self, model: Any, batch: "Batch") -> dict[str, Term]:
        """Return the negative sum of the rewards."""
        return {"reward": Term(-batch["reward"].sum(), len(batch["reward"]))}
