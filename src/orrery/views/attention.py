"""Attention: every head small, the patterns of one block, and the numbers behind one row of one head."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from orrery.errors import UsageError
from orrery.inspection.checks import Check, bound
from orrery.inspection.research.edge_effects import edge_effects
from orrery.inspection.row_sums import check_rows
from orrery.schema.section import Section
from orrery.views._difference import minus
from orrery.views._inside import Inside, Site
from orrery.views._payload import Payload
from orrery.views._view import Subject, View, register

SMALL = 64
"""Rows and columns of a small picture; a larger pattern shows the largest weight of each of its cells."""


class AttentionSettings(Section):
    """What can be asked.

    Attributes:
        site: which attention, by its number in the session.
        layer: a block: the patterns of all of its heads; left out, every head of every block, small.
        head: with a query: the numbers behind one row.
        query: the token that looks.
        causal: of such a row also what cutting each of its heaviest edges does to the next token.
    """

    site: int = 0
    layer: int | None = None
    head: int | None = None
    query: int | None = None
    causal: bool | None = None


@register
class Attention(View):
    """Which token looks at which: ``pattern = softmax(scores)``, row by row."""

    kind: ClassVar[str] = "attention"
    order: ClassVar[int] = 40
    compares: ClassVar[bool] = True
    Settings: ClassVar[type[Section]] = AttentionSettings

    def fits(self, subject: Subject) -> bool:
        """Say whether the model has attention."""
        return subject.inside is not None and bool(subject.inside.sites)

    def saved(self, subject: Subject) -> Iterable[Section]:
        """Return all heads small, and the patterns of each block."""
        for number, site in enumerate(subject.seen.sites):
            yield AttentionSettings(site=number)
            yield from (AttentionSettings(site=number, layer=layer) for layer in site.layers)

    def payload(self, subject: Subject, asked: AttentionSettings) -> Payload:
        """Return small pictures, the patterns of one block, or one row with scores and values."""
        inside, site = subject.seen, site_of(subject.seen, asked.site)
        facts = {"site": asked.site, "layer": asked.layer}
        if asked.layer is None:
            return _small(inside, site, facts)
        check_layer(site, asked.layer)
        pattern_HLS = inside[site.key(asked.layer, "pattern")][0]
        if asked.head is None or asked.query is None:
            tensors = {"pattern": pattern_HLS.half(), "lengths": lengths(inside, site, asked.layer)}
            return Payload(facts, tensors, [rows_of(inside, site, asked.layer)])
        return _row(inside, site, asked, pattern_HLS)

    def difference(self, edited: Subject, clean: Subject, asked: AttentionSettings) -> Payload:
        """Return patterns edited less clean; of the small pictures the greatest change of each cell."""
        asked = asked.model_copy(update={"causal": None})
        found = super().difference(edited, clean, asked)
        site = site_of(edited.seen, asked.site)
        if asked.layer is None:
            changes = torch.stack([_changed(_pattern_change(edited, clean, site, layer)) for layer in site.layers])
            return replace(found, tensors={"pictures": changes.half()})
        if "pattern" in found.tensors:
            pattern_HLS = _pattern_change(edited, clean, site, asked.layer)
            return replace(found, tensors={**found.tensors, "pattern": pattern_HLS.half()})
        return found


def values_of(inside: Inside, site: Site, layer: int) -> Float[Tensor, "H S E"]:
    """Return the values that each head mixes; heads that share them each have a copy."""
    v_KSE = inside[site.key(layer, "v")][0].float()
    heads: int = inside.shapes[site.key(layer, "pattern")][1]
    return v_KSE.repeat_interleave(heads // v_KSE.shape[0], dim=0)


def lengths(inside: Inside, site: Site, layer: int) -> Float[Tensor, "H S"]:
    """Return the length of every value, ``|v|``, by head: what a weight is worth (Kobayashi et al. 2020)."""
    return values_of(inside, site, layer).norm(dim=-1)


def site_of(inside: Inside, number: int) -> Site:
    """Return an attention by its number.

    Raises:
        UsageError: there is none.
    """
    if not 0 <= number < len(inside.sites):
        known = ", ".join(f"{n}: {site.path}" for n, site in enumerate(inside.sites))
        raise UsageError(f"this model has no attention {number}", f"there is {known}")
    return inside.sites[number]


def rows_of(inside: Inside, site: Site, *layers: int) -> Check:
    """Return the check that the rows of these blocks' patterns sum to one."""
    return check_rows(inside.lm.model, inside, *(site.path.replace("*", str(layer)) for layer in layers))


def check_layer(site: Site, layer: int) -> None:
    """Refuse a block that lacks this attention.

    Raises:
        UsageError: it does.
    """
    if layer not in site.layers:
        raise UsageError(f"block {layer} has no {site.path}", f"blocks: {', '.join(map(str, site.layers))}")


def _small(inside: Inside, site: Site, facts: dict[str, Any]) -> Payload:
    patterns = [inside[site.key(layer, "pattern")][0] for layer in site.layers]
    pictures = torch.stack([_picture(pattern_HLS) for pattern_HLS in patterns])
    return Payload({**facts, "layers": site.layers}, {"pictures": pictures}, [rows_of(inside, site, *site.layers)])


def _picture(pattern_HLS: Float[Tensor, "H L S"]) -> Tensor:
    """Return patterns of at most ``SMALL`` rows and columns, their square roots as bytes: small weights are seen."""
    L, S = pattern_HLS.shape[1:]
    if max(L, S) > SMALL:
        pattern_HLS = F.adaptive_max_pool2d(pattern_HLS.float(), (min(L, SMALL), min(S, SMALL)))
    return (pattern_HLS.float().sqrt() * 255).round().to(torch.uint8)


def _pattern_change(edited: Subject, clean: Subject, site: Site, layer: int) -> Float[Tensor, "H L S"]:
    key = site.key(layer, "pattern")
    return minus(edited.seen[key][0], clean.seen[key][0])


def _changed(change_HLS: Float[Tensor, "H L S"]) -> Float[Tensor, "H rows columns"]:
    """Return changes of at most ``SMALL`` rows and columns: of each cell the one of greatest size, with its sign."""
    L, S = change_HLS.shape[1:]
    if max(L, S) <= SMALL:
        return change_HLS
    size = (min(L, SMALL), min(S, SMALL))
    up, down = F.adaptive_max_pool2d(change_HLS, size), -F.adaptive_max_pool2d(-change_HLS, size)
    return torch.where(up >= -down, up, down)


def _row(inside: Inside, site: Site, asked: AttentionSettings, pattern_HLS: Float[Tensor, "H L S"]) -> Payload:
    assert asked.layer is not None and asked.head is not None and asked.query is not None  # noqa: PT018
    H, L, _ = pattern_HLS.shape
    if not (0 <= asked.head < H and 0 <= asked.query < L):
        raise UsageError(f"there is no head {asked.head} with a query {asked.query}", f"{H} heads, {L} queries")
    weight_S = pattern_HLS[asked.head, asked.query].float()
    v_SE = values_of(inside, site, asked.layer)[asked.head]
    mixed_E = inside[site.key(asked.layer, "mixed")][0, asked.head, asked.query].float()
    off = float((weight_S @ v_SE - mixed_E).abs().max() / mixed_E.abs().max().clamp(min=1))
    tensors = {"weight": weight_S, "value": weight_S * v_SE.norm(dim=-1)}
    scores = site.key(asked.layer, "scores")
    if scores in inside:  # an attention inside a recurrence shows no scores
        tensors["score"] = inside[scores][0, asked.head, asked.query].float()
    if asked.causal:
        tensors["effect"] = edge_effects(inside.edits, scores, asked.head, asked.query, weight_S)
    check = Check("weights times values are the kernel's output", off, bound(pattern_HLS.dtype))
    return Payload({"head": asked.head, "query": asked.query, "layer": asked.layer}, tensors, [check])
