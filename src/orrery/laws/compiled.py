"""The law of the kernels, compiled: what inductor makes of a stack equals the eager stack."""

import shutil
from collections.abc import Iterator
from functools import partial

import torch

from orrery.laws.evidence import FLOAT32, CannotRunError, Evidence, deviation, within
from orrery.laws.models import random_ids, tiny
from orrery.nn.attention.kernels import Kernel, eager, sdpa
from orrery.nn.context import Execution

COMPILED = ("gpt2", "llama", "bloom", "bert", "deberta_v2", "t5", "based")
"""Families whose stacks are one graph: a mixture of experts sends other rows to each expert at every call.

Torch's engines of recurrences cannot be compiled; a state that is a matrix can, here beside attention in a window.
"""


def check(family: str) -> Iterator[Evidence]:
    """Compile the tiny model's stack for both kernels.

    Raises:
        CannotRunError: no C++ compiler, or a family that is not compiled.
    """
    if family not in COMPILED:
        raise CannotRunError("not compiled", f"one family of each kind of mixing is: {', '.join(COMPILED)}")
    if shutil.which("g++") is None:
        raise CannotRunError("g++ is not there", "install g++ and Python's headers")
    evidence = partial(within, law="kernel", family=family)
    for name, kernel in (("eager", eager), ("sdpa", sdpa)):
        yield evidence(f"compiled {name} == eager, float32", value=compiled(family, kernel), bound=FLOAT32)


@torch.no_grad()
def compiled(family: str, kernel: Kernel) -> float:
    """Compare the compiled stack, which is one graph, with the eager one."""
    model, ids = tiny(family, torch.float32), random_ids(2, 13)
    torch._dynamo.reset()
    x_BLD, ctx = model.prepare(ids, execution=Execution(kernel))
    compiled_BLD = torch.compile(model.stack, fullgraph=True)(x_BLD, ctx)
    return deviation(compiled_BLD, model.stack(*model.prepare(ids, execution=Execution(eager))))
