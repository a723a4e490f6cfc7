"""The matrices of a model by kind, and what their total is by one convention of counting or another."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from torch import nn

from orrery.models.distinct_blocks import distinct_blocks
from orrery.models.model import ModelSpec
from orrery.tuning import shapes_of

Sort = Literal["weight", "vector", "position", "unembedding"]
"""What conventions ask of a tensor: a matrix, biases and norms, a table of positions, the head's matrix."""

_BLOCK = re.compile(r"(?:^|\.)blocks\.(\d+)\.")
_SILENT = re.compile(r"\.(?:branch|linear)(?=\.)|(?<=.)\.weight$|\.\d+(?=\.|$)")


@dataclass(frozen=True)
class Matrix:
    """One tensor of weights, or several alike.

    Attributes:
        path: its name; ``*`` stands for the numbers of several alike inside one block (experts).
        kind: what it is, whatever the block: ``attention.q``; the encoder's begin with ``encoder.``.
        sort: what conventions ask of it.
        layer: the number of its block; nothing where it stands in none.
        shape: of one.
        heads: into how many it is cut; 1 where it is whole.
        axis: along which it is cut.
        copies: how many there are.
        tied: whether its storage is that of another tensor, so that it adds nothing.
    """

    path: str
    kind: str
    sort: Sort
    layer: int | None
    shape: tuple[int, ...]
    heads: int
    axis: int
    copies: int
    tied: bool

    @property
    def numel(self) -> int:
        """The numbers of one of them."""
        product = 1
        for size in self.shape:
            product *= size
        return product


@dataclass(frozen=True)
class Convention:
    """What is counted.

    Attributes:
        tied: a head that uses the embedding table adds nothing; else it counts as a matrix of its own.
        vectors: biases and norms count.
        positions: tables of positions count.
        output_per_head: the output matrix of attention is one matrix a head, as q, k and v are, instead of one a layer.
    """

    tied: bool = True
    vectors: bool = True
    positions: bool = True
    output_per_head: bool = False


LECTURE = Convention(tied=False, vectors=False, positions=False)
"""By which GPT-3 has 175,181,291,520 numbers in 27,938 matrices."""


def matrices(model: nn.Module, copies: Callable[[str], int] = lambda name: 1) -> list[Matrix]:
    """Return the tensors of a model, those that differ in numbers inside their block alone together.

    Args:
        model: the model.
        copies: how many blocks a tensor's block stands for.
    """
    own, shapes = dict(model.named_parameters()), shapes_of(model)
    by_path: dict[str, Matrix] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        block = _BLOCK.search(name)
        head = name if block is None else name[: block.end()]
        path = head + re.sub(r"(?<=\.)\d+(?=\.)", "*", name[len(head) :]) if block else name
        shape, tied = shapes[id(parameter)], name not in own
        if path in by_path:
            one = by_path[path]
            more = 0 if tied else copies(name)  # what turns of one block share is there once
            by_path[path] = Matrix(**{**vars(one), "copies": one.copies + more})
            continue
        heads, axis = _heads(model, name, shape)
        layer = None if block is None else int(block[1])
        kind = _kind(name)
        by_path[path] = Matrix(path, kind, _sort(name, shape), layer, shape, heads, axis, copies(name), tied)
    return list(by_path.values())


def matrices_of(spec: ModelSpec) -> list[Matrix]:
    """Return the matrices of an architecture, without a number in memory; equal blocks are one with its copies."""
    blocks = distinct_blocks(spec)
    return matrices(blocks.model, blocks.copies)


def total(listed: Iterable[Matrix], convention: Convention) -> tuple[int, int]:
    """Return how many numbers and how many matrices there are by a convention; a vector is no matrix."""
    numbers = count = 0
    for one in listed:
        if not _counts(one, convention):
            continue
        numbers += one.numel * one.copies
        cut = one.heads if one.axis == 0 or convention.output_per_head else 1
        count += 0 if one.sort == "vector" else one.copies * cut
    return numbers, count


def _counts(one: Matrix, convention: Convention) -> bool:
    if one.tied and (convention.tied or one.sort != "unembedding"):
        return False
    return {"vector": convention.vectors, "position": convention.positions}.get(one.sort, True)


def _sort(name: str, shape: tuple[int, ...]) -> Sort:
    if len(shape) < 2:
        return "vector"
    if ".positions." in f".{name}":
        return "position"
    return "unembedding" if name.endswith("vocabulary.weight") else "weight"


def _kind(name: str) -> str:
    """Return what a tensor is, without the number of its block and the parts that say nothing."""
    stack, _, rest = name.rpartition("blocks.") if "blocks." in name else ("", "", name)
    encoder = "encoder." if stack.startswith("reader") or (not stack and name.startswith("reader")) else ""
    rest = rest.removeprefix("reader.").removeprefix("stack.")
    return encoder + _SILENT.sub("", f".{rest}").lstrip(".")


def _heads(model: nn.Module, name: str, shape: tuple[int, ...]) -> tuple[int, int]:
    """Return into how many heads a projection of attention is cut, and along which axis."""
    path, _, last = name.rpartition(".")
    path, _, part = path.rpartition(".")
    if last != "weight" or part not in ("q", "k", "v", "out") or len(shape) != 2:
        return 1, 0
    attention, axis = model.get_submodule(path), 1 if part == "out" else 0
    width = getattr(attention, "head_width", None)
    heads = getattr(attention, "heads", 1) if width is None else shape[axis] // width
    return (heads, axis) if shape[axis] % heads == 0 else (1, axis)
