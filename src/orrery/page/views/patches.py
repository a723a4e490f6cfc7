"""The picture as the model reads it, cut into its patches."""

import base64
from typing import Any, ClassVar

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from orrery.data.pictures.addresses import BEGINNING
from orrery.data.pictures.png import write_png
from orrery.inspection.checks import Check
from orrery.language_model.pictures import preparation_of, reads_pictures
from orrery.nn.patches import PatchEmbedding, PlainPatches
from orrery.page.views._inside import Inside
from orrery.page.views._payload import Payload
from orrery.page.views._view import View, ViewSubject, register


@register
class PatchesView(View):
    """The picture behind resizing, cropping and scaling, and the place in the row that each patch has."""

    kind: ClassVar[str] = "patches"
    order: ClassVar[int] = 6

    def fits(self, subject: ViewSubject) -> bool:
        """Say whether a picture was read, alone or behind one token."""
        embed = _embedding(subject)
        if subject.inside is None or embed is None:
            return False
        rows, columns = _grid(subject.inside, embed)
        return _vectors(subject.inside).shape[0] == _before(embed) + rows * columns

    def payload(self, subject: ViewSubject, asked: Any) -> Payload:
        """Return the picture as a PNG file, and the rows and columns of patches."""
        inside, embed = subject.seen, _embedding(subject)
        assert embed is not None
        rows, columns = _grid(inside, embed)
        levels = _shown(subject, _read(inside))
        facts = {
            "stream": "source" if inside.first.source_ids is not None else "tokens",
            "patches": [rows, columns],
            "before": _before(embed),
            "patch": list(embed.project.kernel_size),
            "pixels": list(levels.shape[1:]),
            "picture": BEGINNING + base64.b64encode(write_png(levels)).decode(),
        }
        return Payload(facts, checks=[_projected(inside, embed)])


Embedding = PatchEmbedding | PlainPatches


def _embedding(subject: ViewSubject) -> Embedding | None:
    """Return what cuts the patches, on whichever side of the model it stands."""
    return next((part for part in subject.lm.model.modules() if isinstance(part, Embedding)), None)


def _before(embed: Embedding) -> int:
    """Return how many tokens stand before the patches: that of the class, where there is one."""
    return int(isinstance(embed, PatchEmbedding))


def _grid(inside: Inside, embed: Embedding) -> tuple[int, int]:
    """Return the rows and columns of patches of the picture that was read, which may have a size of its own."""
    return embed.input.grid_of(_read(inside)[None])


def _vectors(inside: Inside) -> Float[Tensor, "L D"]:
    """Return the vectors that the side that sees begins with; that of a class token is the first."""
    return inside["encoder.looked_up" if "encoder.looked_up" in inside else "looked_up"][0]


def _read(inside: Inside) -> Float[Tensor, "channels rows columns"]:
    """Return the picture that was read."""
    given = inside.first.source_ids
    return (inside.first.ids if given is None else given)[0]


def _shown(subject: ViewSubject, image: Float[Tensor, "channels rows columns"]) -> UInt8[Tensor, "C rows columns"]:
    """Return a picture with its mean and its scale taken back: its colours, or its first channel where it has none."""
    read = reads_pictures(subject.lm.stored)
    assert read is not None
    preparation, found = preparation_of(subject.lm.stored, read), image.double().cpu()
    if preparation.mean is not None and preparation.std is not None:
        mean, std = (torch.tensor(numbers)[:, None, None] for numbers in (preparation.mean, preparation.std))
        found = found * std + mean
    levels = found if preparation.factor is None else found / preparation.factor
    return levels.clamp(0, 255).round().to(torch.uint8)[: 3 if len(levels) > 2 else 1]


def _projected(inside: Inside, embed: Embedding) -> Check:
    """Say how far each patch times the projection is from the vector that the model begins with."""
    (down, across), (rows, columns), image = (
        embed.project.kernel_size,
        _grid(inside, embed),
        _read(inside).double().cpu(),
    )
    whole = image[:, : rows * down, : columns * across].reshape(-1, rows, down, columns, across)
    patches = whole.permute(1, 3, 0, 2, 4).reshape(rows * columns, -1)
    weight, bias = embed.project.weight.detach().double().cpu(), embed.project.bias
    found, expected = _vectors(inside), patches @ weight.flatten(1).T
    expected = expected if bias is None else expected + bias.detach().double().cpu()
    off = (found[_before(embed) :].double().cpu() - expected).abs().max() / expected.abs().max().clamp(min=1e-9)
    bound = 100 * torch.finfo(found.dtype).eps
    return Check("each patch times the projection is the vector that the model begins with", float(off), bound)
