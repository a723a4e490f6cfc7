"""The families that stand for all others hold every kind of brick, and none of them is one too many."""

import random
from dataclasses import replace
from itertools import combinations

import pytest
from torch import nn

from cover import cover, kinds, kinds_of, smallest_cover
from orrery.families import load_family, names
from orrery.nn.spec import ModuleSpec, spec


class MadeUp(nn.Identity):
    """A norm that normalises nothing."""

    @spec
    class Spec(ModuleSpec):
        """Nothing to set."""

        def build(self, width: int) -> nn.Module:
            """Return it."""
            return MadeUp()


def test_every_kind_of_brick_that_any_family_has_is_in_the_cover() -> None:
    held = kinds()
    assert sorted(held) == sorted(names())
    assert len(frozenset().union(*held.values())) > 100
    assert frozenset().union(*(held[name] for name in smallest_cover())) == frozenset().union(*held.values())
    assert len(smallest_cover()) < len(held) * 0.6


def test_without_any_one_of_them_a_kind_is_lost() -> None:
    held, covering = kinds(), smallest_cover()
    every = frozenset().union(*held.values())
    for name in covering:
        assert frozenset().union(*(held[other] for other in covering if other != name)) != every, name


def test_the_kinds_are_those_of_the_whole_tree() -> None:
    assert {"models.decoder.Decoder", "nn.masks.Causal", "nn.positions.rotary.Rotary"} <= kinds()["llama"]
    assert {"nn.feedforward.moe.MoE", "nn.feedforward.routers.TopK", "nn.feedforward.gated.GatedMLP"} <= kinds()[
        "mixtral"
    ]


def test_a_family_with_a_new_brick_enters() -> None:
    gpt2 = load_family("gpt2")
    whole = gpt2.spec(gpt2.TINY)
    new = kinds_of(replace(whole, stack=replace(whole.stack, final=MadeUp.Spec())))
    assert MadeUp.Spec.kind in new
    before, after = smallest_cover(), cover({**kinds(), "made_up": new})
    assert "made_up" in after
    assert set(after) - {"made_up"} <= set(before)
    assert "made_up" not in cover({**kinds(), "made_up": kinds()["gpt2"]})  # it brings nothing that is new


def test_no_cover_is_smaller_and_among_those_as_small_none_is_cheaper() -> None:
    rng = random.Random(0)
    for _ in range(60):
        held = {f"f{n}": frozenset(rng.sample("abcdefgh", rng.randint(1, 4))) for n in range(8)}
        costs = {name: float(rng.randint(0, 3)) for name in held}
        every = frozenset().union(*held.values())
        covers = [
            (len(some), sum(costs[name] for name in some))
            for size in range(1, 9)
            for some in combinations(sorted(held), size)
            if frozenset().union(*(held[name] for name in some)) == every
        ]
        covering = cover(held, costs)
        assert (len(covering), sum(costs[name] for name in covering)) == min(covers)


def test_the_order_of_the_families_does_not_matter() -> None:
    held = kinds()
    assert cover(dict(reversed(held.items()))) == smallest_cover()


@pytest.mark.parametrize("dear", ["mt5", "cohere", "marian"])
def test_of_two_that_bring_the_same_the_cheaper_is_taken(dear: str) -> None:
    cheap = smallest_cover(dict.fromkeys([dear], 10.0))
    assert len(cheap) == len(smallest_cover())
    assert (dear in cheap) == (len(cover({n: k for n, k in kinds().items() if n != dear})) > len(cheap))


def test_the_first_bring_the_most() -> None:
    held, seen, gains = kinds(), frozenset[str](), []
    for name in smallest_cover():
        gains.append(len(held[name] - seen))
        seen |= held[name]
    assert gains == sorted(gains, reverse=True)
