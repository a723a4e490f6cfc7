"""An architecture as nodes and edges, from its tree of parts: what stands where in the figure of a paper."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from orrery.planning.spec_tree import SpecNode

MAIN, READER = "main", "reader"
"""The columns of the figure: what answers, and what reads the source beside it."""
EMPTY = ("Identity", "NoSkip")

Lane = tuple[int, int]
"""The number of a lane among those that stand beside each other, and how many there are."""


@dataclass(frozen=True)
class GraphNode:
    """A node of the graph.

    Attributes:
        id: its name in the edges.
        column: ``main`` or ``reader``.
        slot: what it is there: ``input``, ``embed``, ``position``, ``enter``, ``pre``, ``branch``, ``post``, ``add``,
            ``out``, ``final``, ``head``, ``other``.
        role: the sublayer that it belongs to, such as ``cross``; empty outside of blocks.
        kind: its class.
        what: the class with its settings.
        settings: its numbers and names.
        parameters: of one copy, all that is below included.
        group: the number of the group of equal blocks; none outside of blocks.
        lane: which of several parallel branches, and how many there are.
        key: of the tensor that it gives, as a trace names it; empty where none is recorded.
    """

    id: str
    column: str
    slot: str
    role: str = ""
    kind: str = ""
    what: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    parameters: int = 0
    group: int | None = None
    lane: tuple[int, int] = (0, 1)
    key: str = ""


@dataclass(frozen=True)
class GraphEdge:
    """From one node to another: along the ``flow``, past a branch (``skip``), or from the source (``memory``)."""

    first: str
    second: str
    kind: str = "flow"


@dataclass(frozen=True)
class BlockGroup:
    """Equal blocks, one after the other or at the depths that are named."""

    column: str
    copies: int
    depth: str
    parameters: int


@dataclass
class Graph:
    """Nodes in the order of computation, column by column, with edges and groups."""

    parts: list[GraphNode] = field(default_factory=list)
    edges: list[GraphEdge] = field(default_factory=list)
    groups: list[BlockGroup] = field(default_factory=list)

    def add(self, node: SpecNode | None, column: str, slot: str, **more: Any) -> GraphNode:
        """Add a node for a part of the tree, or one without a part, such as a sum."""
        known = {} if node is None else {"kind": node.kind, "what": node.what, "settings": dict(node.settings)}
        count = 0 if node is None else (node.parameters or 0)
        part = GraphNode(str(len(self.parts)), column, slot, parameters=count, **{**known, **more})
        self.parts.append(part)
        return part

    def link(self, first: GraphNode | None, second: GraphNode, kind: str = "flow") -> GraphNode:
        """Connect two nodes, and return the second."""
        if first is not None:
            self.edges.append(GraphEdge(first.id, second.id, kind))
        return second

    @property
    def parameters(self) -> int:
        """The numbers of all nodes, those of a block as often as it stands there with weights of its own."""
        copies = [group.copies for group in self.groups]
        return sum(part.parameters * (1 if part.group is None else copies[part.group]) for part in self.parts)


def graph_of(root: SpecNode) -> Graph:
    """Return the graph of an assembly."""
    graph = Graph()
    if any(child.name.startswith("stages.") for child in root.children):
        _stages(graph, root)
        return graph
    if (sees := _child(root, "sees")) is not None and (reads := _child(root, "reads")) is not None:
        _two_sides(graph, root, sees, reads)
        return graph
    reader = _child(root, "reader")
    end = None if reader is None else _column(graph, reader, READER, "encoder.")
    projection = _child(root, "projection")
    if end is not None and projection is not None and projection.kind not in EMPTY:
        end = graph.link(end, graph.add(projection, READER, "other", role="projection"))
    if (restore := _child(root, "restore")) is not None:
        end = graph.link(end, graph.add(restore, READER, "other", role="restore"))
    _column(graph, root, MAIN, "", end)
    for node in root.children:
        if node.name.startswith("transform "):
            graph.add(node, MAIN, "other", role=node.name)
    return graph


def _two_sides(graph: Graph, root: SpecNode, sees: SpecNode, reads: SpecNode) -> None:
    """Add both sides of a dual encoder, each up to the head of its vector, and the heads that read both vectors."""
    vectors: list[GraphNode] = []
    for side, column, prefix in ((sees, READER, "encoder."), (reads, MAIN, "")):
        _column(graph, side, column, prefix)
        vectors.append(graph.parts[-1])
    for child in root.children:
        if child.name.startswith("heads."):
            head = graph.add(child, MAIN, "head", role=child.name.partition(".")[2])
            for vector in vectors:
                graph.link(vector, head)


def _stages(graph: Graph, root: SpecNode) -> None:
    """Add the stages of a hierarchical encoder, each of which reads what the one before left, and its heads."""
    stages = [child for child in root.children if child.name.startswith("stages.")]
    last: GraphNode | None = None
    for number, stage in enumerate(stages):
        first = len(graph.parts)
        end = _column(graph, stage, MAIN, "" if stage is stages[-1] else f"stage{number}.")
        graph.link(last, graph.parts[first])
        last = end
    last = graph.link(last, graph.add(_child(root, "join"), MAIN, "other", role="join"))
    for child in root.children:
        if child.name.startswith("heads."):
            graph.link(last, graph.add(child, MAIN, "head", role=child.name.partition(".")[2]))


def attentions(root: SpecNode) -> Iterator[SpecNode]:
    """Yield every part that has heads, at whatever depth."""
    if "heads" in root.settings and "mask" in root.settings:
        yield root
    for child in root.children:
        yield from attentions(child)


def _column(graph: Graph, root: SpecNode, column: str, prefix: str, memory: GraphNode | None = None) -> GraphNode:
    """Add what stands in one column, from its input to its heads; return what gives its last stream."""
    stack = next((stack_node for name in ("decoder", "stack") if (stack_node := _child(root, name))), None)
    embed = _child(root, "target") or _child(root, "embed")
    last = graph.link(graph.add(None, column, "input"), graph.add(embed, column, "embed", key=f"{prefix}looked_up"))
    inner = stack or root
    for slot in ("enter", "start"):
        if slot == "start":
            last = _positions(graph, inner, column, prefix, last)
        if (filled := _filled(inner, slot)) is not None:
            key = f"{prefix}embedded" if slot == "start" else f"{prefix}looked_up"
            last = graph.link(last, graph.add(filled, column, "enter", role=slot, key=key))
    for child in inner.children:
        if child.kind == "Block":
            last = _block(graph, child, column, prefix, last, memory)
        elif child.name == "recurrence":
            last = graph.link(last, graph.add(child, column, "branch", role="recurrence"))
    if (final := _filled(inner, "final")) is not None:
        last = graph.link(last, graph.add(final, column, "final", key=f"{prefix}final"))
    for child in root.children:
        if child.name == "head" or child.name.startswith("heads."):
            key = "logits" if child.name == "head" else ""
            graph.link(last, graph.add(child, column, "head", role=child.name.partition(".")[2], key=key))
    return last


def _positions(graph: Graph, stack: SpecNode, column: str, prefix: str, last: GraphNode) -> GraphNode:
    """Add the positions; one that an attention names acts between its queries and keys, beside the flow."""
    used = {node.settings.get("position") for node in attentions(stack)}
    for node in stack.children:
        kind, _, name = node.name.partition(".")
        if kind == "positions" and name in used:
            graph.add(node, column, "position", role=name)
        elif kind == "positions":
            last = graph.link(last, graph.add(node, column, "position", role="added", key=f"{prefix}positioned"))
    return last


def _block(
    graph: Graph, block: SpecNode, column: str, prefix: str, last: GraphNode, memory: GraphNode | None
) -> GraphNode:
    depth = block.settings.get("depth", "0")
    number = len(graph.groups)
    graph.groups.append(BlockGroup(column, block.copies, depth, block.parameters or 0))
    first = re.match(r"\d+", depth)
    place = f"{prefix}blocks.{first[0] if first else 0}"
    for residual in block.children:
        last = _residual(graph, residual, f"{place}.", last, memory, {"column": column, "group": number})
    return last


def _residual(
    graph: Graph, residual: SpecNode, place: str, last: GraphNode, memory: GraphNode | None, where: Mapping[str, Any]
) -> GraphNode:
    """Add ``out(skip(x) + post(branch(pre(x))))``."""
    role, before = residual.name, last

    def put(node: SpecNode | None, slot: str, key: str = "", lane: Lane = (0, 1), name: str = role) -> GraphNode:
        return graph.add(node, slot=slot, role=name, lane=lane, key=key and f"{place}{name}.{key}", **where)

    if (pre := _filled(residual, "pre")) is not None:
        last = graph.link(last, put(pre, "pre"))
    ends: list[GraphNode] = []
    branch = _child(residual, "branch")
    assert branch is not None
    lanes = branch.children if branch.kind == "Sum" else [branch]
    for number, node in enumerate(lanes):
        lane = (number, len(lanes))
        name, start, behind = (node.name if branch.kind == "Sum" else role), last, None
        if node.kind == "Normed":
            behind = _filled(node, "post")
            norm, inner = _child(node, "norm"), _child(node, "branch")
            start = graph.link(start, put(norm, "pre", lane=lane, name=name))
            node = inner or node
        branch_end = graph.link(start, put(node, "branch", "added", lane, name))
        if memory is not None and _reads_memory(node, role):
            graph.link(memory, branch_end, "memory")
        if behind is not None:
            branch_end = graph.link(branch_end, put(behind, "post", lane=lane, name=name))
        ends.append(branch_end)
    if (post := _filled(residual, "post")) is not None:
        after = put(post, "post")
        ends = [graph.link(end, after) for end in ends][:1]
    skip = _child(residual, "skip")
    if skip is None or skip.kind != "NoSkip" or len(ends) > 1:
        total = put(None, "add", "resid")
        for end in ends:
            graph.link(end, total)
        if skip is None or skip.kind != "NoSkip":
            graph.link(before, total, "skip")
        ends = [total]
    last = ends[0]
    return last if (out := _filled(residual, "out")) is None else graph.link(last, put(out, "out", "resid"))


def _reads_memory(node: SpecNode, role: str) -> bool:
    source = _child(node, "source")
    return role == "cross" if source is None else source.kind == "CrossSource"


def _filled(node: SpecNode, name: str) -> SpecNode | None:
    child = _child(node, name)
    return None if child is None or child.kind in EMPTY else child


def _child(node: SpecNode, name: str) -> SpecNode | None:
    return next((child for child in node.children if child.name == name), None)


def plain(node: SpecNode) -> dict[str, Any]:
    """Return a tree as JSON, without the parts that are as usual."""
    children: Sequence[SpecNode] = [child for child in node.children if not child.usual]
    facts = {"name": node.name, "what": node.what, "weight": node.weight}
    return {**facts, "children": [plain(child) for child in children]}
