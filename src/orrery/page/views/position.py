"""Positions: what tells the model where a token stands, and what that does to scores."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from orrery.errors import UsageError
from orrery.inspection.checks import Check, bound
from orrery.inspection.explain.attention import Heads, LatentKeys, Scores
from orrery.inspection.explain.node import Numbers
from orrery.models.model import Model
from orrery.nn.masks import TokenPositions
from orrery.nn.positions.alibi import Alibi, Biased, RoundedAlibi
from orrery.nn.positions.grid import GridPositions
from orrery.nn.positions.learned import LearnedPositions
from orrery.nn.positions.onehot import OneHotPositions
from orrery.nn.positions.relative import RelativeBias
from orrery.nn.positions.relative_embeddings import Related
from orrery.nn.positions.rotary import Rotary
from orrery.nn.positions.scheme import Added, PositionCall, PositionScheme
from orrery.nn.positions.sinusoidal import SinusoidalPositions, rates
from orrery.nn.positions.sinusoidal_table import SinusoidalTable
from orrery.page.views._inside import Inside
from orrery.page.views._payload import Payload
from orrery.page.views._view import View, ViewSubject, register
from orrery.page.views.embedding import entry_check
from orrery.schema.section import Section

PLACES = 128
"""Places that are shown, where the scheme has as many."""


class PositionSettings(Section):
    """What can be asked.

    Attributes:
        scheme: which of the model's positions, by its number.
        layer: of rotary positions: the block whose query and key are turned.
        head: the head.
        query: the token that looks.
        key: the token that is looked at.
    """

    scheme: int = 0
    layer: int = 0
    head: int = 0
    query: int = 0
    key: int = 0


@dataclass(frozen=True)
class Scheme:
    """One position scheme of a model: its side, its name there, and its module."""

    prefix: str
    name: str
    module: PositionScheme

    @property
    def kind(self) -> str:
        """What the page draws of it."""
        kinds: dict[type[PositionScheme], str] = {
            SinusoidalPositions: "sinusoidal",
            LearnedPositions: "learned",
            GridPositions: "learned",
            SinusoidalTable: "learned",
            OneHotPositions: "onehot",
            Rotary: "rotary",
            Alibi: "bias",
            RoundedAlibi: "bias",
            RelativeBias: "bias",
        }
        return kinds.get(type(self.module), "distances")

    def bind(self, places: int, length: int, dtype: torch.dtype = torch.float64) -> Any:
        """Return the scheme bound to the first places, in float64."""
        at = TokenPositions(torch.arange(places)[None])
        with torch.no_grad():
            return self.module.bind(PositionCall(at, {"": at}, length, dtype))


@register
class PositionView(View):
    """Sinusoids, learned vectors, rotations and biases, each with the identity that it satisfies."""

    kind: ClassVar[str] = "position"
    order: ClassVar[int] = 25
    Settings: ClassVar[type[Section]] = PositionSettings

    def fits(self, subject: ViewSubject) -> bool:
        """Say whether the model has positions."""
        return subject.inside is not None and "embedded" in subject.inside and bool(schemes_of(subject.seen.model))

    def saved(self, subject: ViewSubject) -> Iterable[Section]:
        """Return every scheme once."""
        return [PositionSettings(scheme=number) for number in range(len(schemes_of(subject.seen.model)))]

    def payload(self, subject: ViewSubject, settings: PositionSettings) -> Payload:
        """Return the numbers of one scheme."""
        schemes = schemes_of(subject.seen.model)
        if not 0 <= settings.scheme < len(schemes):
            raise UsageError(f"there is no position scheme {settings.scheme}", f"this model has {len(schemes)}, from 0")
        scheme = schemes[settings.scheme]
        shown = {"rotary": _rotary, "bias": _bias, "sinusoidal": _sinusoidal}.get(scheme.kind, _table)
        payload = shown(subject.seen, scheme, settings)
        listed = [{"name": f"{one.prefix}{one.name}", "kind": one.kind} for one in schemes]
        facts = {
            "schemes": listed,
            "kind": scheme.kind,
            "class": type(scheme.module).__name__,
            "number": settings.scheme,
        }
        return Payload({**facts, **payload.facts}, payload.tensors, payload.checks)


def schemes_of(model: Model) -> list[Scheme]:
    """Return the position schemes of every stack, those of the reader first."""
    reader = dict(model.named_children()).get("reader")
    stacks = [("encoder.", dict(reader.named_children()).get("stack"))] if reader is not None else []
    schemes = []
    for prefix, stack in [*stacks, ("", model.stack)]:
        for name, module in [] if stack is None else stack.positions.items():  # type: ignore[union-attr, operator]
            schemes.append(Scheme(prefix, name, module))
    return schemes


def _table(inside: Inside, scheme: Scheme, settings: PositionSettings) -> Payload:
    """Return a table of vectors as it is, and the products of all its pairs."""
    if scheme.kind == "distances":
        bound_scheme = scheme.bind(2, len(inside.tokens))
        table_PD = bound_scheme.table_RD if isinstance(bound_scheme, Related) else torch.zeros(1, 1)
        reach = getattr(getattr(scheme.module, "rows", None), "reach", None)
        return _vectors(table_PD[:PLACES], {"first": 0 if reach is None else -reach}, [])
    count = min(PLACES, getattr(scheme.module, "length", PLACES))
    if scheme.kind == "onehot":
        return _vectors(torch.eye(count), {"first": 0}, [entry_check(inside)])
    vectors = scheme.bind(count, count)
    assert isinstance(vectors, Added)
    return _vectors(vectors.table_BLD[0], {"first": 0}, _entry(inside, scheme))


def _vectors(table_PD: Float[Tensor, "P D"], facts: dict[str, Any], checks: list[Check]) -> Payload:
    wide_PD = table_PD.detach().double()
    products_PP = wide_PD @ wide_PD.T
    return Payload(
        {"places": len(table_PD), **facts}, {"table": wide_PD.float(), "products": products_PP.float()}, checks
    )


def _entry(inside: Inside, scheme: Scheme) -> list[Check]:
    return [entry_check(inside)] if not scheme.prefix else []


def _sinusoidal(inside: Inside, scheme: Scheme, settings: PositionSettings) -> Payload:
    """Return sinusoids, and the two things that hold for them: a shift is a rotation, and products see the offset."""
    module = scheme.module
    assert isinstance(module, SinusoidalPositions)
    table_PD = scheme.bind(PLACES, PLACES).table_BLD[0]
    rate_R = rates(module.base, module.width, table_PD)
    payload = _vectors(table_PD, {"first": 0}, _entry(inside, scheme))
    checks = [*payload.checks, shift_check(table_PD, rate_R, module), offset_check(table_PD)]
    return Payload({**payload.facts, "base": module.base}, {**payload.tensors, "rates": rate_R.float()}, checks)


def shift_check(table_PD: Float[Tensor, "P D"], rate_R: Float[Tensor, "R"], module: SinusoidalPositions) -> Check:
    """Compare ``PE(p + k)`` with ``R(k) PE(p)``: each pair of sine and cosine turned by ``k`` times its rate."""
    places = len(table_PD)
    place_R = torch.arange(len(rate_R))
    number_D = module.arrange(place_R, place_R)[: module.width]
    cosine_D = module.arrange(torch.zeros_like(place_R), torch.ones_like(place_R))[: module.width].bool()
    worst = 0.0
    sine_PR, cosine_PR = _pairs(table_PD, number_D, cosine_D, len(rate_R))
    for k in (1, 2, 5, places // 3):
        turn_R = k * rate_R
        sine = sine_PR * turn_R.cos() + cosine_PR * turn_R.sin()
        cosine = cosine_PR * turn_R.cos() - sine_PR * turn_R.sin()
        for made, held in zip((sine, cosine), (sine_PR, cosine_PR), strict=True):
            off = (made[: places - k] - held[k:]).abs().nan_to_num(0.0).max()
            worst = max(worst, float(off))
    return Check("PE(p + k) = R(k) PE(p)", worst, 1e-9)


def _pairs(table_PD: Tensor, number_D: Tensor, cosine_D: Tensor, pairs: int) -> tuple[Tensor, Tensor]:
    """Return sines and cosines by pair; the one that an odd width leaves out is NaN."""
    sides = []
    for side in (~cosine_D, cosine_D):
        held = table_PD.new_full((len(table_PD), pairs), float("nan"))
        held[:, number_D[side]] = table_PD[:, side]
        sides.append(held)
    return sides[0], sides[1]


def offset_check(table_PD: Float[Tensor, "P D"]) -> Check:
    """Compare ``PE(p) . PE(p + k)`` for all p: it depends on k alone, where sines come with their cosines."""
    products_PP = table_PD @ table_PD.T
    spread = [float(d.max() - d.min()) for k in range(len(table_PD)) if len(d := products_PP.diagonal(k)) > 1]
    width = table_PD.shape[1]
    allowed = 1e-9 * width if width % 2 == 0 else 2.0  # an odd width leaves one sine without its cosine
    return Check("PE(p) · PE(p + k) does not depend on p", max(spread), allowed)


def _rotary(inside: Inside, scheme: Scheme, settings: PositionSettings) -> Payload:
    """Return the angles, and the score of one real query and key by how far apart they stand."""
    module = scheme.module
    assert isinstance(module, Rotary)
    numbers = inside.explainer.numbers
    length = inside.shapes[f"{scheme.prefix}embedded"][1]
    rate_R = module.scaling.rates(module.base, module.width, length)
    facts = {"width": module.width, "base": module.base, "magnitude": module.scaling.magnitude, "places": PLACES}
    turned = turned_queries(numbers, scheme, length)
    if not turned:
        return Payload(facts, {"rates": rate_R.float()}, [])
    key = turned[min(settings.layer, len(turned) - 1)]
    q_C, k_C = unturned(numbers, key, settings)
    heads = numbers[key].shape[1]
    vectors = scheme.bind(2 * PLACES, length)
    q_PC, k_PC = (vectors.rotate(x.double().expand(1, 1, 2 * PLACES, -1))[0, 0] for x in (q_C, k_C))
    products = q_PC @ k_PC.T
    curve_P = products[:PLACES, 0]  # the query stands behind the key
    scale = numbers.nodes[key.removesuffix(".q") + ".scores"].scale  # type: ignore[attr-defined]
    spread = max(float(d.max() - d.min()) for k in range(PLACES) if len(d := products.diagonal(-k)[:PLACES]) > 1)
    size = float(q_C.double().norm() * k_C.double().norm()) * module.scaling.magnitude**2
    checks = [
        Check("scores depend on the offset only", spread / max(1.0, size), 1e-9),
        _turned_check(numbers, key),
    ]
    return Payload(
        {**facts, "key": key, "head": min(settings.head, heads - 1)},
        {"rates": rate_R.float(), "curve": (scale * curve_P).float()},
        checks,
    )


def turned_queries(numbers: Numbers, scheme: Scheme, length: int) -> list[str]:
    """Return the keys of the queries that a scheme turns, block after block."""
    keys = []
    for key, node in numbers.nodes.items():
        if key.startswith(f"{scheme.prefix}blocks.") and key.endswith(".q") and isinstance(node, Heads):
            own = getattr(node.position, "cosine", None) if node.first is not None else None
            if own is not None and torch.equal(own, scheme.bind(length, length, own.dtype).cosine):
                keys.append(key)
    return keys


def unturned(numbers: Numbers, key: str, settings: PositionSettings) -> tuple[Tensor, Tensor]:
    """Return the parts of one query and one key that are turned, before they are."""
    node = numbers.nodes[key]
    assert isinstance(node, Heads)
    q_HLC = node.plain(numbers)[0]
    assert node.first is not None
    head, query = min(settings.head, len(q_HLC) - 1), min(settings.query, q_HLC.shape[1] - 1)
    keys = numbers.nodes[f"{key.removesuffix('.q')}.k"]
    if isinstance(keys, LatentKeys):
        k_SC = numbers[keys.rotated][0]
    else:
        assert isinstance(keys, Heads)
        k_KSC = keys.plain(numbers)[0]
        k_SC = k_KSC[head * len(k_KSC) // len(q_HLC)]
    return q_HLC[head, query, node.first :], k_SC[min(settings.key, len(k_SC) - 1)]


def _turned_check(numbers: Numbers, key: str) -> Check:
    """Compare the queries of the pass with the turned ones."""
    made, held = numbers.nodes[key].compute(numbers).double(), numbers[key].double()
    off = float((made - held).abs().max() / held.abs().max().clamp(min=1))
    return Check("the turned queries are those of the pass", off, bound(numbers[key].dtype))


def _bias(inside: Inside, scheme: Scheme, settings: PositionSettings) -> Payload:
    """Return what each head adds to a score by how far the key is, behind (negative) and ahead."""
    vectors = scheme.bind(PLACES, PLACES)
    assert isinstance(vectors, Biased)
    bias_HPP = vectors.biases[""][0].detach().double().expand(-1, PLACES, PLACES)
    behind, ahead = bias_HPP[:, PLACES - 1], bias_HPP[:, 0, 1:]
    spread = max(float((d.max(-1).values - d.min(-1).values).max()) for d in _diagonals(bias_HPP))
    checks = (
        [] if isinstance(scheme.module, RoundedAlibi) else [Check("the bias depends on the offset only", spread, 1e-6)]
    )
    checks += _added_check(inside, scheme)
    facts = {"places": PLACES, "first": 1 - PLACES, "heads": len(bias_HPP), "by_key": spread > 1e-6}
    return Payload(facts, {"bias": torch.cat([behind, ahead], -1).float()}, checks)


def _diagonals(bias_HPP: Float[Tensor, "H P P"]) -> list[Tensor]:
    places = bias_HPP.shape[-1]
    return [bias_HPP.diagonal(k, 1, 2) for k in range(1 - places, places)]


def _added_check(inside: Inside, scheme: Scheme) -> list[Check]:
    """Compare what the scores of the first block hold beside the products with the bias."""
    numbers = inside.explainer.numbers
    for key, node in numbers.nodes.items():
        if key.startswith(f"{scheme.prefix}blocks.") and isinstance(node, Scores) and node.bias is not None:
            scores_HLS, products_HLS = numbers[key][0].double(), numbers[node.products][0].double()
            rest_HLS = scores_HLS - node.scale * products_HLS
            seen = scores_HLS > float("-inf")
            bias_HLS = node.bias[0].detach().double().expand_as(rest_HLS)
            size = max(1.0, float(scores_HLS[seen].abs().max()))
            off = float((rest_HLS[seen] - bias_HLS[seen]).abs().max()) / size
            return [Check("scores are the scaled products and this bias", off, bound(numbers[key].dtype))]
    return []
