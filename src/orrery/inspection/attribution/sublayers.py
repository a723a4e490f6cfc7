"""The sublayers of the stack that answers: the residuals in order, and what each of them adds by its parts."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import singledispatch

import torch
from jaxtyping import Float
from torch import Tensor, nn

from orrery.inspection.attribution.frozen import Frozen, NotLinearError, frozen, matrix_of
from orrery.inspection.attribution.view import TraceView, wide
from orrery.nn.attention.disentangled import DisentangledAttention
from orrery.nn.attention.latent import LatentAttention
from orrery.nn.attention.multihead import MultiHeadAttention, NoGate
from orrery.nn.feedforward.clamped import ClampedGatedMLP
from orrery.nn.feedforward.gated import GatedMLP
from orrery.nn.feedforward.mlp import MLP
from orrery.nn.residual import Normed, Residual, Sum
from orrery.nn.stack import Stack

Attention = MultiHeadAttention | LatentAttention | DisentangledAttention
ATTENTIONS = (MultiHeadAttention, LatentAttention, DisentangledAttention)
FEED_FORWARDS = (MLP, GatedMLP, ClampedGatedMLP)
Parts = dict[str, Tensor]


@dataclass(frozen=True)
class Sublayer:
    """One residual of a stack.

    Attributes:
        key: the key under which it shows what it adds: ``blocks.3.attention``.
        block: that of its block: ``blocks.3``.
        before: the key of the stream that enters it.
        residual: the module.
    """

    key: str
    block: str
    before: str
    residual: Residual

    @property
    def after(self) -> str:
        """The key of the stream behind it."""
        return f"{self.key}.resid"

    @property
    def leaves(self) -> dict[str, nn.Module]:
        """The branches that run side by side, by the keys of their taps."""
        return {f"{self.block}.{leaf.role}": leaf for leaf, _ in _leaves(self.residual.branch)}

    @property
    def posts(self) -> dict[str, nn.Module | None]:
        """What stands behind each branch before they are added up, if anything does, by the same keys."""
        return {f"{self.block}.{leaf.role}": post for leaf, post in _leaves(self.residual.branch)}


def sublayers(stack: Stack) -> list[Sublayer]:
    """Return the residuals of a stack in the order of computation."""
    sublayers, before = [], f"{stack.path}embedded"
    for depth, number in enumerate(stack.order):
        block = f"{stack.path}blocks.{depth}"
        for residual in stack.blocks[number].children():
            assert isinstance(residual, Residual)
            sublayers.append(Sublayer(f"{block}.{residual.role}", block, before, residual))
            before = sublayers[-1].after
    return sublayers


def branch_parts(sublayer: Sublayer, view: TraceView) -> Parts:
    """Return the parts of what the branch gives, before what stands behind it.

    Raises:
        NotLinearError: a branch cannot be taken apart.
        UsageError: the trace lacks a value.
    """
    parts_of_branch: Parts = {}
    for key, leaf in sublayer.leaves.items():
        parts = leaf_parts(leaf, key, view)
        behind = behind_leaf(sublayer, key, parts)
        parts_of_branch |= {name: behind.linear(part) for name, part in parts.items()}
        if behind.constant is not None:
            parts_of_branch[f"{key}.post_bias"] = behind.constant
    return parts_of_branch


def behind_leaf(sublayer: Sublayer, key: str, parts: Parts) -> Frozen:
    """Return what stands behind one of several branches, at the sum of its parts.

    Raises:
        NotLinearError: it is no linear map even with the scales of norms held fixed.
    """
    post = sublayer.posts[key]
    return Frozen() if post is None else frozen(post, torch.stack(list(parts.values())).sum(0))


def behind_branch(sublayer: Sublayer, y_BPD: Float[Tensor, "B P D"]) -> Frozen:
    """Return what a sublayer does with the output of its branch before it is added.

    Raises:
        NotLinearError: it is no linear map even with the scales of norms held fixed.
    """
    post = frozen(sublayer.residual.post, y_BPD)
    return post.then(frozen(sublayer.residual.dropout, post(y_BPD)))


def on_stream(sublayer: Sublayer, view: TraceView) -> tuple[Frozen, Frozen]:
    """Return what a sublayer does with the stream that passes beside its branch, and with the sum of both.

    Raises:
        NotLinearError: one of them is no linear map even with the scales of norms held fixed.
        UsageError: the trace lacks a value.
    """
    before, added = view.stream(sublayer.before), view.stream(f"{sublayer.key}.added")
    skip = frozen(sublayer.residual.skip, before)
    return skip, frozen(sublayer.residual.out, skip(before) + added)


@singledispatch
def leaf_parts(leaf: nn.Module, key: str, view: TraceView) -> Parts:
    """Return the parts of what a branch gives, by name.

    Raises:
        NotLinearError: the branch has none that could be told apart.
        UsageError: the trace lacks a value.
    """
    raise NotLinearError(f"{key} is a {type(leaf).__name__}, whose output is one part", "take it as a whole")


@leaf_parts.register(MultiHeadAttention)
@leaf_parts.register(LatentAttention)
@leaf_parts.register(DisentangledAttention)
def _attention_parts(leaf: Attention, key: str, view: TraceView) -> Parts:
    """Return ``W_out_h mixed_h`` for each head, a gate on what it mixed held fixed, and the bias."""
    mixed_BHPC = passing(leaf, key, view, view.heads(f"{key}.mixed"))
    matrix_HCD = output_matrices(leaf, mixed_BHPC.shape[1])
    heads = {f"{key}.head.{h}": mixed_BHPC[:, h] @ matrix_HCD[h] for h in range(len(matrix_HCD))}
    return heads | _bias(leaf.out, f"{key}.bias", like=mixed_BHPC[:, 0])


@leaf_parts.register(MLP)
@leaf_parts.register(GatedMLP)
@leaf_parts.register(ClampedGatedMLP)
def _feed_forward_parts(leaf: MLP | GatedMLP | ClampedGatedMLP, key: str, view: TraceView) -> Parts:
    """Return ``W_down hidden + b`` as one part."""
    hidden_BPF = view.stream(f"{key}.hidden")
    return {f"{key}.added": frozen(leaf.down, hidden_BPF)(hidden_BPF)}


def output_matrices(attention: Attention, heads: int) -> Float[Tensor, "H C D"]:
    """Return the output matrix of each head: ``added = sum_h mixed_h W_h + b``."""
    return matrix_of(attention.out).T.unflatten(0, (heads, -1))


def passing(
    attention: Attention, key: str, view: TraceView, heads_BHPC: Float[Tensor, "B H P C"]
) -> Float[Tensor, "B H P C"]:
    """Return what a gate on the heads lets through of a number for each of their channels; all where there is none."""
    return heads_BHPC * view.heads(f"{key}.gate") if is_gated(attention) else heads_BHPC


def is_gated(attention: Attention) -> bool:
    """Say whether a gate stands between the heads and their output matrices."""
    return isinstance(attention, MultiHeadAttention) and not isinstance(attention.gate, NoGate)


def _bias(linear: nn.Module, name: str, like: Tensor) -> Parts:
    bias = getattr(linear, "bias", None)
    return {} if bias is None else {name: wide(bias).expand(*like.shape[:-1], -1)}


def _leaves(branch: nn.Module) -> Iterator[tuple[nn.Module, nn.Module | None]]:
    """Yield the branches that run side by side, each with what stands behind it."""
    if isinstance(branch, Sum):
        for part in branch.children():
            yield from _leaves(part)
    elif isinstance(branch, Normed):
        yield branch.branch, branch.post
    else:
        yield branch, None
