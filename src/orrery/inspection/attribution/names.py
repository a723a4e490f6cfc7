"""TransformerLens' names for what a trace holds: ``blocks.0.attn.hook_pattern`` is ``blocks.0.attention.pattern``.

Each of its legacy names stands for one tensor, in its own layout: ``[B, L, H, C]`` for queries, keys, values and what
a head mixes, where a trace has ``[B, H, L, C]``. A name that a model has no tensor for is refused.
"""

import re
from collections.abc import Callable

import torch
from torch import Tensor, nn

from orrery.errors import UsageError
from orrery.inspection.attribution.sublayers import ATTENTIONS, Sublayer, output_matrices, passing, sublayers
from orrery.inspection.attribution.view import TraceView, needed
from orrery.inspection.recorded import RecordedPass
from orrery.nn.attention.latent import LatentAttention
from orrery.nn.feedforward.gated import GatedMLP
from orrery.nn.feedforward.mlp import MLP
from orrery.nn.norms import LayerNorm, PlainRMSNorm, RMSNorm
from orrery.nn.positions.rotary import Rotary
from orrery.nn.residual import Identity

SAME = {
    "hook_embed": "looked_up",
    "blocks.N.hook_resid_pre": "blocks.N.resid_pre",
    "blocks.N.hook_attn_out": "blocks.N.attention.added",
    "blocks.N.hook_resid_mid": "blocks.N.attention.resid",
    "blocks.N.hook_mlp_out": "blocks.N.feed_forward.added",
    "blocks.N.hook_resid_post": "blocks.N.resid_post",
    "blocks.N.attn.hook_attn_scores": "blocks.N.attention.scores",
    "blocks.N.attn.hook_pattern": "blocks.N.attention.pattern",
    "blocks.N.mlp.hook_post": "blocks.N.feed_forward.hidden",
    "ln_final.hook_out": "final",
    "unembed.hook_out": "logits",
}
"""Names of tensors in the same layout; N stands for the number of a block."""

TURNED = {
    "blocks.N.attn.hook_q": "blocks.N.attention.q",
    "blocks.N.attn.hook_k": "blocks.N.attention.k",
    "blocks.N.attn.hook_v": "blocks.N.attention.v",
    "blocks.N.attn.hook_z": "blocks.N.attention.mixed",
}
"""Names of tensors in which heads and positions change places."""

ROTATED = {
    "blocks.N.attn.hook_rot_q": "blocks.N.attention.q",
    "blocks.N.attn.hook_rot_k": "blocks.N.attention.k",
    "blocks.N.attn.hook_v": "blocks.N.attention.v",
    "blocks.N.attn.hook_z": "blocks.N.attention.mixed",
}
"""The same in a model with rotary positions, whose queries and keys a trace has after the rotation."""


def legacy_names(trace: RecordedPass) -> dict[str, str]:
    """Return TransformerLens' names for the keys of a trace, one for each key that it has a name for."""
    names = {}
    for key in trace:
        legacy = _template(key, {ours: theirs for theirs, ours in _table(trace).items()})
        if legacy is not None and _lack(trace, legacy[0], legacy[1]) is None:
            names[legacy[0].replace("N", legacy[1], 1) if legacy[1] else legacy[0]] = key
    return names


def by_legacy_name(trace: RecordedPass, name: str) -> Tensor | None:
    """Return what a legacy name of TransformerLens stands for, in its layout; nothing for any other name.

    Beside the tables it knows ``hook_pos_embed``, ``attn.hook_result``, ``mlp.hook_pre`` and ``hook_pre_linear``, and
    of ``ln1``, ``ln2`` and ``ln_final`` ``hook_scale`` and ``hook_normalized`` (before gain and bias). They are
    computed from what was kept.

    Raises:
        UsageError: the model has no such tensor, or the trace has not kept what it follows from.
    """
    parts = _template(name, dict.fromkeys([*SAME, *TURNED, *ROTATED, *_DERIVED]))
    if parts is None:
        return None
    legacy, block = parts
    lack = _lack(trace, legacy, block)
    if lack is not None:
        raise UsageError(f"this model has no {name!r}: {lack}", "the names of this trace are list(trace)")
    if legacy in _DERIVED:
        return _DERIVED[legacy](trace, block)
    value = needed(trace, _table(trace)[legacy].replace("N", block, 1) if block else _table(trace)[legacy])
    return value if legacy in SAME else value.transpose(1, 2)


def _table(trace: RecordedPass) -> dict[str, str]:
    return SAME | (ROTATED if _rotates(trace) else TURNED)


def _rotates(trace: RecordedPass) -> bool:
    return any(isinstance(scheme, Rotary) for scheme in trace.model.stack.positions.values())


def _template(name: str, known: dict[str, str | None]) -> tuple[str, str] | None:
    """Return the name in the table and the number of its block; in place of ours where the table gives another."""
    block = re.search(r"(?<=^blocks\.)\d+", name)
    template = re.sub(r"(?<=^blocks\.)\d+", "N", name)
    if template not in known:
        return None
    return known[template] or template, block[0] if block else ""


def _lack(trace: RecordedPass, legacy: str, block: str) -> str | None:
    """Say why a model has no tensor of this name, or nothing where it has one."""
    if block and int(block) >= len(trace.model.stack.order):
        return f"it has {len(trace.model.stack.order)} blocks"
    if legacy not in _table(trace) and legacy not in _DERIVED:
        return (
            "its queries and keys are shown after the rotation, as hook_rot_q and hook_rot_k"
            if _rotates(trace)
            else "nothing is rotated"
        )
    if legacy.endswith(("hook_resid_mid", "hook_resid_post")) and not all(
        isinstance(layer.residual.out, Identity) for layer in _layers(trace, block)
    ):
        return "its streams are shown after the norms that act on them"
    role = {"hook_attn_out": "attention", "hook_resid_mid": "attention", "hook_mlp_out": "feed_forward"}.get(legacy[9:])
    if role and not any(layer.key.endswith(f".{role}") for layer in _layers(trace, block)):
        return f"no sublayer of block {block} is {role.replace('_', '-')} alone"
    if re.search(r"hook_(rot_)?[qk]$", legacy) and isinstance(_leaf(trace, block, "attention"), LatentAttention):
        return "its heads have a rotated and a plain part"
    return None


def _layers(trace: RecordedPass, block: str) -> list[Sublayer]:
    return [layer for layer in sublayers(trace.model.stack) if layer.block.endswith(f"blocks.{block}")]


def _leaf(trace: RecordedPass, block: str, role: str) -> nn.Module | None:
    leaves = (layer.leaves.get(f"{layer.block}.{role}") for layer in _layers(trace, block))
    return next((leaf for leaf in leaves if leaf is not None), None)


def _pos_embed(trace: RecordedPass, block: str) -> Tensor:
    token, both = needed(trace, "looked_up"), needed(trace, "positioned")
    if token.shape != both.shape or torch.equal(token, both):
        raise UsageError("this model has no 'hook_pos_embed': it adds no positions", "look at its q and k")
    return both - token


def _result(trace: RecordedPass, block: str) -> Tensor:
    attention = _leaf(trace, block, "attention")
    if not isinstance(attention, ATTENTIONS):
        raise UsageError("this model has no 'attn.hook_result': it has no heads", "look at what is added")
    key = f"blocks.{block}.attention"
    mixed_BHLC = passing(attention, key, TraceView(trace, None), needed(trace, f"{key}.mixed"))
    matrix_HCD = output_matrices(attention, mixed_BHLC.shape[1]).to(mixed_BHLC.dtype)
    return torch.einsum("bhlc,hcd->blhd", mixed_BHLC, matrix_HCD)


def _before(trace: RecordedPass, block: str, role: str) -> tuple[nn.Module, Tensor]:
    """Return the norm before a branch, and the stream that enters it."""
    for layer in _layers(trace, block):
        if f"{layer.block}.{role}" in layer.leaves and isinstance(
            layer.residual.pre, LayerNorm | RMSNorm | PlainRMSNorm
        ):
            return layer.residual.pre, needed(trace, layer.before)
    raise UsageError(f"no norm stands before the {role} of block {block}", "look at the stream itself")


def _pre(trace: RecordedPass, block: str, side: str) -> Tensor:
    leaf = _leaf(trace, block, "feed_forward")
    norm, x_BLD = _before(trace, block, "feed_forward")
    if not isinstance(leaf, MLP | GatedMLP) or (side == "linear" and isinstance(leaf, MLP)):
        raise UsageError(f"block {block} has no such channels", "look at its hidden")
    with torch.no_grad():
        if isinstance(leaf, GatedMLP) and side == "first":
            return leaf.before(leaf.gate(norm(x_BLD)))
        return leaf.up(norm(x_BLD))


def _scale(norm: nn.Module, x_BLD: Tensor) -> Tensor:
    """Return what a norm divides by."""
    if isinstance(norm, LayerNorm):
        return (x_BLD.var(-1, correction=0, keepdim=True) + norm.eps).sqrt()
    assert isinstance(norm, RMSNorm | PlainRMSNorm)
    return (x_BLD.square().mean(-1, keepdim=True) + norm.eps).sqrt()


def _normalised(norm: nn.Module, x_BLD: Tensor) -> Tensor:
    centred_BLD = x_BLD - x_BLD.mean(-1, keepdim=True) if isinstance(norm, LayerNorm) else x_BLD
    return centred_BLD / _scale(norm, x_BLD)


def _final(trace: RecordedPass) -> tuple[nn.Module, Tensor]:
    norm = trace.model.stack.final
    if not isinstance(norm, LayerNorm | RMSNorm | PlainRMSNorm):
        raise UsageError("this model has no single norm before its head", "look at the stream after the last block")
    return norm, needed(trace, f"blocks.{len(trace.model.stack.order) - 1}.resid_post")


_DERIVED: dict[str, Callable[[RecordedPass, str], Tensor]] = {
    "hook_pos_embed": _pos_embed,
    "blocks.N.attn.hook_result": _result,
    "blocks.N.mlp.hook_pre": lambda trace, block: _pre(trace, block, "first"),
    "blocks.N.mlp.hook_pre_linear": lambda trace, block: _pre(trace, block, "linear"),
    "blocks.N.ln1.hook_scale": lambda trace, block: _scale(*_before(trace, block, "attention")),
    "blocks.N.ln1.hook_normalized": lambda trace, block: _normalised(*_before(trace, block, "attention")),
    "blocks.N.ln2.hook_scale": lambda trace, block: _scale(*_before(trace, block, "feed_forward")),
    "blocks.N.ln2.hook_normalized": lambda trace, block: _normalised(*_before(trace, block, "feed_forward")),
    "ln_final.hook_scale": lambda trace, block: _scale(*_final(trace)),
    "ln_final.hook_normalized": lambda trace, block: _normalised(*_final(trace)),
}
