"""Plans beside what papers and the course print."""

from pathlib import Path

import pytest
import torch

import orrery
from orrery.errors import UsageError
from orrery.laws.models import random_ids, tiny
from orrery.planning.matrices import Convention, total
from orrery.planning.parameters import parameters
from orrery.planning.plan import plan, state_bytes
from orrery.planning.presets import PRESETS, preset
from orrery.planning.published.sizes import KEYS


def test_gpt3_by_both_conventions_and_its_cache():
    planned = orrery.plan("gpt3-175b")
    assert planned.parameters.trained == 174_604_259_328
    assert planned.by_convention() == (175_181_291_520, 27_938)
    assert total(planned.matrices, Convention(output_per_head=True))[1] > 27_938
    assert (planned.cache_per_token, planned.cache) == (4_718_592, 9_663_676_416)
    # Two operations for each weight that multiplies, the head's among them and the table of positions not.
    weights = 96 * 12 * 12_288**2 + 50_257 * 12_288
    assert planned.cost.forward.weights == 2 * weights * 2048
    assert planned.cost.forward.tokens == 96 * 2 * 2 * 12_288 * 2048**2


def test_training_compute_that_papers_print():
    palm = plan("palm-540b", tokens=780e9)
    assert f"{palm.training:.3g}" == "2.56e+24"
    assert f"{6 * palm.parameters.trained * 780e9:.3g}" == "2.53e+24"


def test_llama_405b():
    planned = plan("llama-3.1-405b", tokens=15.6e12)
    assert planned.parameters.trained == 405_853_388_800
    assert f"{6 * planned.parameters.trained * 15.6e12:.2g}" == "3.8e+25"


def test_a_published_model_is_planned_by_its_name():
    assert plan("llama-3.1-405b").parameters.trained == 405_853_388_800
    assert plan("bert-base-uncased").parameters.trained == 109_482_240
    for name in set(KEYS) & set(PRESETS):
        assert KEYS[name].parameters == parameters(preset(name))
    with pytest.raises(UsageError, match=r"llama-3\.1-405b"):
        plan("llama-3-405b")


@pytest.mark.parametrize("family", ["mamba", "gla", "jamba", "lstm", "rwkv"])
def test_the_state_is_that_of_a_session(family):
    model = tiny(family, torch.float32)
    _, short = model.start(random_ids(1, 3), 32)
    _, long = model.start(random_ids(1, 20), 32)
    if family == "jamba":  # its attention keeps keys and values beside the states
        assert 0 < state_bytes(model.spec) < short.bytes()
    else:
        assert state_bytes(model.spec) == short.bytes() == long.bytes()


def test_memory_is_the_sum_of_its_parts():
    planned = plan("gpt3-125m", rows=2, length=64, optimizer="sgd", dtype="float32")
    weights = 4 * 125_226_240
    assert (planned.weights_bytes, planned.gradients_bytes, planned.optimizer_bytes) == (weights, weights, weights)
    assert planned.memory == 3 * weights + planned.cost.kept


def test_a_recipe_gives_rows_length_and_tokens(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("one two three four five\n" * 200)
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(
        "name: small\nmodel: {family: llama, config: {hidden_size: 16, intermediate_size: 32, num_hidden_layers: 2,"
        " num_attention_heads: 2, max_position_embeddings: 16}}\ntokenizer: {kind: character}\n"
        f"data: {{train: {text}}}\nbatches: {{kind: crops, length: 16, size: 4}}\n"
        "training: {steps: 10, optimizer: {kind: adamw, rate: 0.001}}\n"
    )
    planned = plan(recipe)
    assert (planned.name, planned.rows, planned.length, planned.tokens, planned.optimizer) == (
        "small",
        4,
        16,
        640.0,
        "adamw",
    )


@pytest.mark.parametrize(
    ("subject", "more", "said", "hint"),
    [
        ("gpt5", {}, "nothing to plan is called 'gpt5'", "or the file of a recipe, the folder of a model"),
        ("gpt3-125m", {"config": Path("config.json")}, "--config is a file for a family, and 'gpt3-125m' is none",
         "name a family, or leave it out"),
        ("gpt3-125m", {"rows": 0}, "a step on 0 rows of 2048 tokens", "give one row and one token at least"),
        ("gpt3-125m", {"length": -1}, "a step on 1 rows of -1 tokens", "give one row and one token at least"),
        ("gpt3-125m", {"tokens": float("nan")}, "a training on nan tokens", "give how many it sees, such as 300e9"),
        ("gpt3-125m", {"tokens": 0.0}, "a training on 0 tokens", "give how many it sees, such as 300e9"),
        ("gpt3-125m", {"tokens": float("inf")}, "a training on inf tokens", "give how many it sees, such as 300e9"),
        ("gpt3-125m", {"dtype": "int3"}, "no format 'int3' to multiply in", "there are: float32, bfloat16"),
        ("gpt3-125m", {"optimizer": "magic"}, "no optimizer 'magic'", "there are: "),
        ("word2vec", {}, "nothing to plan is called 'word2vec'", "such as "),
    ],
)  # fmt: skip
def test_what_cannot_be_planned_is_refused(subject, more, said, hint):
    with pytest.raises(UsageError) as refused:
        plan(subject, **more)
    assert type(refused.value) is UsageError
    assert refused.value.message.startswith(said)
    assert hint in refused.value.hint


def test_a_plan_is_of_one_row_of_the_whole_context_unless_told_otherwise():
    planned = plan("gpt3-125m")
    assert (planned.name, planned.rows, planned.length) == ("gpt3-125m", 1, 2048)
    assert (planned.dtype, planned.optimizer, planned.tokens) == (torch.bfloat16, "adamw", None)
    asked = plan("gpt3-125m", rows=3, length=7, tokens=1.0, dtype="float32", optimizer="sgd")
    assert (asked.rows, asked.length, asked.tokens) == (3, 7, 1.0)
    assert (asked.dtype, asked.optimizer) == (torch.float32, "sgd")
