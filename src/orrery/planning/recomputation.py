"""Recomputation of activations: a block keeps its input alone, and is computed once more in the backward pass."""

from functools import partial

from torch import nn
from torch.utils.checkpoint import checkpoint

from orrery.nn.block import Block


def recompute_blocks(model: nn.Module) -> None:
    """Let every block of a model keep nothing but its input until its gradient is computed.

    The forward pass of each block takes place twice, for ``L`` inputs in the place of ``L`` times all that a block
    keeps (Chen et al. 2016, Training Deep Nets with Sublinear Memory Cost, section 4.1, with one block at a time).
    Dropout draws again the second time: this is for counting, not for training.
    """
    for module in model.modules():
        if isinstance(module, Block):
            again = partial(checkpoint, module.forward, use_reentrant=False, preserve_rng_state=False)
            vars(module)["forward"] = again
