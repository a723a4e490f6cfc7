"""The fewest families whose tiny models hold every kind of brick: what every-family tests run on where time is short.

A brick's kind is its spec class; families are read as specs, and no weight is made. A test that holds on every family
of the cover has met every brick that any family has, though not every combination.
"""

from collections.abc import Iterable, Mapping
from functools import cache

from orrery.families import load_family, names
from orrery.models.model import ModelSpec
from orrery.nn.spec import Value, traverse

Kinds = Mapping[str, frozenset[str]]
"""Of each family, the kinds of its bricks."""
Rank = tuple[int, float, tuple[str, ...]]
"""By which of two covers the better is known: families, then their cost, then their names."""


def kinds_of(spec: Value) -> frozenset[str]:
    """Return the kinds of all bricks of an architecture, its own among them."""
    return frozenset(part.kind for _, part in traverse(spec))


@cache
def specs() -> Mapping[str, ModelSpec]:
    """Return the architecture of the tiny configuration of every family: what cases are listed from."""
    families = {name: load_family(name) for name in names()}
    return {name: family.spec(family.TINY) for name, family in families.items()}


@cache
def kinds() -> Kinds:
    """Return the kinds of bricks of every family's architecture."""
    return {name: kinds_of(spec) for name, spec in specs().items()}


def smallest_cover(costs: Mapping[str, float] | None = None) -> tuple[str, ...]:
    """Return the fewest families that hold every kind of brick, and the cheapest of them where several are as few.

    Each brings the most new kinds that are left, so that the first few are a good cover too.

    Args:
        costs: of each family, such as its processor seconds in tests; one that is not named costs nothing.
    """
    return cover(kinds(), costs)


@cache
def stand_ins() -> frozenset[str]:
    """Return the fewest families that hold every kind of brick in every field where any family has it.

    More than ``smallest_cover``, for tiers that have time: an RMSNorm behind a branch is not one in front of it. The
    other families are put together of what these are put together of.
    """
    return frozenset(cover({name: placed(spec) for name, spec in specs().items()}))


def placed(spec: Value) -> frozenset[str]:
    """Return the kinds of all bricks of an architecture, each with the name of the field that it fills."""
    return frozenset(f"{path.rpartition('.')[2]} {part.kind}" for path, part in traverse(spec))


def cover(held: Kinds, costs: Mapping[str, float] | None = None) -> tuple[str, ...]:
    """Return the fewest keys whose kinds are all that any has; see ``smallest_cover``."""
    price = {name: 0.0 if costs is None else costs.get(name, 0.0) for name in held}
    wanted = frozenset().union(*held.values())
    # What only one family holds needs no search: most of the cover is found so.
    forced = {holders[0] for holders in (_holders(held, kind) for kind in wanted) if len(holders) == 1}
    left = wanted.difference(*(held[name] for name in forced))
    chosen = forced | set(_least({name: own & left for name, own in held.items()}, left, price))
    return _by_gain({name: held[name] for name in chosen}, price)


def _holders(held: Kinds, kind: str) -> list[str]:
    return [name for name in sorted(held) if kind in held[name]]


def _least(held: Kinds, wanted: frozenset[str], price: Mapping[str, float]) -> tuple[str, ...]:
    """Return the best cover of what is wanted, by trying every holder of the kind that has the fewest."""
    best: list[Rank] = []

    def search(chosen: tuple[str, ...], left: frozenset[str]) -> None:
        rank = (len(chosen), sum(price[name] for name in sorted(chosen)), tuple(sorted(chosen)))
        if best and (rank >= best[0] or (left and len(chosen) >= best[0][0])):
            return
        if not left:
            best[:] = [rank]
            return
        rarest = min(sorted(left), key=lambda kind: len(_holders(useful, kind)))
        for name in sorted(_holders(useful, rarest), key=lambda name: (-len(held[name] & left), price[name], name)):
            search((*chosen, name), left - held[name])

    useful = _not_dominated(held, price)
    search((), wanted)
    return best[0][2]


def _not_dominated(held: Kinds, price: Mapping[str, float]) -> Kinds:
    """Leave out what another holds too, at no higher price; of equals the first by name stays."""

    def better(a: str, b: str) -> bool:
        return held[a] >= held[b] and (price[a], held[a] == held[b], a) < (price[b], True, b)

    names = sorted(name for name in held if held[name])
    return {name: held[name] for name in names if not any(better(other, name) for other in names if other != name)}


def _by_gain(held: Kinds, price: Mapping[str, float]) -> tuple[str, ...]:
    """Return the keys in the order in which each brings the most kinds that are new."""
    order: list[str] = []
    seen: frozenset[str] = frozenset()
    while len(order) < len(held):
        rest: Iterable[str] = (name for name in sorted(held) if name not in order)
        order.append(min(rest, key=lambda name: (-len(held[name] - seen), price[name], name)))
        seen |= held[order[-1]]
    return tuple(order)
