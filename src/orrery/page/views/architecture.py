"""How a model is built: its parts, what flows from which to which, and in what shape."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, ClassVar

from orrery.inspection.checks import Check
from orrery.inspection.memory import trace_bytes
from orrery.nn.inputs import Tokens
from orrery.page.views._graph import Graph, graph_of, plain
from orrery.page.views._payload import Payload
from orrery.page.views._view import View, ViewSubject, register
from orrery.planning.spec_tree import SpecNode, tree
from orrery.tuning import numbers_of

TOKENS, SOURCE = 4, 6
"""Tokens of the passes that tell the shapes; one more of either says which sides grow with them."""
LARGEST = 2_000_000_000
"""Parameters up to which these passes are made: they read all of them."""
INNER = ("q", "k", "v", "scores", "pattern", "mixed")


@register
class ArchitectureView(View):
    """Nodes and edges are those of the specs that the modules were built from; shapes are those of a pass."""

    kind: ClassVar[str] = "architecture"
    screen: ClassVar[str] = "model"
    order: ClassVar[int] = 10

    def fits(self, subject: ViewSubject) -> bool:
        """Say that every model has one."""
        return True

    def payload(self, subject: ViewSubject, settings: Any) -> Payload:
        """Return the graph, the tree of the parts, and the shapes by the keys of a trace."""
        model = subject.lm.model
        root = tree(model.spec, subject.lm.stored.name, model.transforms)
        graph, sides = graph_of(root), _shapes(subject)
        numbers = numbers_of(model)
        facts = {
            "assembly": root.kind,
            "family": subject.lm.family,
            "width": int(root.settings.get("width", 0)),
            "context": subject.lm.context,
            "parameters": numbers,
            "nodes": [{**asdict(part), "shape": sides.get(part.key)} for part in graph.parts],
            "edges": list(map(vars, graph.edges)),
            "groups": list(map(vars, graph.groups)),
            "inner": {key: shape for key, shape in sides.items() if key.rpartition(".")[2] in INNER},
            "kinds": sorted(_kinds(root)),
            "tree": plain(root),
        }
        off = abs(graph.parameters - numbers)
        sums = Check("the parts of the figure add up to the parameters of the loaded model", float(off), 0.0)
        return Payload(facts, checks=[sums, *_heads(graph, sides)])


def _kinds(node: SpecNode) -> set[str]:
    """Return the classes of all parts that are not as usual."""
    return {node.kind}.union(*(_kinds(child) for child in node.children if not child.usual))


Sides = Mapping[str, list[int | str]]
"""The shape of each tensor behind its rows: numbers, and ``L`` or ``S`` for a side that grows with the tokens."""


def _shapes(subject: ViewSubject) -> Sides:
    """Return the shapes of a pass by its keys; none where it would take too long or the context is too short."""
    model = subject.lm.model
    if numbers_of(model) > LARGEST or subject.lm.context <= SOURCE:
        return {}
    reads = list(model.spec.inputs.values())
    base = trace_bytes(model, TOKENS, source_length=SOURCE).shapes
    longer = {"L": trace_bytes(model, TOKENS + 1, source_length=SOURCE).shapes}
    if len(reads) > 1 and isinstance(reads[0], Tokens):
        longer["S"] = trace_bytes(model, TOKENS, source_length=SOURCE + 1).shapes
    shapes: dict[str, list[int | str]] = {}
    for key, shape in base.items():
        sides: list[int | str] = list(shape[1:])
        for letter, other in longer.items():
            for axis, (size, more) in enumerate(zip(shape[1:], other[key][1:], strict=True)):
                sides[axis] = letter if more == size + 1 else sides[axis]
        shapes[key] = sides
    return shapes


def _heads(graph: Graph, sides: Sides) -> list[Check]:
    """Compare the heads and widths that the parts name with the queries and keys of a pass."""
    off, compared = 0, 0
    for part in graph.parts:
        place = part.key.removesuffix(".added")
        for name, wanted in (("q", ("heads", "head_width")), ("k", ("kv_heads", "head_width"))):
            shape = sides.get(f"{place}.{name}")
            if part.slot == "branch" and shape is not None and all(one in part.settings for one in wanted):
                compared += 1
                off += [shape[0], shape[2]] != [int(part.settings[one]) for one in wanted]
    name = "heads and widths of the parts are those of the queries and keys of a pass"
    return [Check(name, float(off), 0.0)] if compared else []
