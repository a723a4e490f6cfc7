"""A model as a person reads it: the tree of its parts with their sizes and parameters, of bounded length."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torch import nn

LINES = 40
"""The most lines of a tree; where it has more, the deepest parts are left out."""
_WIDTH = 120


@dataclass(frozen=True)
class _Part:
    """One module, or several equal ones after each other."""

    name: str
    what: str
    parameters: int
    copies: int
    parts: Sequence["_Part"]

    @property
    def line(self) -> str:
        """The part on a line, without what is inside it."""
        many = f"{self.copies} x " if self.copies > 1 else ""
        size = f"  [{many}{self.parameters:,}]" if self.parameters else ""
        return f"{self.name}: {self.what}{size}"

    @property
    def depth(self) -> int:
        """How many levels there are below it."""
        return max((1 + part.depth for part in self.parts), default=0)


def shown(model: nn.Module, facts: str, lines: int = LINES) -> str:
    """Return a model as a tree: a line for each part, with its sizes and, in brackets, its parameters.

    Equal neighbours, such as blocks, are one part; what has neither parameters nor parts is left out.

    Args:
        model: any module.
        facts: what else is said of it in the first line.
        lines: the most that there may be.
    """
    parts = list(_parts(model))
    for levels in range(max((1 + part.depth for part in parts), default=0), 0, -1):
        below = [line[:_WIDTH] for part in parts for line in _lines(part, 1, levels)]
        if len(below) < lines:
            break
    else:
        below = [line[:_WIDTH] for part in parts[: lines - 2] for line in _lines(part, 1, 1)]
        below += [f"  and {len(parts) - len(below)} more"] * (len(parts) > len(below))
    total = sum(parameter.numel() for parameter in model.parameters())
    return "\n".join([f"{type(model).__name__}: {total:,} parameters, {facts}"[:_WIDTH], *below])


def _parts(module: nn.Module) -> Iterator[_Part]:
    """Yield what is inside a module, equal neighbours of a list as one."""
    parts: list[_Part] = []
    for name, child in module.named_children():
        part = _Part(name, _what(child), sum(p.numel() for p in child.parameters()), 1, list(_parts(child)))
        if not part.parameters and not part.parts:
            continue
        if isinstance(module, nn.ModuleList) and parts and _same(parts[-1], part):
            first = parts.pop()
            part = _Part(
                f"{first.name.partition('-')[0]}-{name}", part.what, part.parameters, first.copies + 1, part.parts
            )
        parts.append(part)
    yield from parts


def _same(one: _Part, other: _Part) -> bool:
    return (one.what, one.parameters, one.parts) == (other.what, other.parameters, other.parts)


def _what(module: nn.Module) -> str:
    """Return a module's class, with its sizes where it is a matrix."""
    name, weight = type(module).__name__, getattr(module, "weight", None)
    if isinstance(module, nn.Linear):
        return f"{name}({module.in_features} -> {module.out_features}{', bias' * (module.bias is not None)})"
    if isinstance(weight, nn.Parameter):
        return f"{name}({' x '.join(map(str, weight.shape))})"
    return name


def _lines(part: _Part, depth: int, levels: int) -> Iterator[str]:
    """Yield the lines of a part and of what is inside it, ``levels`` deep."""
    if levels:
        yield f"{'  ' * depth}{part.line}"
        for inner in part.parts:
            yield from _lines(inner, depth + 1, levels - 1)
