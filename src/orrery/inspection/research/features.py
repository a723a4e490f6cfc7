"""Features of a dictionary: where each is active, which tokens it raises, and runs that are steered by it."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from orrery.errors import UsageError
from orrery.inspection.attribution.frozen import frozen, matrix_of
from orrery.inspection.attribution.view import wide
from orrery.inspection.attribution.vocabulary import vocabulary_head
from orrery.inspection.edits import Edit
from orrery.inspection.interventions.intervention import Intervention, Places
from orrery.inspection.recorder import Recorder
from orrery.inspection.research.sparse_autoencoder import SparseAutoencoder
from orrery.inspection.research.variants import ROWS
from orrery.models.model import Model
from orrery.nn.cross_entropy import IGNORED


class FeatureActivation(NamedTuple):
    """A place where a feature is active: the text, the position in it, and how far."""

    text: int
    position: int
    value: float


@torch.no_grad()
def top_activations(
    autoencoder: SparseAutoencoder, values_BLD: Float[Tensor, "B L D"], feature: int, k: int = 10
) -> list[FeatureActivation]:
    """Return the places where a feature is most active, the first one first; fewer where it is active in fewer.

    Args:
        autoencoder: the dictionary.
        values_BLD: what ``collect`` gives for its key.
        feature: its number.
        k: the most places.

    Raises:
        UsageError: there is no such feature.
    """
    autoencoder.direction(feature)  # refuses a number that is none
    active_BL = torch.stack([autoencoder.encode(value_LD)[:, feature] for value_LD in values_BLD])
    best = active_BL.flatten().topk(min(k, active_BL.numel()))
    places = [divmod(place, active_BL.shape[1]) for place in best.indices.tolist()]
    activations = zip(places, best.values.tolist(), strict=True)
    return [FeatureActivation(text, position, value) for (text, position), value in activations if value > 0]


@torch.no_grad()
def raised_tokens(
    model: Model, autoencoder: SparseAutoencoder, k: int = 5
) -> tuple[Int[Tensor, "F K"], Float[Tensor, "F K"]]:
    """Return for each feature the tokens whose logits its direction raises most by itself, and how far.

    The direction goes through the final norm as if it were the whole stream, so that features can be compared, and then
    through the head. What later layers make of it is not in this; steering shows that.

    Args:
        model: one that scores a vocabulary.
        autoencoder: of a residual stream of it.
        k: how many tokens.

    Raises:
        UsageError: the model scores no vocabulary.
    """
    head = vocabulary_head(model)
    direction_FD = wide(autoencoder.decoder_FD)
    read_FD = frozen(model.stack.final, direction_FD).linear(direction_FD)
    raised_FV = frozen(head.transform, read_FD).linear(read_FD) @ matrix_of(head.vocabulary).T
    best = raised_FV.topk(k, dim=-1)
    return best.indices, best.values


def steering(
    autoencoder: SparseAutoencoder, feature: int, strength: float, position: Places | str = "all"
) -> Intervention:
    """Return the intervention that adds ``strength`` times a feature's direction to the value of the dictionary.

    ``strength`` is in the units of the feature: what `top_activations` returns says how active it is by itself. The
    list of interventions holds the vector, so that it can be saved, sent and given to ``lm.generate``.

    Args:
        autoencoder: a dictionary that knows its key.
        feature: its number.
        strength: below zero to take the feature away.
        position: the tokens that are steered.

    Raises:
        UsageError: there is no such feature, or the dictionary does not know its key.
    """
    if not autoencoder.key:
        raise UsageError("this dictionary does not know the key of its value", "give key= when it is learned")
    vector = autoencoder.direction(feature).tolist()
    plain = {"at": autoencoder.key, "op": "add", "vector": vector, "scale": strength, "position": position}
    return Intervention.of(plain)


def without(autoencoder: SparseAutoencoder, feature: int) -> Edit:
    """Return the edit that takes what a feature says out of a value, and leaves what no feature says in it.

    Raises:
        UsageError: there is no such feature.
    """
    direction_D = autoencoder.direction(feature)

    def edit(value: Tensor, key: str) -> Tensor:
        active_BL = autoencoder.encode(value.to(direction_D))[..., feature]
        return value - (active_BL[..., None] * direction_D).to(value)

    return edit


class Recovered(NamedTuple):
    """The loss of the next tokens, in nats a token, by what stands in the place of a value.

    Attributes:
        clean: the value itself.
        said: what the dictionary says of it.
        mean: its mean over all tokens.
    """

    clean: float
    said: float
    mean: float

    @property
    def share(self) -> float:
        """How much of what the value does for the loss the dictionary keeps: 1 for all, 0 for no more than its mean."""
        return (self.mean - self.said) / (self.mean - self.clean)


@torch.no_grad()
def loss_recovered(
    model: Model, autoencoder: SparseAutoencoder, ids_BL: Int[Tensor, "B L"], rows: int = ROWS
) -> Recovered:
    """Put what a dictionary says of a value in its place, and measure the loss of the next tokens.

    Differs from Bricken et al. 2023: the other end of the scale is the mean of the value, not zero, which is far from
    anything that the model has met.

    Args:
        model: a decoder in eval mode.
        autoencoder: a dictionary that knows its key.
        ids_BL: texts that it was not learned from.
        rows: the most rows of one forward pass.

    Raises:
        UsageError: the dictionary does not know its key, or the model has no such value.
    """
    key, total, count = autoencoder.key, 0.0, 0
    if not key:
        raise UsageError("this dictionary does not know the key of its value", "give key= when it is learned")
    sums = []
    for part_BL in ids_BL.split(rows):
        recorder = Recorder(keep=(key,))
        total += _loss(model, part_BL, recorder)
        sums.append(recorder.values[key].double().sum((0, 1)))
        count += part_BL.shape[0] * (part_BL.shape[1] - 1)
    mean_D = torch.stack(sums).sum(0) / ids_BL.numel()
    edits: list[Edit] = [
        lambda value, key: autoencoder(value.to(autoencoder.bias_D)).to(value),
        lambda value, key: mean_D.to(value).expand_as(value),
    ]
    others = [
        sum(_loss(model, part_BL, Recorder((), {key: edit})) for part_BL in ids_BL.split(rows)) / count
        for edit in edits
    ]
    return Recovered(total / count, *others)


def _loss(model: Model, ids_BL: Tensor, recorder: Recorder) -> float:
    """Return the summed loss of the next tokens."""
    logits_BLV = model.logits(ids_BL, taps=recorder)[:, :-1]
    recorder.check_used()
    wanted_N = ids_BL[:, 1:].flatten()
    loss = torch.nn.functional.cross_entropy(
        logits_BLV.flatten(0, 1).double(), wanted_N, ignore_index=IGNORED, reduction="sum"
    )
    return float(loss)
