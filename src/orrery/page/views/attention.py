"""Attention: every head small, the patterns of one block, and the numbers behind one row of one head."""

from collections.abc import Iterable
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from orrery.errors import UsageError
from orrery.inspection.checks import Check, bound, error
from orrery.inspection.research.edge_effects import edge_effects
from orrery.inspection.row_sums import check_rows, check_sums
from orrery.inspection.thumbnails import SIDE, Thumbnails
from orrery.page.views._difference import minus
from orrery.page.views._inside import AttentionSite, Inside
from orrery.page.views._payload import Payload
from orrery.page.views._reconfigured import Reconfigured
from orrery.page.views._view import View, ViewSubject, register
from orrery.schema.section import Section

TILE = 256
"""Rows and columns of a tile of a long text, and of its overview."""
LONG = 2048
"""Tokens of a text whose patterns are shown whole."""


class AttentionSettings(Section):
    """What can be asked.

    Attributes:
        site: which attention, by its number in the session.
        layer: a block: the patterns of all of its heads; left out, every head of every block, small.
        head: with a query: the numbers behind one row.
        query: the token that looks.
        row: of a long text, the first query of a tile.
        column: the first key of it.
        causal: of such a row also what cutting each of its heaviest edges does to the next token.
        factor: of a layer and a head: the pattern with the scale of the pass multiplied by this.
        base: the pattern with rotary positions of this base.
    """

    site: int = 0
    layer: int | None = None
    head: int | None = None
    query: int | None = None
    row: int | None = None
    column: int | None = None
    causal: bool | None = None
    factor: float | None = Field(default=None, allow_inf_nan=False)
    base: float | None = Field(default=None, gt=1, allow_inf_nan=False)


@register
class Attention(View):
    """Which token looks at which: ``pattern = softmax(scores)``, row by row."""

    kind: ClassVar[str] = "attention"
    order: ClassVar[int] = 40
    compares: ClassVar[bool] = True
    Settings: ClassVar[type[Section]] = AttentionSettings

    def fits(self, subject: ViewSubject) -> bool:
        """Say whether the model has attention."""
        return subject.inside is not None and bool(subject.inside.sites)

    def saved(self, subject: ViewSubject) -> Iterable[Section]:
        """Return all heads small, and the patterns of each block."""
        for number, site in enumerate(subject.seen.sites):
            yield AttentionSettings(site=number)
            yield from (AttentionSettings(site=number, layer=layer) for layer in site.layers)

    def payload(self, subject: ViewSubject, settings: AttentionSettings) -> Payload:
        """Return small pictures, the patterns of one block, or one row with scores and values."""
        inside, site = subject.seen, site_of(subject.seen, settings.site)
        facts = {"site": settings.site, "layer": settings.layer}
        if settings.layer is None:
            return _small(inside, site, facts)
        check_layer(site, settings.layer)
        if settings.factor is not None or settings.base is not None:
            return _reconfigured(inside, site, settings, facts)
        if settings.head is not None and settings.query is not None:
            return _row(inside, site, settings)
        if is_long(inside, site, settings.layer):
            return _tile(inside, site, settings, facts)
        pattern_HLS = inside[site.key(settings.layer, "pattern")][0]
        tensors = {"pattern": pattern_HLS.half(), "lengths": lengths(inside, site, settings.layer)}
        checks = [rows_of(inside, site, settings.layer), *_mixing(inside, site, settings.layer, pattern_HLS)]
        return Payload(facts, tensors, checks)

    def difference(self, edited: ViewSubject, clean: ViewSubject, settings: AttentionSettings) -> Payload:
        """Return patterns edited less clean; of the small pictures the greatest change of each cell.

        Of a long text the small pictures show how the largest weight of each cell changes: no pattern is whole.
        """
        settings = settings.model_copy(update={"causal": None})
        payload = super().difference(edited, clean, settings)
        site = site_of(edited.seen, settings.site)
        if settings.layer is None:
            changes = torch.stack([_small_change(edited, clean, site, layer) for layer in site.layers])
            return replace(payload, tensors={"pictures": changes.half()})
        if "overview" in payload.tensors:
            key, head = site.key(settings.layer, "pattern"), payload.facts["head"]
            tensors = {
                "tile": payload.tensors["tile"],
                "overview": _overview_change(edited.seen, clean.seen, key, head),
            }
            return replace(payload, tensors=tensors)
        if "pattern" in payload.tensors:
            pattern_HLS = _pattern_change(edited, clean, site, settings.layer)
            return replace(payload, tensors={**payload.tensors, "pattern": pattern_HLS.half()})
        return payload


def _reconfigured(inside: Inside, site: AttentionSite, settings: AttentionSettings, facts: dict[str, Any]) -> Payload:
    """Return the pattern of one head with another scale or base, from the queries and keys of this pass."""
    assert settings.layer is not None
    head, heads = settings.head, inside.shapes[site.key(settings.layer, "pattern")][1]
    if head is None or not 0 <= head < heads:
        raise UsageError(f"there is no head {head} whose scale could be another", f"{heads} heads, from 0")
    factor = 1.0 if settings.factor is None else settings.factor
    other = Reconfigured(inside, site.key(settings.layer, "")[:-1], factor, settings.base)
    return Payload({**facts, "head": head}, {"pattern": other.pattern(head).half()})


def values_of(inside: Inside, site: AttentionSite, layer: int) -> Float[Tensor, "H S E"]:
    """Return the values that each head mixes; heads that share them each have a copy."""
    v_KSE = inside[site.key(layer, "v")][0].float()
    heads: int = inside.shapes[site.key(layer, "pattern")][1]
    return v_KSE.repeat_interleave(heads // v_KSE.shape[0], dim=0)


def lengths(inside: Inside, site: AttentionSite, layer: int) -> Float[Tensor, "H S"]:
    """Return the length of every value, ``|v|``, by head: what a weight is worth (Kobayashi et al. 2020)."""
    return values_of(inside, site, layer).norm(dim=-1)


def site_of(inside: Inside, number: int) -> AttentionSite:
    """Return an attention by its number.

    Raises:
        UsageError: there is none.
    """
    if not 0 <= number < len(inside.sites):
        known = ", ".join(f"{n}: {site.path}" for n, site in enumerate(inside.sites))
        raise UsageError(f"this model has no attention {number}", f"there is {known}")
    return inside.sites[number]


def rows_of(inside: Inside, site: AttentionSite, *layers: int) -> Check:
    """Return the check that the rows of these blocks' patterns sum to one."""
    return check_rows(inside.model, inside, *(site.path.replace("*", str(layer)) for layer in layers))


def check_layer(site: AttentionSite, layer: int) -> None:
    """Refuse a block that lacks this attention.

    Raises:
        UsageError: it does.
    """
    if layer not in site.layers:
        raise UsageError(f"block {layer} has no {site.path}", f"blocks: {', '.join(map(str, site.layers))}")


def is_long(inside: Inside, site: AttentionSite, layer: int) -> bool:
    """Say whether a pattern is shown by tiles and an overview."""
    L, S = inside.shapes[site.key(layer, "pattern")][2:]
    return L * S > LONG**2


def _small(inside: Inside, site: AttentionSite, facts: dict[str, Any]) -> Payload:
    keys = [site.key(layer, "pattern") for layer in site.layers]
    pictures = torch.stack([_picture(inside.thumbnails.pictures[key][0]) for key in keys])
    off, dtype = max(inside.thumbnails.off[key] for key in keys), inside.thumbnails.pictures[keys[0]].dtype
    check = check_sums(off, dtype)
    if not check.passed:  # rows that see nothing, or that share with a sink
        check = rows_of(inside, site, *site.layers)
    return Payload({**facts, "layers": site.layers}, {"pictures": pictures}, [check])


def _picture(largest_HLS: Float[Tensor, "H L S"]) -> Tensor:
    """Return small patterns as bytes: square roots, so that small weights are seen."""
    return (largest_HLS.float().sqrt() * 255).round().to(torch.uint8)


def _tile(inside: Inside, site: AttentionSite, settings: AttentionSettings, facts: dict[str, Any]) -> Payload:
    """Return one head of a long text: the largest weight of each cell of it, and a tile of its weights themselves."""
    assert settings.layer is not None
    key, head = site.key(settings.layer, "pattern"), settings.head or 0
    H, L, S = inside.shapes[key][1:]
    if not 0 <= head < H:
        raise UsageError(f"there is no head {head}", f"{H} heads")
    row, column = (
        min(max(0, n or 0), size - 1) // TILE * TILE for n, size in ((settings.row, L), (settings.column, S))
    )
    rows_LS = inside.rows(key, head, slice(row, min(row + TILE, L)))
    facts_of_tile = {"long": True, "head": head, "row": row, "column": column, "queries": L, "keys": S}
    tensors = {"tile": rows_LS[:, column : column + TILE].half(), "overview": _overview(inside, key, head)}
    check = check_sums(float((rows_LS.sum(-1, dtype=torch.float64) - 1).abs().max()), rows_LS.dtype)
    return Payload({**facts, **facts_of_tile}, tensors, [check])


def _overview(inside: Inside, key: str, head: int) -> Float[Tensor, "rows columns"]:
    """Return the largest weight of each cell of a head, computed a band of queries at a time."""
    held = inside.overviews
    if (key, head) not in held:
        L = inside.shapes[key][2]
        small = Thumbnails(side=TILE)
        for start in range(0, L, TILE):
            band = slice(start, min(start + TILE, L))
            small(key, inside.rows(key, head, band)[None, None], (slice(None), slice(0, 1), band), (1, 1, L))
        held[key, head] = small.pictures[key][0, 0].half()
    return held[key, head]


def _small_change(
    edited: ViewSubject, clean: ViewSubject, site: AttentionSite, layer: int
) -> Float[Tensor, "H rows columns"]:
    if not is_long(edited.seen, site, layer):
        return _changed(_pattern_change(edited, clean, site, layer))
    after, before = (one.seen.thumbnails.pictures[site.key(layer, "pattern")][0] for one in (edited, clean))
    return minus(after, before)


def _overview_change(edited: Inside, clean: Inside, key: str, head: int) -> Float[Tensor, "rows columns"]:
    """Return of each cell of a head the change of greatest size, with its sign, a band of queries at a time."""
    L = edited.shapes[key][2]
    up, down = Thumbnails(side=TILE), Thumbnails(side=TILE)
    for start in range(0, L, TILE):
        band = slice(start, min(start + TILE, L))
        change = minus(edited.rows(key, head, band), clean.rows(key, head, band))[None, None]
        for small, part in ((up, change), (down, -change)):
            small(key, part.clamp(min=0), (slice(None), slice(0, 1), band), (1, 1, L))
    more, less = up.pictures[key][0, 0], down.pictures[key][0, 0]
    return torch.where(more >= less, more, -less).half()


def _pattern_change(edited: ViewSubject, clean: ViewSubject, site: AttentionSite, layer: int) -> Float[Tensor, "H L S"]:
    key = site.key(layer, "pattern")
    return minus(edited.seen[key][0], clean.seen[key][0])


def _changed(change_HLS: Float[Tensor, "H L S"]) -> Float[Tensor, "H rows columns"]:
    """Return changes of at most ``SIDE`` rows and columns: of each cell the one of greatest size, with its sign."""
    L, S = change_HLS.shape[1:]
    if max(L, S) <= SIDE:
        return change_HLS
    size = (min(L, SIDE), min(S, SIDE))
    up, down = F.adaptive_max_pool2d(change_HLS, size), -F.adaptive_max_pool2d(-change_HLS, size)
    return torch.where(up >= -down, up, down)


def _row(inside: Inside, site: AttentionSite, settings: AttentionSettings) -> Payload:
    assert settings.layer is not None and settings.head is not None and settings.query is not None  # noqa: PT018
    H, L = inside.shapes[site.key(settings.layer, "pattern")][1:3]
    if not (0 <= settings.head < H and 0 <= settings.query < L):
        raise UsageError(f"there is no head {settings.head} with a query {settings.query}", f"{H} heads, {L} queries")
    one = slice(settings.query, settings.query + 1)
    pattern_1S = inside.rows(site.key(settings.layer, "pattern"), settings.head, one)
    weight_S = pattern_1S[0].float()
    v_SE = values_of(inside, site, settings.layer)[settings.head]
    tensors = {"weight": weight_S, "value": weight_S * v_SE.norm(dim=-1)}
    scores = site.key(settings.layer, "scores")
    if scores in inside:  # an attention inside a recurrence shows no scores
        tensors["score"] = inside.rows(scores, settings.head, one)[0].float()
    if settings.causal:
        tensors["effect"] = edge_effects(inside.edits, scores, settings.head, settings.query, weight_S)
    checks = _mixing(inside, site, settings.layer, pattern_1S[None], one, slice(settings.head, settings.head + 1))
    return Payload({"head": settings.head, "query": settings.query, "layer": settings.layer}, tensors, checks)


def _mixing(
    inside: Inside,
    site: AttentionSite,
    layer: int,
    pattern_HLS: Float[Tensor, "H L S"],
    queries: slice = slice(None),
    heads: slice = slice(None),
) -> list[Check]:
    """Return the check that weights times values are what the kernel gave; none where an edit took its place."""
    key = site.key(layer, "mixed")
    if any(fnmatchcase(key, edit.at) for edit in inside.edits.edits):
        return []
    mixed_HLE = inside[key][0, heads, queries].float()
    off = error(pattern_HLS.float() @ values_of(inside, site, layer)[heads], mixed_HLE)
    return [Check("weights times values are the kernel's output", off, bound(pattern_HLS.dtype))]
