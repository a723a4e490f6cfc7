"""An architecture as a tree to read: every part with its settings and its parameters, and what differs between two."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from itertools import zip_longest
from typing import Any

from orrery.models.distinct_blocks import DistinctBlocks, EqualBlocks, distinct_blocks
from orrery.models.meta_device import build_on_meta
from orrery.models.model import ModelSpec
from orrery.nn.spec import Value
from orrery.tuning import Transform, numbers_of

_RANGES = 4


@dataclass(frozen=True)
class SpecNode:
    """One part of an architecture.

    Attributes:
        name: its field in the part above, with the key where that field holds several.
        kind: the class, ``RMSNorm``.
        settings: its numbers and names; what is not set is left out.
        parameters: of one copy, all that is below included; ``None`` where the part is no module of its own.
        copies: how many equal ones with weights of their own there are.
        usual: whether it is what the field holds by default, an empty slot mostly.
        children: the parts below.
    """

    name: str
    kind: str
    settings: Mapping[str, str] = field(default_factory=dict)
    parameters: int | None = None
    copies: int = 1
    usual: bool = False
    children: Sequence["SpecNode"] = ()

    @property
    def what(self) -> str:
        """The class with its settings: ``RMSNorm(eps=1e-06)``; a zero says nothing but as a depth."""
        given = {n: value for n, value in self.settings.items() if n == "depth" or value not in ("no", "0", "")}
        shown = [name if value == "yes" else f"{name}={value}" for name, value in given.items()]
        return f"{self.kind}({', '.join(shown)})" if shown else self.kind

    @property
    def weight(self) -> str:
        """The parameters with thousands separators, an empty text for none."""
        if not self.parameters:
            return ""
        return f"{self.copies} x {self.parameters:,}" if self.copies > 1 else f"{self.parameters:,}"


@dataclass(frozen=True)
class SpecDifference:
    """A part of two architectures that is not the same; an empty text where one of them lacks it."""

    path: str
    first: str
    second: str


def tree(spec: ModelSpec, name: str, transforms: Sequence[Transform] = ()) -> SpecNode:
    """Return the tree of an architecture; equal blocks of a stack are one node, and so is each transform.

    The parameters are those of the architecture; a transform has those that it adds.
    """
    blocks = distinct_blocks(spec)
    modules = {path for path, _ in blocks.model.named_modules(remove_duplicate=False)}
    node = _Reader(blocks, modules).node(name, "", blocks.spec)
    return replace(node, children=[*node.children, *_added(spec, transforms)])


def _added(spec: ModelSpec, transforms: Sequence[Transform]) -> Iterator[SpecNode]:
    """Yield a node for each transform."""
    model = build_on_meta(spec) if transforms else None
    for number, transform in enumerate(transforms, start=1):
        assert model is not None
        before = numbers_of(model)
        model = transform.apply(model)
        added = numbers_of(model) - before
        settings = {f.name: _text(getattr(transform, f.name)) for f in fields(transform)}
        yield SpecNode(f"transform {number}", transform.kind, settings, added)


def lines(node: SpecNode, depth: int = 0) -> Iterator[str]:
    """Yield a tree as plain text, two spaces a level; parts that are as usual are left out."""
    text = f"{node.name}: {node.what}"
    yield f"{'  ' * depth}{text}{f'  [{node.weight}]' if node.weight else ''}"
    for child in node.children:
        if not child.usual:
            yield from lines(child, depth + 1)


def differences(first: SpecNode, second: SpecNode, path: str = "") -> Iterator[SpecDifference]:
    """Yield what two trees do not have in common; inside parts of different kinds nothing is compared."""
    if first.kind != second.kind:
        if path:
            yield SpecDifference(path, first.what, second.what)
            return
        yield SpecDifference("assembly", first.kind, second.kind)
    for name in dict.fromkeys((*first.settings, *second.settings)):
        a, b = first.settings.get(name, ""), second.settings.get(name, "")
        if a != b:
            yield SpecDifference(f"{path}.{name}".lstrip("."), a, b)
    left, right = ({child.name: child for child in node.children} for node in (first, second))
    for name in dict.fromkeys((*left, *right)):
        place = f"{path}.{name}".lstrip(".")
        if name in left and name in right:
            yield from differences(left[name], right[name], place)
        else:
            yield SpecDifference(place, *(side[name].what if name in side else "" for side in (left, right)))


@dataclass(frozen=True)
class _Reader:
    """Walks spec and module side by side."""

    whole: DistinctBlocks
    modules: set[str]

    def node(
        self, name: str, path: str | None, value: Value, *, usual: bool = False, group: EqualBlocks | None = None
    ) -> SpecNode:
        """Return the node of one part; ``path`` is its module's place, if it has one."""
        settings = {"depth": _ranges(group.depths)} if group else {}
        children: list[SpecNode] = []
        for f in fields(value):
            inner = getattr(value, f.name)
            if parts := list(_parts(inner)):
                default = not isinstance(inner, Mapping) and inner == (None if f.default is MISSING else f.default)
                children += self.parts(path, f.name, parts, usual=default)
            elif inner is not None and not isinstance(inner, Mapping):
                settings[f.name] = _text(inner)
        count = None if path is None else self.whole.parameters(path)
        copies = group.copies if group else self.siblings(path, name)
        return SpecNode(name, type(value).__qualname__.removesuffix(".Spec"), settings, count, copies, usual, children)

    def parts(self, path: str | None, name: str, parts: list[tuple[str, Value]], *, usual: bool) -> Iterator[SpecNode]:
        """Yield the nodes of what one field holds."""
        groups: Sequence[EqualBlocks] = self.whole.groups.get(path or "", ()) if name == "blocks" else ()
        for (key, part), group in zip_longest(parts, groups):
            place = self.place(path, name, key)
            label = f"{name}.{key}" if key else name
            if group and len(groups) == 1:
                label = name
            elif key and place is not None and not key.isdigit() and not place.endswith(label):
                label = key  # the module stands without its field: the attention of a block
            yield self.node(label, place, part, usual=usual, group=group)

    def siblings(self, path: str | None, name: str) -> int:
        """Count the modules of a list that one spec describes, its first at ``path``: the experts of ``expert``."""
        if path is None or not path.endswith(f".{name}s.0"):
            return 1
        folder, _, _ = path.rpartition(".")
        return sum(
            other.startswith(f"{folder}.") and other.removeprefix(f"{folder}.").isdigit() for other in self.modules
        )

    def place(self, path: str | None, name: str, key: str) -> str | None:
        """Return the module of a part: under its field, without it (the residuals of a block), or in a list of it."""
        if path is None:
            return None
        ends = (f"{name}.{key}", key) if key else (name, f"{name}s.0")
        candidates = (f"{path}.{end}" if path else end for end in ends)
        return next((place for place in candidates if place in self.modules), None)


def _parts(value: Any) -> Iterator[tuple[str, Value]]:
    """Yield the specs that a field holds, with their keys."""
    if isinstance(value, Value):
        yield "", value
    elif isinstance(value, Mapping):
        yield from ((str(key), part) for key, part in value.items() if isinstance(part, Value))
    elif isinstance(value, tuple):
        yield from ((str(i), part) for i, part in enumerate(value) if isinstance(part, Value))


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_text, value))}]" if value else ""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e9 else f"{value:g}"
    return str(value)


def _ranges(numbers: Sequence[int]) -> str:
    """Return ``0-4, 6-10`` for whole numbers, cut where there are many ranges."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    shown = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs[:_RANGES]]
    return ", ".join(shown) + (f", ... ({len(numbers)} in all)" if len(runs) > _RANGES else "")
