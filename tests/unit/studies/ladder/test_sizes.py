"""The sizes of a ladder: parameters, tokens, operations and rates by the rules that the recipe gives."""

from pathlib import Path

import pytest

from ladder_toy import LADDER, write_ladder
from orrery.errors import ModelFileError, UsageError
from orrery.families import load_family
from orrery.studies.ladder.settings import load_ladder
from orrery.studies.ladder.sizes import LadderSize, refuse_no_growth, sizes_of

VOCABULARY = 40


def sizes(folder: Path, **changes: object) -> tuple[LadderSize, ...]:
    return sizes_of(load_ladder(write_ladder(folder / "toy.yaml", **changes)), VOCABULARY, folder / "tokenizer")


def test_each_size_has_its_share_of_tokens_and_its_rate(tmp_path):
    planned_sizes = sizes(tmp_path, tokens_per_parameter=20, rate_exponent=0.3, warmup=0.2)
    assert len(planned_sizes) == 4
    for size in planned_sizes:
        config = {**LADDER["model"]["config"], "vocab_size": VOCABULARY}
        width = size.recipe.model.config["hidden_size"]
        model = load_family("llama").spec({**config, "hidden_size": width}).build()
        assert size.parameters == sum(parameter.numel() for parameter in model.stack.blocks.parameters())
        assert abs(size.tokens - 20 * size.parameters) <= 16 * 4 / 2
        assert size.rate == pytest.approx(0.01 * (planned_sizes[0].parameters / size.parameters) ** 0.3)
        assert size.recipe.training.schedule.warmup == round(0.2 * size.steps)
        assert size.recipe.model.config["num_hidden_layers"] == 1


def test_the_operations_are_those_of_the_formula(tmp_path):
    for size in sizes(tmp_path):
        config = size.recipe.model.config
        width, layers, length = config["hidden_size"], config["num_hidden_layers"], config["max_position_embeddings"]
        matrices = layers * (4 * width**2 + 3 * width * config["intermediate_size"]) + VOCABULARY * width
        attention = 12 * layers * width * length  # Chowdhery et al. 2022, appendix B, with all keys
        # The angles of rotary positions, a small product too, are not in the formula.
        assert size.operations == pytest.approx((6 * matrices + attention) * size.tokens, rel=2e-3)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"sizes": [{"hidden_size": width} for width in (8, 16, 12, 24)]}, "number 3 has"),
        ({"sizes": [{"hidden_size": 8}] * 3}, "ladder: sizes: a ladder has 4 sizes or more"),
        ({"sizes": [{"hidden_size": 8}, {"hidden_size": -8}, {"hidden_size": 16}, {"hidden_size": 24}]}, "number 2: "),
        ({"seeds": [1]}, "3 trainings below the largest size"),
        ({"seeds": [1, 1]}, "a seed is named twice"),
        ({"tokens_per_parameter": 0}, "tokens_per_parameter"),
        ({"rate_exponent": 2}, "rate_exponent"),
        ({"held_back": 0}, "held_back"),
        ({"widths": [1]}, "widths: unknown key"),
    ],
)
def test_what_is_no_ladder_is_refused_by_its_key(changes, said, tmp_path):
    with pytest.raises((UsageError, ModelFileError)) as caught:
        sizes(tmp_path, **changes)
    assert said in caught.value.message


def test_sizes_that_cost_the_same_are_refused():
    refuse_no_growth([1, 2, 3], "parts", ",d")
    with pytest.raises(UsageError, match="number 3 has 2e\\+06 operations, the one before 2e\\+06"):
        refuse_no_growth([1e6, 2e6, 2e6], "operations", ".4g")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--training.final", "best"], "training.final best chooses"),
        (["--evaluation.patience", "2"], "evaluation.patience chooses"),
        (["--expect", "{metric: val/loss, bound: 3}"], "expect is of one training"),
        (["--objective.kind", "masked"], "objective.kind is masked"),
        (["--model", "{spec: spec.json}"], "models of a family"),
        (["--ladder", "{}"], "sizes: Field required"),
        (["--ladder", "5"], "has no section 'ladder'"),
    ],
)
def test_a_recipe_that_does_not_fit_is_refused(words, said, tmp_path):
    with pytest.raises(UsageError) as caught:
        load_ladder(write_ladder(tmp_path / "toy.yaml"), words)
    assert said in caught.value.message


def test_a_vocabulary_with_room_costs_more_operations(tmp_path):
    path = write_ladder(tmp_path / "toy.yaml")
    small, large = (
        sizes_of(load_ladder(path, words), VOCABULARY, tmp_path / "tokenizer")[0]
        for words in ([], ["--model.config.vocab_size", "100"])
    )
    assert large.parameters == small.parameters
    # The table is tied: its two gradients are summed, which the formula of products leaves out.
    assert large.operations - small.operations == pytest.approx(6 * 60 * 8 * small.tokens, rel=1e-2)


def test_a_word_and_the_environment_change_the_section(tmp_path):
    path = write_ladder(tmp_path / "toy.yaml")
    ladder = load_ladder(path, ["--ladder.tokens_per_parameter", "7"], {"ORRERY_LADDER__WARMUP": "0.5"})
    assert (ladder.settings.tokens_per_parameter, ladder.settings.warmup) == (7, 0.5)
