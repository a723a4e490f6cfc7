"""How far back the gradient of one prediction reaches: the measure behind vanishing and exploding gradients."""

import torch
from jaxtyping import Int
from torch import Tensor

from orrery.errors import UsageError
from orrery.inspection.recorder import Recorder, refuse_training
from orrery.models.decoder import Decoder


def gradient_by_distance(model: Decoder, ids_BL: Int[Tensor, "B L"]) -> list[float]:
    """Return ``|d loss_T / d x_{T-k}|`` for k = 0, 1, ...: what the last prediction says to each embedding before it.

    ``loss_T = -log p(ids_L | ids_1 ... ids_T)`` in nats with ``T = L - 1``, ``x_t`` is what enters the first block,
    and the norm over channels is averaged over the rows. Papers: Hochreiter 1991; Bengio, Simard and Frasconi 1994.

    Args:
        model: a decoder, in eval mode.
        ids_BL: token ids, the last of which is predicted.

    Raises:
        UsageError: a row has fewer than two tokens, or the model drops numbers at random.
    """
    if ids_BL.shape[1] < 2:
        raise UsageError("one token predicts none", "give rows of at least two tokens")
    refuse_training(model)
    recorder = Recorder(keep=("embedded",))
    with torch.enable_grad():
        logits_BTV = model.logits(ids_BL[:, :-1], taps=recorder)
        # A sum over rows: each row's gradient is its own.
        loss = torch.nn.functional.cross_entropy(logits_BTV[:, -1], ids_BL[:, -1], reduction="sum")
        (found_BTD,) = torch.autograd.grad(loss, recorder.values["embedded"])
    return [float(norm) for norm in found_BTD.norm(dim=-1).mean(0).flip(0)]
