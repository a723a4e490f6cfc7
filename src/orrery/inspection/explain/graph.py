"""The graph of a model: every tensor of a pass by its key, and how each follows from others."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import singledispatch
from typing import Any

import torch
from jaxtyping import Shaped
from torch import Tensor, nn

from orrery.inspection.explain.attention import Heads, LatentKeys, Mixed, Pattern, Products, Scores
from orrery.inspection.explain.attention_decoder import bahdanau, input_feeding, lstm_decoder
from orrery.inspection.explain.differential import HeadDifference, SharedValues
from orrery.inspection.explain.entry import embedding, entered
from orrery.inspection.explain.feedforward import Experts, clamped, gated, mlp
from orrery.inspection.explain.node import GivenTensor, Same, TensorNode
from orrery.inspection.explain.recorded_layer import RecordedLayer
from orrery.inspection.explain.recurrent import Affine, Before, engine_parts, gru_nodes, lstm_nodes
from orrery.inspection.explain.shortened import Shortened
from orrery.inspection.explain.slots import Nodes, Pointwise, chain
from orrery.inspection.explain.sums import Added, JoinedHeads, Linear, Product, Switched
from orrery.models.dual_encoder import DualEncoder
from orrery.models.hierarchical_encoder import HierarchicalEncoder
from orrery.models.masked_autoencoder import MaskedAutoencoder
from orrery.models.model import Model
from orrery.models.places import placed
from orrery.nn.attention.differential import DifferentialAttention
from orrery.nn.attention.disentangled import DisentangledAttention
from orrery.nn.attention.kernels import eager
from orrery.nn.attention.latent import LatentAttention
from orrery.nn.attention.multihead import MultiHeadAttention
from orrery.nn.attention.output_gate import OutputGate
from orrery.nn.attention.shortened import ShortenedSource
from orrery.nn.attention.sources import CrossSource
from orrery.nn.block import Block
from orrery.nn.cache.contract import UNCACHED
from orrery.nn.context import Context, Execution
from orrery.nn.feedforward.clamped import ClampedGatedMLP
from orrery.nn.feedforward.gated import GatedMLP
from orrery.nn.feedforward.mlp import MLP
from orrery.nn.feedforward.moe import MoE
from orrery.nn.heads import LanguageModelHead, TokenHead
from orrery.nn.mixer import StatefulMixer
from orrery.nn.patches import PatchEmbedding, PlainPatches
from orrery.nn.positions.scheme import NO_POSITION, BoundPosition, Grid
from orrery.nn.recurrent.attention_decoder import AttentionDecoder
from orrery.nn.recurrent.bahdanau import BahdanauDecoder
from orrery.nn.recurrent.gru import GRU
from orrery.nn.recurrent.lstm import LSTM
from orrery.nn.recurrent.luong import InputFeedingLSTM, LSTMDecoder
from orrery.nn.recurrent.rnn import ElmanRNN
from orrery.nn.residual import Gated, Identity, Normed, NoSkip, Residual, Scale, Sum
from orrery.nn.stack import Stack


@dataclass(frozen=True)
class StackSide:
    """One stack of a model and what it read.

    Attributes:
        prefix: of its keys, ``encoder.`` for a reader.
        stack: its blocks.
        positions: bound to this pass, by name.
        ctx: the state of this pass, of a stack that can be called alone.
        encoder_states: the key of the encoder's output, which cross-attention reads.
        grid: rows and columns of the patches, where a picture is read.
    """

    prefix: str
    stack: Stack
    positions: Mapping[str, BoundPosition]
    ctx: Context | None = None
    encoder_states: str | None = None
    grid: Grid | None = None


@dataclass
class Leaf:
    """A layer inside a residual, and what it reads.

    Attributes:
        side: its stack.
        path: of its keys: ``blocks.3.attention``.
        source: the key of what it reads, after the norms before it.
        nodes: of the whole graph.
    """

    side: StackSide
    path: str
    source: str
    nodes: Nodes = field(repr=False)

    def bound(self, name: str) -> BoundPosition:
        """Return the position of a name, bound to this pass."""
        return self.side.positions[name]


def graph_of(model: Model, ids_L: Shaped[Tensor, "..."], source_ids_S: Shaped[Tensor, "..."] | None) -> Nodes:
    """Return the nodes of a pass by key.

    Args:
        model: in eval mode.
        ids_L: what the answering stack read: tokens, or an image.
        source_ids_S: what the reader of an encoder-decoder read, likewise; of a dual encoder the picture.
    """
    nodes: Nodes = {}
    parts: dict[str, Any] = dict(model.named_children())
    if isinstance(model, HierarchicalEncoder):
        _last_stage(nodes, model, ids_L)
        return nodes
    if isinstance(model, MaskedAutoencoder):
        reader = _bound("encoder.", model.reader.stack, model.reader.embed, ids_L, None)
        _stack(nodes, reader, model.reader.embed, ids_L)
        _stack(nodes, StackSide("", model.stack, {"none": NO_POSITION}), model.reader.embed, ids_L)
        return nodes
    if isinstance(model, DualEncoder):
        for part, read in ((model.sees, source_ids_S), (model.reads, ids_L)):
            assert read is not None
            _stack(nodes, _bound(part.stack.path, part.stack, part.embed, read, None), part.embed, read)
        return nodes
    encoder_states = _reader(nodes, parts, source_ids_S) if "reader" in parts else None
    embed = parts.get("target", parts.get("embed", parts["reader"].embed if "reader" in parts else None))
    side = _bound("", model.stack, embed, ids_L, encoder_states)
    final = _stack(nodes, side, embed, ids_L)
    _head(nodes, model.named_heads, final)
    return nodes


@torch.no_grad()
def _last_stage(nodes: Nodes, model: HierarchicalEncoder, image: Tensor) -> None:
    """Add the nodes of the stage that answers; what the stages before it leave is given."""
    before = model.maps(image[None], Execution(eager))[-2:][0]
    stage: Any = model.stages[-1]
    grid = stage.embed.input.grid_of(before if len(model.stages) > 1 else image[None])
    _stack(nodes, StackSide("", model.stack, {"none": NO_POSITION}, grid=grid), stage.embed, image)


def _reader(nodes: Nodes, parts: Mapping[str, Any], source_ids_S: Tensor | None) -> str:
    reader = parts["reader"]
    stack = dict(reader.named_children()).get("stack")
    if stack is None or source_ids_S is None:
        nodes["encoder.memory"] = GivenTensor("encoder.memory", "what the reader has left of the source")
        return "encoder.memory"
    side = _bound("encoder.", stack, reader.embed, source_ids_S, None)
    final = _stack(nodes, side, reader.embed, source_ids_S)
    return chain(nodes, parts["projection"], final, "memory")


@torch.no_grad()
def _bound(prefix: str, stack: Stack, embed: nn.Module | None, ids_L: Tensor, encoder_states: str | None) -> StackSide:
    """Bind the positions of a stack to the places of a pass."""
    assert embed is not None
    x_BLD = embed(ids_L[None])
    at = placed(stack, x_BLD)
    grid = embed.input.grid_of(ids_L[None]) if isinstance(embed, PatchEmbedding | PlainPatches) else None
    _, ctx = stack.prepare(
        x_BLD, at.places, at.real, whole=at.whole, cache=UNCACHED, execution=Execution(eager), grid=grid
    )
    return StackSide(prefix, stack, ctx.positions, ctx, encoder_states, grid)


def _stack(nodes: Nodes, side: StackSide, embed: nn.Module | None, ids_L: Tensor) -> str:
    """Add the nodes of a stack and return the key of its final stream."""
    assert embed is not None
    prefix = side.prefix
    word = embedding(nodes, prefix, embed, ids_L)
    if word is None:
        nodes[f"{prefix}embedded"] = GivenTensor(f"{prefix}embedded", f"what {type(embed).__name__} makes of the input")
    else:
        entered(nodes, prefix, side.stack, dict(side.positions), word)
    stream = f"{prefix}embedded"
    for depth, number in enumerate(side.stack.order):
        block = side.stack.blocks[number]
        assert isinstance(block, Block)
        stream = _block(nodes, side, f"{prefix}blocks.{depth}", block, stream)
    final = chain(nodes, side.stack.final, stream, f"{prefix}final")
    if final != f"{prefix}final":
        nodes[f"{prefix}final"] = Same(f"{prefix}final", final)
    return f"{prefix}final"


def _block(nodes: Nodes, side: StackSide, base: str, block: Block, stream: str, path: str = "") -> str:
    """Add the nodes of a block and return the key of the stream after it; a block within one has a ``path``."""
    path = path or base
    nodes[f"{path}.resid_pre"] = Same(f"{path}.resid_pre", stream)
    stream = f"{path}.resid_pre"
    for name, residual in block.named_children():
        assert isinstance(residual, Residual)
        stream = _residual(nodes, side, f"{base}.{name}", residual, stream)
    nodes[f"{path}.resid_post"] = Same(f"{path}.resid_post", stream)
    return f"{path}.resid_post"


def _residual(nodes: Nodes, side: StackSide, path: str, residual: Residual, stream: str) -> str:
    """Add ``out(skip(x) + post(branch(pre(x))))`` and return the key of the stream after it."""
    read = chain(nodes, residual.pre, stream, f"{path}.input")
    branch = _branch(nodes, side, path, residual.branch, read)
    added = f"{path}.added"
    if branch is None:
        nodes[added] = _undescribed(side, path, residual, read)
    else:
        added = chain(nodes, residual.post, branch, added)
    if added != f"{path}.added":
        nodes[f"{path}.added"] = Same(f"{path}.added", added)
    parts = [*_skipped(residual.skip, stream), (f"{path}.added", 1.0)]
    filled = not isinstance(residual.out, Identity)
    total = f"{path}.total" if filled else f"{path}.resid"
    nodes[total] = Added(tuple(parts))
    return chain(nodes, residual.out, total, f"{path}.resid")


def _undescribed(side: StackSide, path: str, residual: Residual, read: str) -> TensorNode:
    """Return the node of what a layer adds that no function is registered for."""
    name, depth = type(residual.branch).__name__, path.removeprefix(side.prefix).split(".")[1]
    # What steps from token to token has too many operations, or kernels that torch does not see.
    steps = any(isinstance(part, StatefulMixer) for part in residual.branch.modules())
    if side.ctx is None or side.encoder_states is not None or steps:
        return GivenTensor(f"{path}.added", f"what {name} makes of its input")
    ctx = side.ctx.at(side.stack.layer(int(depth), side.ctx.cache))
    modules = (residual.branch, residual.post)
    return RecordedLayer(f"{path}.added", read, lambda x: residual.post(residual.branch(x, ctx)), modules, name)


def _skipped(skip: nn.Module, stream: str) -> list[tuple[str, float]]:
    if isinstance(skip, NoSkip):
        return []
    return [(stream, skip.factor if isinstance(skip, Scale) else 1.0)]


def _branch(nodes: Nodes, side: StackSide, path: str, module: nn.Module, source: str) -> str | None:
    """Add the nodes of a branch and return the key of what it gives, where its formula is known."""
    if isinstance(module, Sum):
        base = path.rsplit(".", 1)[0]
        outs = [_branch(nodes, side, f"{base}.{name}", part, source) for name, part in module.named_children()]
        known = [out for out in outs if out is not None]
        nodes[f"{path}.sum"] = Added(tuple((out, 1.0) for out in known))
        return f"{path}.sum" if len(known) == len(outs) else None
    if isinstance(module, Residual):
        return _residual(nodes, side, path, module, source)
    if isinstance(module, Block):
        return _block(nodes, side, path.rsplit(".", 1)[0], module, source, path)
    if isinstance(module, Normed):
        inner = _branch(nodes, side, path, module.branch, chain(nodes, module.norm, source, f"{path}.input"))
        return inner if inner is None else chain(nodes, module.post, inner, f"{path}.behind")
    if isinstance(module, Gated):
        inner = _branch(nodes, side, path, module.branch, source)
        if inner is None:
            return None
        nodes[f"{path}.switched"] = Switched(module.gate, source, inner)
        return f"{path}.switched"
    return layer_nodes(module, Leaf(side, path, source, nodes))


@singledispatch
def layer_nodes(module: nn.Module, leaf: Leaf) -> str | None:
    """Add the nodes of a layer to ``leaf.nodes`` and return the key of its output; nothing where none is registered.

    ``@layer_nodes.register`` before a function of a layer's class makes the layer known.
    """
    return None


@layer_nodes.register
def _multihead(module: MultiHeadAttention, leaf: Leaf) -> str:
    nodes, path, width = leaf.nodes, leaf.path, module.head_width
    position = leaf.bound(module.position)
    turns = 0 if type(position).rotate is not BoundPosition.rotate else None
    cross = isinstance(module.source, CrossSource)
    read = leaf.side.encoder_states if cross and leaf.side.encoder_states is not None else leaf.source
    if isinstance(module.source, ShortenedSource) and leaf.side.grid is not None:
        read = f"{path}.shortened"
        nodes[read] = Shortened(leaf.source, module.source, leaf.side.grid)
    slots = {"q": (leaf.source, module.q_norm), "k": (read, module.k_norm), "v": (read, module.source.values)}
    for name, (source, slot) in slots.items():
        nodes[f"{path}.{name}_in"] = Linear(source, getattr(module, name))
        flat = chain(nodes, slot, f"{path}.{name}_in", f"{path}.{name}_normed")
        turning = position.of_queries if name == "q" else position
        nodes[f"{path}.{name}"] = Heads(flat, width, turning, None if name == "v" else turns)
    _mixing(leaf, module, position.bias(module.mask) if not cross else None, (), module.sinks())
    passed = f"{path}.mixed"
    if isinstance(module.gate, OutputGate):
        nodes[f"{path}.gate_in"] = Linear(leaf.source, module.gate.linear)
        nodes[f"{path}.gate_flat"] = Pointwise(f"{path}.gate_in", torch.sigmoid, "sigmoid(x)")
        nodes[f"{path}.gate"] = Heads(f"{path}.gate_flat", width, position, None)
        passed = f"{path}.passed"
        nodes[passed] = Product(f"{path}.gate", f"{path}.mixed")
    nodes[f"{path}.out"] = JoinedHeads(passed, module.out)
    return f"{path}.out"


def _mixing(
    leaf: Leaf, module: Any, bias: Tensor | None, terms: tuple[str, ...], sinks_H: Tensor | None = None
) -> None:
    """Add scores, pattern and what is mixed."""
    nodes, path = leaf.nodes, leaf.path
    nodes[f"{path}.products"] = Products(f"{path}.q", f"{path}.k")
    scores = f"{path}.scores"
    nodes[scores] = Scores(f"{path}.products", module.scale, module.cap, bias, terms, scores)
    nodes[f"{path}.pattern"] = Pattern(scores, None if sinks_H is None else sinks_H.detach(), f"{path}.pattern")
    nodes[f"{path}.mixed"] = Mixed(f"{path}.pattern", f"{path}.v")


@layer_nodes.register
def _latent(module: LatentAttention, leaf: Leaf) -> str:
    nodes, path, widths = leaf.nodes, leaf.path, module.widths
    position = leaf.bound(module.position)
    query = chain(nodes, module.query, leaf.source, f"{path}.query")
    nodes[f"{path}.q_in"] = Linear(query, module.q)
    nodes[f"{path}.q"] = Heads(f"{path}.q_in", widths.plain + widths.rotated, position, widths.plain)
    nodes[f"{path}.latent_in"] = Linear(leaf.source, module.latent)
    latent = chain(nodes, module.norm, f"{path}.latent_in", f"{path}.latent")
    nodes[f"{path}.rotated"] = Linear(leaf.source, module.rotated)
    nodes[f"{path}.k_in"], nodes[f"{path}.v_in"] = Linear(latent, module.k), Linear(latent, module.v)
    nodes[f"{path}.k"] = LatentKeys(f"{path}.k_in", f"{path}.rotated", widths.plain, module.heads, position)
    nodes[f"{path}.v"] = Heads(f"{path}.v_in", widths.value, position, None)
    _mixing(leaf, module, position.bias(module.mask), ())
    nodes[f"{path}.out"] = JoinedHeads(f"{path}.mixed", module.out)
    return f"{path}.out"


@layer_nodes.register
def _differential(module: DifferentialAttention, leaf: Leaf) -> str:
    nodes, path, width = leaf.nodes, leaf.path, module.head_width
    position = leaf.bound(module.position)
    for name in ("q", "k", "v"):
        nodes[f"{path}.{name}_in"] = Linear(leaf.source, getattr(module, name))
    nodes[f"{path}.q"] = Heads(f"{path}.q_in", width, position.of_queries, 0)
    nodes[f"{path}.k"] = Heads(f"{path}.k_in", width, position, 0)
    nodes[f"{path}.v"] = SharedValues(f"{path}.v_in", width)
    _mixing(leaf, module, position.bias(module.mask), ())
    nodes[f"{path}.difference"] = HeadDifference(f"{path}.mixed", module)
    normed = chain(nodes, module.norm, f"{path}.difference", f"{path}.normed")
    nodes[f"{path}.out"] = Linear(normed, module.out)
    return f"{path}.out"


@layer_nodes.register
def _disentangled(module: DisentangledAttention, leaf: Leaf) -> str:
    nodes, path = leaf.nodes, leaf.path
    position = leaf.bound("none")
    for name in ("q", "k", "v"):
        nodes[f"{path}.{name}_in"] = Linear(leaf.source, getattr(module, name))
        nodes[f"{path}.{name}"] = Heads(f"{path}.{name}_in", module.head_width, position, None)
    terms = tuple(f"{path}.{name}" for name in module.terms)
    for key in terms:
        nodes[key] = GivenTensor(key, "how content and distance meet, for all pairs at once")
    _mixing(leaf, module, None, terms)
    nodes[f"{path}.out"] = JoinedHeads(f"{path}.mixed", module.out)
    return f"{path}.out"


@layer_nodes.register
def _attention_decoder(module: AttentionDecoder, leaf: Leaf) -> str:
    """Add the steps of a recurrence that attends, or what it gives where its kind is not known."""
    for kind, build in DECODERS.items():
        if isinstance(module, kind) and leaf.side.encoder_states is not None:
            return build(leaf.nodes, leaf.path, leaf.source, leaf.side.encoder_states, module)
    leaf.nodes[f"{leaf.path}.state"] = GivenTensor(f"{leaf.path}.state", f"a step of {type(module).__name__}")
    return f"{leaf.path}.state"


@layer_nodes.register
def _elman(module: ElmanRNN, leaf: Leaf) -> str:
    before, state = f"{leaf.path}.before", f"{leaf.path}.state"
    leaf.nodes[before] = Before(state)
    parts = engine_parts(module.engine, leaf.source, before)
    leaf.nodes[f"{leaf.path}.state_in"] = Affine(parts, module.engine.hidden_size)
    leaf.nodes[state] = Pointwise(f"{leaf.path}.state_in", torch.tanh, "tanh(x)")
    return _stepwise(leaf)


@layer_nodes.register
def _lstm(module: LSTM, leaf: Leaf) -> str:
    path, before = leaf.path, f"{leaf.path}.before"
    leaf.nodes[before] = Before(f"{path}.state")
    cell = (f"{path}.cell_before", Before(f"{path}.cell"))
    h = lstm_nodes(leaf.nodes, path, engine_parts(module.engine, leaf.source, before), cell)
    leaf.nodes[f"{path}.state"] = Same(f"{path}.state", h)
    return _stepwise(leaf)


@layer_nodes.register
def _gru(module: GRU, leaf: Leaf) -> str:
    path, before = leaf.path, f"{leaf.path}.before"
    new, old = engine_parts(module.engine, leaf.source, before)
    gru_nodes(leaf.nodes, path, (new,), (old,), before, Before(f"{path}.state"), f"{path}.state")
    return _stepwise(leaf)


def _stepwise(leaf: Leaf) -> str:
    """Add the states as the steps give them, beside those of the engine."""
    leaf.nodes[f"{leaf.path}.stepwise"] = Same(f"{leaf.path}.stepwise", f"{leaf.path}.state")
    return f"{leaf.path}.state"


@layer_nodes.register
def _mixture(module: MoE, leaf: Leaf) -> str:
    """Add the shared experts, which see every token, and the sum of all answers."""
    base = leaf.path.rsplit(".", 1)[0]
    paths = [f"{base}.shared.{number}" for number in range(len(module.shared))]
    parts = zip(paths, module.shared, strict=True)
    shared = [_branch(leaf.nodes, leaf.side, path, expert, leaf.source) for path, expert in parts]
    leaf.nodes[f"{leaf.path}.answer"] = Experts(leaf.source, module, tuple(shared))
    return f"{leaf.path}.answer"


@layer_nodes.register
def _mlp(module: MLP, leaf: Leaf) -> str:
    return mlp(leaf.nodes, leaf.path, leaf.source, module)


@layer_nodes.register
def _gated(module: GatedMLP, leaf: Leaf) -> str:
    return gated(leaf.nodes, leaf.path, leaf.source, module)


@layer_nodes.register
def _clamped(module: ClampedGatedMLP, leaf: Leaf) -> str:
    return clamped(leaf.nodes, leaf.path, leaf.source, module)


DECODERS: dict[type[nn.Module], Callable[..., str]] = {
    BahdanauDecoder: bahdanau,
    LSTMDecoder: lstm_decoder,
    InputFeedingLSTM: input_feeding,
}
"""By the class of a recurrent decoder, what adds the nodes of its steps."""


def _head(nodes: Nodes, heads: Mapping[str, nn.Module], final: str) -> None:
    """Add the nodes of the main head, where it scores every token."""
    head = next(iter(heads.values()), None)
    if isinstance(head, LanguageModelHead):
        read = chain(nodes, head.transform, final, "transformed")
        capped = not isinstance(head.cap, Identity)
        nodes["scored" if capped else "logits"] = Linear(read, head.vocabulary)
        if capped:
            chain(nodes, head.cap, "scored", "logits")
    elif isinstance(head, TokenHead):
        nodes["logits"] = Linear(chain(nodes, head.transform, final, "transformed"), head.labels)
