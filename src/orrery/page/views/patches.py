"""The picture as the model reads it, cut into its patches."""

import base64
from typing import Any, ClassVar

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from orrery.data.pictures.png import write_png
from orrery.inspection.checks import Check
from orrery.language_model.pictures import DATA, preparation_of, reads_pictures
from orrery.nn.patches import PatchEmbedding
from orrery.page.views._inside import Inside
from orrery.page.views._payload import Payload
from orrery.page.views._view import View, ViewSubject, register
from orrery.schema.section import Section


class PatchesSettings(Section):
    """Nothing can be asked."""


@register
class PatchesView(View):
    """The picture behind resizing, cropping and scaling, and the place in the row that each patch has."""

    kind: ClassVar[str] = "patches"
    order: ClassVar[int] = 6
    Settings: ClassVar[type[Section]] = PatchesSettings

    def fits(self, subject: ViewSubject) -> bool:
        """Say whether a picture was read behind one token."""
        embed = _embedding(subject)
        if subject.inside is None or embed is None:
            return False
        rows, columns = _grid(embed)
        return _vectors(subject.inside).shape[0] == 1 + rows * columns

    def payload(self, subject: ViewSubject, asked: Any) -> Payload:
        """Return the picture as a PNG file, and the rows and columns of patches."""
        inside, embed = subject.seen, _embedding(subject)
        assert embed is not None
        rows, columns = _grid(embed)
        levels = _shown(subject, _read(inside))
        facts = {
            "stream": "source" if inside.first.source_ids is not None else "tokens",
            "patches": [rows, columns],
            "patch": list(embed.project.kernel_size),
            "pixels": list(levels.shape[1:]),
            "picture": DATA + base64.b64encode(write_png(levels)).decode(),
        }
        return Payload(facts, checks=[_projected(inside, embed)])


def _embedding(subject: ViewSubject) -> PatchEmbedding | None:
    model: Any = subject.lm.model
    embed = getattr(getattr(model, "reader", model), "embed", None)
    return embed if isinstance(embed, PatchEmbedding) else None


def _grid(embed: PatchEmbedding) -> tuple[int, int]:
    return embed.input.grid(embed.input.rows, embed.input.columns)


def _vectors(inside: Inside) -> Float[Tensor, "L D"]:
    """Return the vectors that the side that sees begins with, the class token's first."""
    return inside["looked_up" if inside.first.source_ids is None else "encoder.looked_up"][0]


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


def _projected(inside: Inside, embed: PatchEmbedding) -> Check:
    """Say how far each patch times the projection is from the vector that the model begins with."""
    (down, across), (rows, columns), image = embed.project.kernel_size, _grid(embed), _read(inside).double().cpu()
    whole = image[:, : rows * down, : columns * across].reshape(-1, rows, down, columns, across)
    patches = whole.permute(1, 3, 0, 2, 4).reshape(rows * columns, -1)
    assert embed.project.bias is not None
    weight, bias = (one.detach().double().cpu() for one in (embed.project.weight, embed.project.bias))
    found, expected = _vectors(inside), patches @ weight.flatten(1).T + bias
    off = (found[1:].double().cpu() - expected).abs().max() / expected.abs().max().clamp(min=1e-9)
    bound = 100 * torch.finfo(found.dtype).eps
    return Check("each patch times the projection is the vector that the model begins with", float(off), bound)
