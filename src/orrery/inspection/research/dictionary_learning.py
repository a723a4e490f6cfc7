"""Dictionary learning: a sparse autoencoder is trained on a value, and measured on texts that it has not seen."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from orrery.errors import UsageError
from orrery.inspection.research.activations import held_back
from orrery.inspection.research.sparse_autoencoder import SparseAutoencoder, Sparsity
from orrery.inspection.research.variants import Done

RESAMPLED_AT = (0.25, 0.5, 0.75)
"""When, as a share of the steps, directions that no row uses are replaced."""
FALL = 0.2
"""The share of the steps at the end over which the rate falls to zero."""


@final
@dataclass(frozen=True)
class Quality:
    """How well a dictionary says values, and with how few of its features.

    Attributes:
        explained_variance: ``1 - sum |x - x'|^2 / sum |x - mean|^2``.
        l0: features that are active in a row, the mean.
        density_F: the share of the rows in which each feature is active.
    """

    explained_variance: float
    l0: float
    density_F: Float[Tensor, "F"]

    @property
    def dead(self) -> int:
        """How many features are active in no row."""
        return int((self.density_F == 0).sum())


class Step(NamedTuple):
    """The loss of a batch: squared error and penalty, of values whose squared length is their width."""

    step: int
    error: float
    penalty: float


@final
@dataclass(frozen=True)
class Dictionary:
    """A trained sparse autoencoder.

    Attributes:
        autoencoder: what was trained, in units of the value.
        quality: on the rows held back.
        curve: the loss of every hundredth step.
        resampled: how many directions were replaced.
        held_out_B: the texts that ``quality`` is of.
    """

    autoencoder: SparseAutoencoder
    quality: Quality
    curve: Sequence[Step]
    resampled: int
    held_out_B: Bool[Tensor, "B"]


def learn_dictionary(
    values_BLD: Float[Tensor, "B L D"],
    features: int,
    sparsity: Sparsity,
    *,
    key: str = "",
    steps: int = 2000,
    size: int = 512,
    rate: float = 3e-3,
    held_out: float = 0.1,
    seed: int = 1337,
    done: Done | None = None,
) -> Dictionary:
    """Train a sparse autoencoder on a value over many texts.

    ``mean |x - x'|^2 + penalty``, by Adam, on values that are scaled so that their mean squared distance from their
    mean is their width; the scale is put into the weights at the end. Columns of the decoder keep length one: what
    would change it is taken out of their gradient. Directions that no row of the last quarter has used are replaced
    from rows that are said badly (Bricken et al. 2023, appendix "Neuron Resampling").
    Differs from Gao et al. 2024: no auxiliary loss brings unused directions back, TopK's are replaced as well.

    Args:
        values_BLD: what ``collect`` gives for one key; the text of a token decides on which side it is.
        features: directions of the dictionary.
        sparsity: ``L1`` or ``TopK``.
        key: of the value, for the file and for steering.
        steps: of training.
        size: rows of a batch.
        rate: of Adam.
        held_out: the share of the texts that the quality is measured on.
        seed: of the split, the first weights and the batches.
        done: told after each step how many of how many are done.

    Raises:
        UsageError: too few texts, or values that are all the same or not finite.
    """
    rng = torch.Generator().manual_seed(seed)
    held_B = held_back(len(values_BLD), held_out, rng)
    rows_ND, scored_ND = (values_BLD[side].flatten(0, 1) for side in (~held_B, held_B))
    mean_D, scale = _scale(rows_ND)
    autoencoder = SparseAutoencoder(rows_ND.shape[1], features, sparsity, key).to(rows_ND)
    training = _Training(autoencoder, (rows_ND - mean_D) * scale, rate, rng)
    curve: list[Step] = []
    with torch.enable_grad():
        for step in range(steps):
            left = (steps - step) / (FALL * steps)
            error, penalty = training.step(size, min(1.0, left))
            if step % 100 == 0 or step == steps - 1:
                curve.append(Step(step, error, penalty))
            if step in {round(part * steps) for part in RESAMPLED_AT}:
                training.resample()
            if done is not None:
                done(step + 1, steps)
    _put_back(autoencoder, mean_D, scale)
    return Dictionary(autoencoder.eval(), quality(autoencoder, scored_ND), curve, training.resampled, held_B)


@torch.no_grad()
def quality(autoencoder: SparseAutoencoder, x_ND: Float[Tensor, "*N D"], rows: int = 4096) -> Quality:
    """Measure a dictionary on values.

    Args:
        autoencoder: the dictionary.
        x_ND: the values.
        rows: how many are computed at once.
    """
    x_ND = x_ND.reshape(-1, x_ND.shape[-1])
    error, active_F = x_ND.new_zeros((), dtype=torch.float64), x_ND.new_zeros(autoencoder.features, dtype=torch.int64)
    for part_ND in x_ND.split(rows):
        features_NF = autoencoder.encode(part_ND)
        error += (part_ND - autoencoder.decode(features_NF)).double().square().sum()
        active_F += (features_NF > 0).sum(0)
    spread = (x_ND.double() - x_ND.double().mean(0)).square().sum()
    return Quality(float(1 - error / spread), float(active_F.sum()) / len(x_ND), active_F / len(x_ND))


class _Training:
    """An autoencoder, the scaled rows that it learns, and which features were active since the last look."""

    def __init__(self, model: SparseAutoencoder, x_ND: Tensor, rate: float, rng: torch.Generator) -> None:
        self.model, self.x_ND, self.rate, self.rng, self.resampled = model, x_ND, rate, rng, 0
        self.active_F = torch.zeros(model.features, dtype=torch.bool)
        with torch.no_grad():
            drawn_FD = torch.randn(model.decoder_FD.shape, generator=rng, dtype=torch.float64).to(x_ND)
            model.decoder_FD.copy_(drawn_FD / drawn_FD.norm(dim=-1, keepdim=True))
            model.encoder_FD.copy_(model.decoder_FD)  # each feature reads what it writes (Gao et al. 2024)
        self.optimizer = torch.optim.Adam(model.parameters(), lr=rate)

    def step(self, size: int, left: float) -> tuple[float, float]:
        """Take one step at a part of the rate; return squared error and penalty."""
        x_ND = self.x_ND[torch.randint(len(self.x_ND), (size,), generator=self.rng)]
        self.optimizer.param_groups[0]["lr"] = left * self.rate
        error, penalty, features_NF = losses(self.model, x_ND)
        self.optimizer.zero_grad()
        (error + penalty).backward()
        keep_length(self.model)
        self.optimizer.step()
        with torch.no_grad():
            self.model.decoder_FD.div_(self.model.decoder_FD.norm(dim=-1, keepdim=True))
        self.active_F |= (features_NF > 0).any(0)
        return float(error.detach()), float(penalty.detach())

    @torch.no_grad()
    def resample(self) -> None:
        """Take the directions that no row has used since the last time from rows that are said badly."""
        alive_F, self.active_F = self.active_F, torch.zeros_like(self.active_F)
        dead_K = (~alive_F).nonzero()[:, 0]
        if not len(dead_K):
            return
        model, x_ND = self.model, self.x_ND[torch.randint(len(self.x_ND), (4096,), generator=self.rng)]
        left_ND = x_ND - model(x_ND)
        chance_N = left_ND.double().square().sum(-1).square()
        new_KD = left_ND[torch.multinomial(chance_N, len(dead_K), len(dead_K) > len(x_ND), generator=self.rng)]
        new_KD = new_KD / new_KD.norm(dim=-1, keepdim=True).clamp(min=1e-12)
        alive_FD = model.encoder_FD[alive_F]
        length = alive_FD.norm(dim=-1).mean() if len(alive_FD) else 1.0
        model.decoder_FD[dead_K], model.encoder_FD[dead_K] = new_KD, 0.2 * length * new_KD
        model.encoder_bias_F[dead_K] = 0
        for parameter in (model.decoder_FD, model.encoder_FD, model.encoder_bias_F):
            for moment in ("exp_avg", "exp_avg_sq"):
                self.optimizer.state[parameter][moment][dead_K] = 0
        self.resampled += len(dead_K)


def losses(model: SparseAutoencoder, x_ND: Float[Tensor, "N D"]) -> tuple[Tensor, Tensor, Float[Tensor, "N F"]]:
    """Return the squared error and the penalty, means over rows, and the features."""
    features_NF = model.encode(x_ND)
    error = (x_ND - model.decode(features_NF)).square().sum(-1).mean()
    return error, model.sparsity.penalty(features_NF), features_NF


@torch.no_grad()
def keep_length(model: SparseAutoencoder) -> None:
    """Take out of the decoder's gradient what would change the lengths of its columns."""
    gradient_FD, unit_FD = model.decoder_FD.grad, model.decoder_FD
    assert gradient_FD is not None
    gradient_FD -= (gradient_FD * unit_FD).sum(-1, keepdim=True) * unit_FD


def _scale(rows_ND: Tensor) -> tuple[Tensor, float]:
    """Return the mean, and what makes the mean squared distance from it the width."""
    mean_D = rows_ND.double().mean(0)
    squared = float((rows_ND.double() - mean_D).square().sum(-1).mean())
    if not 0 < squared < float("inf"):
        raise UsageError(f"the values have a variance of {squared}", "give values that differ and are finite")
    return mean_D.to(rows_ND), (rows_ND.shape[1] / squared) ** 0.5


@torch.no_grad()
def _put_back(model: SparseAutoencoder, mean_D: Tensor, scale: float) -> None:
    """Turn what was learned of scaled values into the same of the values: S gives twice as much for twice as much."""
    model.encoder_bias_F.div_(scale)
    model.bias_D.copy_(model.bias_D / scale + mean_D)
