"""Blocks of a model compiled by torch for the steps of a training: one graph for all that are alike."""

import copy
import shutil
import sysconfig
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, final

import torch
import torch._dynamo.exc
import torch._inductor.config
from torch import Tensor, nn

from orrery.errors import MachineError, UsageError
from orrery.nn.block import Block
from orrery.nn.feedforward.moe import MoE
from orrery.nn.mixer import StatefulMixer
from orrery.nn.residual import random_bits
from orrery.settings import keep_compiled_blocks
from orrery.training.compiled_graphs import compile_graph

COMPILER: dict[str, Any] = {"backend": compile_graph}
"""Keys of `torch.compile`."""
GRAPHS = 64
"""How many graphs are compiled at most: for each kind of block one, and more where batches differ in their sizes."""
LEAVE_OUT = "leave parallel.compile out"
UNCOMPILED = {
    MoE: "its experts get other rows at every call",
    StatefulMixer: "its pieces differ with the length of rows",
}
"""Parts that would be compiled again and again, and why."""

NOISE = (r"The \.grad attribute of a Tensor that is not a leaf", "Dynamo detected a call to a `functools.lru_cache`")
"""What torch's compiler warns of, and nobody can do anything about."""


@torch.library.custom_op("orrery::random_bits", mutates_args=(), tags=(torch.Tag.nondeterministic_seeded,))
def drawn(x: Tensor) -> Tensor:
    """Draw what `orrery.nn.residual.random_bits` draws, as one operation of a graph."""
    return random_bits(x).clone()  # an operation gives no view


@drawn.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty(4 * (x.numel() // 4 + 1), dtype=torch.int16, device=x.device)


torch.compiler.substitute_in_graph(random_bits, skip_signature_check=True)(lambda x: drawn(x.detach()))


@final
class CompiledForward:
    """What a block computes, compiled where gradients are asked for; a copy of it is the block's own.

    Evaluation, samples and rollouts come in shapes of their own, with caches, and take the block as it stands.

    Args:
        block: what is computed.
        path: its name in the model.
        compiled: ``Block.forward``, compiled.
    """

    def __init__(self, block: Block, path: str, compiled: Callable[..., Tensor]) -> None:
        self.block, self.path, self.compiled, self.eager = block, path, compiled, block.forward

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return copy.deepcopy(self.eager, memo)

    def __call__(self, *given: Any) -> Tensor:
        """Compute the block.

        Raises:
            UsageError: it cannot be compiled.
        """
        if not torch.is_grad_enabled():
            return self.eager(*given)
        torch._dynamo.mark_static(given[0], 2)  # of blocks that differ in their width each is a graph of its own
        try:
            # A mode that replaces functions would be traced into each of them, and torch cannot trace all of these.
            with torch._C.DisableTorchFunction():
                return self.compiled(self.block, *given)
        except torch._dynamo.exc.TorchDynamoException as error:
            message = f"parallel.compile: {self.path} cannot be compiled: {str(error).strip().splitlines()[0]}"
            raise UsageError(message, LEAVE_OUT) from error


def compile_blocks(model: nn.Module, device: str) -> str:
    """Have a model compile its blocks where they are called for a gradient, and return what to say of it.

    Blocks that are alike share a graph. What they compute stays, up to the rounding of sums in another order; random
    numbers stay but for the dropout of torch's own attention. The machine code is kept in the user's cache folder.

    Args:
        model: changed in place.
        device: where it will be called.

    Raises:
        MachineError: what compiles is not on this machine.
        UsageError: the model has no blocks, or a part that is not compiled.
    """
    blocks = {path: module for path, module in model.named_modules() if isinstance(module, Block)}
    if not blocks:
        raise UsageError("parallel.compile: the model has no blocks", LEAVE_OUT)
    for path, module in model.named_modules():
        for kind, why in UNCOMPILED.items():
            if isinstance(module, kind):
                raise UsageError(
                    f"parallel.compile: {path} ({type(module).__name__}) is not compiled: {why}", LEAVE_OUT
                )
    if device == "cpu":
        _refuse_without_compiler()
    folder = keep_compiled_blocks()
    for message in NOISE:
        warnings.filterwarnings("ignore", message)
    torch._dynamo.reset()  # what this process has compiled before decides nothing: sizes that differed there
    compiler: Any = torch.compile
    compiled = compiler(Block.forward, fullgraph=True, recompile_limit=GRAPHS, **COMPILER)
    for path, block in blocks.items():
        own: Any = block
        own.forward = CompiledForward(block, path, compiled)
    return f"the blocks are compiled at the first steps, and what was compiled before is taken from {folder}"


def _refuse_without_compiler() -> None:
    """Refuse a machine on which inductor could compile nothing."""
    wanted = [name for name in torch._inductor.config.cpp.cxx if name]
    header = Path(sysconfig.get_paths()["include"]) / "Python.h"
    missing = None if any(map(shutil.which, wanted)) else f"no C++ compiler ({' or '.join(wanted)})"
    missing = missing or (None if header.is_file() else f"no header of Python ({header})")
    if missing:
        hint = f"install g++ and Python's headers (on Debian: apt install g++ python3-dev), or {LEAVE_OUT}"
        raise MachineError(f"parallel.compile: there is {missing}", hint)
