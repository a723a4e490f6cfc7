"""Rates by block: hand-made groups, names of real families, and steps of a hand-made optimizer."""

import pytest
import torch

from orrery.errors import UsageError
from orrery.families import load_family
from orrery.training.layer_rates import inside_blocks, layer_scales
from orrery.training.optimizers import build_optimizer, set_rate
from training_toy import toy_recipe


def model(family, **config):
    rules = load_family(family)
    torch.manual_seed(0)
    return rules.spec({**rules.TINY, **config}).build()


def settings(**given):
    return toy_recipe(training__optimizer={"kind": "adamw", "rate": 0.01, **given}).training.optimizer


def test_a_decoder():
    scales = layer_scales((name for name, _ in model("gpt2").named_parameters()), 0.5)
    blocks = 1 + max(int(name.split(".")[2]) for name in scales if name.startswith("stack.blocks."))
    for name, scale in scales.items():
        if name.startswith("stack.blocks."):
            assert scale == 0.5 ** (blocks - int(name.split(".")[2]))
        elif name.startswith("stack.final."):
            assert scale == 1
        else:
            assert name in ("embed.token.weight", "stack.positions.learned.table.weight")
            assert scale == 0.5 ** (blocks + 1)


def test_each_stack_of_an_encoder_decoder_is_counted_from_its_own_top():
    names = [
        "reader.embed.token.weight", "reader.stack.start.0.weight", "reader.stack.blocks.0.attention.branch.q.weight",
        "reader.stack.blocks.2.attention.branch.q.weight", "reader.stack.final.weight", "decoder.start.0.weight",
        "decoder.blocks.0.cross.branch.q.weight", "decoder.blocks.5.cross.branch.q.weight", "decoder.final.weight",
        "decoder.positions.learned.table.weight", "head.vocabulary.weight", "objective.center",
        "objective.embed.weight", "objective.blocks.9.weight",
    ]  # fmt: skip
    depths = [4, 4, 3, 1, 0, 7, 6, 1, 0, 7, 0, 0, 0, 0]
    assert list(layer_scales(names, 0.9).values()) == [0.9**depth for depth in depths]


@pytest.mark.parametrize("family", ["bert", "bart", "transformer", "vit", "albert", "mixtral"])
def test_no_parameter_of_a_block_or_an_embedding_keeps_the_whole_rate(family):
    scales = layer_scales((name for name, _ in model(family).named_parameters()), 0.5)
    assert all((scale < 1) == ("blocks." in name or "embed." in name or ".start" in name or "positions." in name)
               for name, scale in scales.items())  # fmt: skip


def test_without_blocks_only_1_is_possible():
    names = [name for name, _ in model("lstm").named_parameters() if "blocks" not in name]
    assert set(layer_scales(["embed.token.weight", "head.vocabulary.weight"], 1.0).values()) == {1.0}
    with pytest.raises(UsageError, match="layer_decay counts blocks, and the model has none"):
        layer_scales(names, 0.9)


def test_one_rate_is_two_groups():
    groups = build_optimizer(model("gpt2"), settings()).param_groups
    assert [(group["weight_decay"], group["scale"], group["lr"]) for group in groups] == [
        (0.1, 1, 0.01),
        (0.0, 1, 0.01),
    ]


def test_groups_begin_with_the_greatest_rate_and_blocks_of_an_objective_are_none_of_the_models():
    groups = build_optimizer(model("gpt2"), settings(layer_decay=0.5)).param_groups
    scales = [group["scale"] for group in groups]
    assert scales == sorted(scales, reverse=True)
    assert scales[0] == 1
    assert len(set(scales)) > 2
    assert inside_blocks("stack.blocks.0.attention.q.weight")
    assert not inside_blocks("objective.stack.blocks.0.attention.q.weight")
    assert not inside_blocks("objective.blocks.9.weight")
    assert not inside_blocks("head.vocabulary.weight")


@pytest.mark.parametrize("kind", ["adamw", "adam"])
def test_steps_equal_those_of_a_hand_made_optimizer(kind):
    """torch's optimizer with one group a parameter, its rate written down from the name."""
    ours, theirs = model("gpt2").double(), model("gpt2").double()
    given = settings(kind=kind, layer_decay=0.7)
    optimizer = build_optimizer(ours, given)
    blocks = len(theirs.stack.blocks)

    def rate(name, factor):
        if name.startswith("stack.final."):
            return 0.01 * factor
        depth = blocks - int(name.split(".")[2]) if ".blocks." in name else blocks + 1
        return 0.01 * factor * 0.7**depth

    by_hand = {"adamw": torch.optim.AdamW, "adam": torch.optim.Adam}[kind](
        [
            {
                "params": [parameter],
                "name": name,
                "weight_decay": 0.1 if parameter.ndim > 1 and kind == "adamw" else 0.0,
            }
            for name, parameter in theirs.named_parameters()
        ],
        betas=given.betas,
        eps=given.eps,
    )
    rng = torch.Generator().manual_seed(1)
    for factor in (1.0, 0.5, 0.1):
        for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
            one.grad = torch.randn(one.shape, generator=rng, dtype=torch.float64)
            other.grad = one.grad.clone()
        set_rate(optimizer, 0.01 * factor)
        for group in by_hand.param_groups:
            group["lr"] = rate(group["name"], factor)
        optimizer.step()
        by_hand.step()
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("value", [0, -0.5, 1.5, True])
def test_a_decay_that_is_none_is_refused(value):
    with pytest.raises(UsageError, match="layer_decay"):
        settings(layer_decay=value)
