"""What a forward pass would keep for the backward pass, computed there again: all of a block, or its attention."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

from torch import nn
from torch.utils.checkpoint import checkpoint

from orrery.errors import UsageError
from orrery.nn.block import Block
from orrery.nn.stack import Stack


def recompute(model: nn.Module, what: str, context: Callable[[], AbstractContextManager[Any]] = nullcontext) -> None:
    """Have a model compute something again in its backward pass, with the dropout that it had.

    Chen et al. 2016, https://arxiv.org/abs/1604.06174; ``selective`` is that of Korthikanti et al. 2022,
    https://arxiv.org/abs/2205.05198: the scores of attention take more memory than they take operations.

    Args:
        model: changed in place; what it computes stays, bit by bit.
        what: ``none``, ``selective`` (what attention makes of queries, keys and values) or ``full`` (whole blocks).
        context: in which forward passes run, and what is computed again.

    Raises:
        UsageError: it has no such part.
    """
    if what == "none":
        return
    blocks = [module for module in model.modules() if isinstance(module, Block)]
    # A mask that is not one of a state is one of attention.
    attend = any(isinstance(part, Stack) and part.masks.keys() != {*part.pasts} for part in model.modules())
    if not blocks or (what == "selective" and not attend):
        message = f"parallel.recompute {what}: the model has no {'attention' if blocks else 'blocks'}"
        raise UsageError(message, "leave it out, and lower training.micro_batch")
    again = partial(checkpoint, use_reentrant=False, context_fn=lambda: (nullcontext(), context()))
    if what == "selective":
        described: Any = model
        described.kernel = partial(again, described.kernel)
        return
    for block in blocks:
        own: Any = block
        own.forward = partial(again, block.forward)
