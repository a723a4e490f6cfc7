"""Proximal policy optimisation: advantages from a value head, ratios that are clipped, a reward that holds back."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Tag

from orrery.objectives import Term, register
from orrery.objectives._policy import (
    Policy,
    PolicySettings,
    centred,
    deviation,
    entropy,
    log_probability,
    refuse_unnormalised,
    score,
    tell,
)
from orrery.schema.numbers import AboveZero, NotNegative, Share
from orrery.schema.section import Section, kind_or

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor, nn

    from orrery.models.inputs import Batch
    from orrery.objectives._kl_control import KlControl

POLICY, VALUE, BONUS, WEIGHT = "policy", "value", "bonus", "kl_weight"
TINY = 1e-8
"""Added to the variance of the advantages of a rollout."""


class FixedKl(Section):
    """The divergence has the same weight throughout."""

    kind: Literal["fixed"] = "fixed"
    weight: NotNegative = 0.05


class AdaptiveKl(Section):
    """The weight rises while the divergence of an answer is above ``target``, in nats, and falls while it is below."""

    kind: Literal["adaptive"] = "adaptive"
    weight: AboveZero = 0.2
    target: AboveZero = 6.0
    horizon: AboveZero = 10_000.0


Kl = Annotated[Annotated[FixedKl, Tag("fixed")] | Annotated[AdaptiveKl, Tag("adaptive")], kind_or("fixed", "adaptive")]


@register
class Ppo(Policy):
    """``mean over tokens of -min(r A, clip(r) A) + c_v (V - G)^2 / 2 - c_e H``, in nats.

    The reward of a token is ``-b (log old - log reference)``, that of the last one also the answer's. ``A`` is
    GAE(lambda) over the tokens of an answer, normalised over the rollout; ``G = A + V`` before that. The value's change
    is clipped as the ratio's is. Schulman et al. 2017, equations 7, 9 and 11; Ouyang et al. 2022, section 3.5, for the
    reward; Ziegler et al. 2019 for the adaptive weight ``b``. ``V`` is a linear head on the policy's final stream, that
    starts at 0 and is saved with the run, apart from the model.

    Differs from Ouyang et al.: the value shares the policy's stack, and no pre-training gradient is mixed in. An answer
    that is cut off ends as a finished one does: nothing is added for what it might have become.
    """

    class Settings(PolicySettings):
        """``clip`` bounds ratio and value; ``discount`` and ``trace`` are GAE's gamma and lambda."""

        kind: Literal["ppo"] = "ppo"
        clip: AboveZero = 0.2
        value_clip: AboveZero = 0.2
        value_weight: NotNegative = 0.1
        entropy_weight: NotNegative = 0.0
        discount: Share = 1.0
        trace: Share = 0.95
        kl: Kl = FixedKl()

    reports = (*Policy.reports, VALUE, WEIGHT)

    def __init__(
        self,
        clip: float = 0.2,
        value_clip: float = 0.2,
        value_weight: float = 0.1,
        entropy_weight: float = 0.0,
        discount: float = 1.0,
        trace: float = 0.95,
        kl: FixedKl | AdaptiveKl | None = None,
    ) -> None:
        self.low, self.high, self.value_clip = 1 - clip, 1 + clip, value_clip
        self.value_weight, self.entropy_weight = value_weight, entropy_weight
        self.discount, self.trace = discount, trace
        self.kl = kl or FixedKl()
        self.value: Any = None
        self.control: KlControl | None = None

    def modules(self, model: "nn.Module") -> "Mapping[str, nn.Module]":
        """Copy the model, and make the value head and what leads the divergence."""
        from torch import nn

        from orrery.objectives._kl_control import KlControl

        described: Any = model
        self.value = nn.Linear(described.spec.width, 1)
        nn.init.zeros_(self.value.weight)
        nn.init.zeros_(self.value.bias)
        self.control = KlControl(**self.kl.model_dump(exclude={"kind"}))
        return {**super().modules(model), "value": self.value, "control": self.control}

    def observe(self, model: Any, batch: "Batch") -> "Mapping[str, Tensor]":
        """Return log probabilities, those of the reference too, and values, each by the model as it wrote."""
        output = tell(model, batch, log_probability, score)
        return {**self.observed(output, batch), "values": self._values(output.stream_BLD, batch)}

    def credit(self, batch: "Batch") -> "Mapping[str, Tensor]":
        """Return advantages and what the values should have been, and let the weight follow the divergence."""
        assert self.control is not None
        written_BL, values_BL = batch["written"], batch["values"]
        kl_BL = (batch["old"] - batch["reference"]) * written_BL
        weight = float(self.control.weight)
        rewards_BL = -weight * kl_BL
        rewards_BL = rewards_BL + batch["reward"][:, None].to(kl_BL.dtype) * last(written_BL)
        advantages_BL = gae(rewards_BL, values_BL, written_BL, self.discount, self.trace)
        self.control.follow(float(kl_BL.sum(1).mean()), len(kl_BL))
        credited = {
            "returns": (advantages_BL + values_BL) * written_BL,
            "advantages": whitened(advantages_BL, written_BL),
        }
        return {**credited, "kl_weight": kl_BL.new_full((len(kl_BL),), weight)}

    def counts(self, batch: "Batch") -> dict[str, int]:
        """Count the tokens that were written."""
        tokens = int(batch["written"].sum())
        return {POLICY: tokens, VALUE: tokens, BONUS: tokens, WEIGHT: len(batch["ids"]), **self.counted(batch)}

    def loss(self, model: Any, batch: "Batch") -> dict[str, Term]:
        """Return the surrogate, the value's error, the bonus for entropy and the measures."""
        output = tell(model, batch, log_probability, entropy)
        (new_BL, entropy_BL), written_BL, advantages_BL = output.measures, batch["written"], batch["advantages"]
        tokens = written_BL.sum()
        ratio_BL = (new_BL - batch["old"]).exp()
        plain_BL, bounded_BL = ratio_BL * advantages_BL, ratio_BL.clamp(self.low, self.high) * advantages_BL
        surrogate = -(plain_BL.minimum(bounded_BL) * written_BL).sum()
        return {
            POLICY: Term(surrogate, tokens),
            VALUE: Term(self._value_error(output.stream_BLD, batch), tokens, self.value_weight),
            BONUS: Term(-entropy_BL.sum(), tokens, self.entropy_weight),
            WEIGHT: Term(batch["kl_weight"].sum(), len(new_BL), 0.0),
            **self.measures(batch, new_BL, entropy_BL, bounded_BL < plain_BL),
        }

    def _values(self, stream_BLD: "Tensor", batch: "Batch") -> "Tensor":
        """Return the value of what stands before each token that was written, 0 elsewhere."""
        values_BL: Tensor = self.value(stream_BLD.to(self.value.weight.dtype))[..., 0]
        return values_BL * batch["written"]

    def _value_error(self, stream_BLD: "Tensor", batch: "Batch") -> "Tensor":
        """Return the sum of half the larger of the squared errors of the value and of the clipped value."""
        values_BL, goals_BL, before_BL = self._values(stream_BLD, batch), batch["returns"], batch["values"]
        bounded_BL = before_BL + (values_BL - before_BL).clamp(-self.value_clip, self.value_clip)
        worse_BL = (values_BL - goals_BL).square().maximum((bounded_BL - goals_BL).square())
        total: Tensor = (worse_BL * batch["written"]).sum() / 2
        return total


def last(written_BL: "Bool[Tensor, 'B L']") -> "Bool[Tensor, 'B L']":
    """Return the last token of each answer."""
    import torch

    return written_BL & ~torch.cat([written_BL[:, 1:], torch.zeros_like(written_BL[:, :1])], 1)


def gae(
    rewards_BL: "Float[Tensor, 'B L']",
    values_BL: "Float[Tensor, 'B L']",
    written_BL: "Bool[Tensor, 'B L']",
    discount: float,
    trace: float,
) -> "Float[Tensor, 'B L']":
    """Return ``A_t = sum_k (gamma lambda)^k d_(t+k)``, ``d_t = r_t + gamma V_(t+1) - V_t``; V is 0 behind the end.

    Schulman et al. 2016, equation 16.
    """
    import torch

    advantages, after_B, value_B = [], torch.zeros_like(rewards_BL[:, 0]), torch.zeros_like(rewards_BL[:, 0])
    for place in reversed(range(rewards_BL.shape[1])):
        here_B = written_BL[:, place]
        error_B = rewards_BL[:, place] + discount * value_B - values_BL[:, place]
        after_B = torch.where(here_B, error_B + discount * trace * after_B, 0.0)
        value_B = torch.where(here_B, values_BL[:, place], 0.0)
        advantages.append(after_B)
    return torch.stack(advantages[::-1], 1)


def whitened(values_BL: "Float[Tensor, 'B L']", where_BL: "Bool[Tensor, 'B L']") -> "Float[Tensor, 'B L']":
    """Return ``(a - mean) / sqrt(var + 1e-8)`` over all tokens of a rollout, 0 elsewhere.

    What is added below the root is trl's: differences that are rounding alone are not made large.

    Raises:
        RunError: they are not normalised.
    """
    apart_N, spread = centred(values_BL[where_BL]), deviation(values_BL[where_BL])
    below = (spread**2 + TINY) ** 0.5
    found_N = apart_N / below
    refuse_unnormalised(found_N, "a rollout", scale=spread / below)
    return values_BL.new_zeros(values_BL.shape).masked_scatter(where_BL, found_N.to(values_BL.dtype))
