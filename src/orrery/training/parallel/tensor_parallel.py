"""Layers that several processes compute together: each has some heads, some hidden channels, some of the vocabulary."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import Shard

from orrery.nn.attention.kernels import Kernel
from orrery.nn.attention.operands import KeysValues, Operands
from orrery.nn.attention.sources import CrossSource
from orrery.nn.context import Context
from orrery.nn.embeddings import TokenEmbedding, TokenTypeEmbedding
from orrery.nn.heads import LanguageModelHead
from orrery.nn.parting import Parted
from orrery.nn.residual import Dropout
from orrery.nn.stack import Stack
from orrery.training.parallel.draws import own_draws
from orrery.training.parallel.messages import (
    all_tokens,
    entered,
    entered_by_tokens,
    joined,
    left,
    left_by_tokens,
    own_tokens,
)
from orrery.training.parallel.parts import PartedModules, parts_of
from orrery.training.parallel.shards import cut, own_part, shared


def part(model: nn.Module, mesh: DeviceMesh, sequence: bool) -> None:
    """Have the processes of a mesh compute the bricks of a model together, each as it says of itself.

    Papers: Shoeybi et al. 2019, https://arxiv.org/abs/1909.08053; with ``sequence`` the processes share the tokens
    between the bricks too (Korthikanti et al. 2022, https://arxiv.org/abs/2205.05198, section 4.2).
    Differs from the papers: the logits are joined, so that every objective sees all of them; rows need not divide.

    Args:
        model: changed in place; its parameters keep their names, and those that are cut become shared ones.
        mesh: of one axis.
        sequence: whether each process computes some of the tokens between the bricks.

    Raises:
        UsageError: the model has something that is not parted, by its path.
    """
    parts = parts_of(model, mesh.size())
    tables = [module for module in model.modules() if isinstance(module, TokenEmbedding | TokenTypeEmbedding)]
    heads = [module for module in model.modules() if isinstance(module, LanguageModelHead)]
    share(model, mesh, cuts(parts, tables, heads))
    described: Any = model
    described.kernel = partial(own_heads, described.kernel, mesh)
    for table in tables:
        table.token.forward = partial(look_up, table.token, mesh)  # type: ignore[method-assign]
    for head in heads:
        head.vocabulary.forward = partial(all_scores, head.vocabulary, mesh)  # type: ignore[method-assign]
    for brick in parts.inside.values():
        join_brick(brick, mesh, entered, left)
    for brick in parts.bricks.values():
        join_brick(brick, mesh, *((None, left_by_tokens) if sequence else (entered, left)))
    if sequence:
        share_tokens(model, parts, mesh)


def cuts(parts: PartedModules, tables: list[Any], heads: list[LanguageModelHead]) -> dict[nn.Parameter, Shard]:
    """Return how parameters are cut: the rows of a matrix are its outputs."""
    found: dict[nn.Parameter, Shard] = {}
    for brick in (*parts.bricks.values(), *parts.inside.values()):
        line: Parted = type(brick).parting  # type: ignore[attr-defined]
        for name in line.columns:
            found |= {each: Shard(0) for each in brick.get_submodule(name).parameters()}
        found |= {brick.get_parameter(f"{name}.weight"): Shard(1) for name in line.rows}
        own = dict(brick.named_parameters())
        found |= {own[name]: Shard(0) for name in line.first if name in own}
    for table in tables:
        found[table.token.weight] = Shard(0)
    for head in heads:
        found |= {each: Shard(0) for each in head.vocabulary.parameters()}
    return found


def share(model: nn.Module, mesh: DeviceMesh, how: Mapping[nn.Parameter, Shard]) -> None:
    """Keep this process's part of parameters, wherever a model has them."""
    kept = {
        each: nn.Parameter(cut(each.detach(), mesh, (place,)), requires_grad=each.requires_grad)
        for each, place in how.items()
    }
    for module in model.modules():
        for name, parameter in module._parameters.items():
            if parameter in kept:
                module._parameters[name] = kept[parameter]


@contextmanager
def own_tensors(modules: Iterable[nn.Module], mesh: DeviceMesh) -> Iterator[None]:
    """Have plain tensors stand in modules for their parameters: own parts, and whole ones whose gradient is a sum."""
    held = [(each, name, p) for each in modules for name, p in each._parameters.items() if p is not None]
    try:
        for each, name, parameter in held:
            own = own_part(parameter) if shared(parameter) else entered(parameter, mesh)
            each._parameters[name] = own  # type: ignore[assignment]
        yield
    finally:
        for each, name, parameter in held:
            each._parameters[name] = parameter


Passing = Callable[[Tensor, DeviceMesh], Tensor]


def join_brick(brick: nn.Module, mesh: DeviceMesh, enter: Passing | None, leave: Passing) -> None:
    """Have a brick compute this process's part of it, and give the sum; without ``enter`` it gets some tokens only."""
    described: Any = brick
    compute, line, cross = brick.forward, described.parting, [*map(type, brick.children())].count(CrossSource)

    def forward(x_BLD: Tensor, ctx: Context) -> Tensor:
        if cross and ctx.encoder_states is not None:
            ctx = replace(ctx, encoder_states=entered(ctx.encoder_states, mesh))
        if enter is None:
            assert ctx.length is not None
            x_BLD = entered_by_tokens(x_BLD, mesh, ctx.length)
        else:
            x_BLD = enter(x_BLD, mesh)
        with own_tensors(brick.modules(), mesh):
            return compute(x_BLD, ctx)

    described.forward = forward
    for name in line.rows:
        last: Any = brick.get_submodule(name)
        last.forward = partial(summed, last, mesh, leave)
    for module in brick.modules():
        if isinstance(module, Dropout):
            module.forward = partial(own_draws, module.forward, mesh)  # type: ignore[method-assign]


def summed(last: nn.Linear, mesh: DeviceMesh, leave: Passing, x: Tensor) -> Tensor:
    """Return the product of a matrix of which each process has some columns; the first adds the bias."""
    bias = None if last.bias is None else last.bias * (mesh.get_local_rank() == 0)
    return leave(F.linear(x, last.weight, bias), mesh)


def own_heads(kernel: Kernel, mesh: DeviceMesh, q_BHLC: Tensor, kv: KeysValues, operands: Operands) -> Tensor:
    """Attend by this process's heads: what is added to the scores of all is cut, and patterns drop out by own draws."""
    bias, heads = operands.bias_BHLS, q_BHLC.shape[1]
    if bias is not None and bias.shape[1] > 1:
        first = heads * mesh.get_local_rank()
        operands = operands._replace(bias_BHLS=entered(bias, mesh)[:, first : first + heads])
    if not operands.dropout:
        return kernel(q_BHLC, kv, operands)
    return own_draws(kernel, mesh, q_BHLC, kv, operands)


def look_up(token: nn.Embedding, mesh: DeviceMesh, ids: Tensor) -> Tensor:
    """Return rows of a table of which each process has some: zeros stand for those of others, and all are summed.

    The gradient is of own rows alone, where that of torch's shared embedding is of the whole table.
    """
    own: Tensor = own_part(token.weight)
    first = mesh.get_local_rank() * -(-token.num_embeddings // mesh.size())
    here = (ids >= first) & (ids < first + len(own))
    # A process without a row looks up nothing, and its part has a gradient too.
    found = F.embedding((ids - first) * here, own) if len(own) else own.new_zeros(*ids.shape, own.shape[1]) + own.sum()
    return left(found * here[..., None], mesh)


def all_scores(vocabulary: nn.Linear, mesh: DeviceMesh, x: Tensor) -> Tensor:
    """Return the logits of the whole vocabulary, of which each process computes some."""
    bias = None if vocabulary.bias is None else own_part(vocabulary.bias)
    own = F.linear(entered(x, mesh), own_part(vocabulary.weight), bias)
    return joined(own, mesh, vocabulary.out_features)


def share_tokens(model: nn.Module, parts: PartedModules, mesh: DeviceMesh) -> None:
    """Have each process compute its own tokens between the bricks, and join them behind each stack."""
    for module in model.modules():
        if isinstance(module, Stack):
            module.forward = partial(by_tokens, module.forward, mesh)  # type: ignore[method-assign]
    for module in parts.rows.values():
        module.forward = partial(by_rows, module.forward, mesh)
    for module in parts.tokens.values():
        if isinstance(module, Dropout):
            module.forward = partial(own_draws, module.forward, mesh)  # type: ignore[method-assign]
        elif module._parameters:
            module.forward = partial(with_sums, module, module.forward, mesh)


def by_tokens(compute: Callable[..., Tensor], mesh: DeviceMesh, x_BLD: Tensor, ctx: Context) -> Tensor:
    """Run a stack on own tokens."""
    length = x_BLD.shape[1]
    own_BLD = compute(own_tokens(x_BLD, mesh), replace(ctx, length=length))
    return all_tokens(own_BLD, mesh, length)


def by_rows(compute: Callable[..., Tensor], mesh: DeviceMesh, x_BLD: Tensor, ctx: Context) -> Tensor:
    """Run a layer that sees whole rows among those that see own tokens."""
    assert ctx.length is not None
    return own_tokens(compute(all_tokens(x_BLD, mesh, ctx.length), replace(ctx, length=None)), mesh)


def with_sums(module: nn.Module, compute: Callable[..., Tensor], mesh: DeviceMesh, *given: Any) -> Tensor:
    """Run a layer on own tokens: the gradients of its own parameters are sums over the processes."""
    with own_tensors([module], mesh):
        return compute(*given)
