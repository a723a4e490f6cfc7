"""New control tokens in rows that a published model has to spare: begun near what it knows, and taught or refused."""

import re

import pytest
import torch

from orrery.errors import UsageError
from orrery.exchange.reading.read import read
from orrery.exchange.reading.weights import weights_of
from orrery.exchange.saving.save import save_model
from orrery.families import load_family
from orrery.runs.assemble import assemble
from orrery.runs.growing import vocabulary_tensors
from tiny_models import TOKENIZER, randomised
from unit.training.test_chat_runs import recipe

FAMILIES = ("llama", "gpt2", "opt", "gpt_neox", "bloom", "mistral", "qwen2", "gemma", "gptj", "phi", "mamba", "rwkv")
NEW = 2
"""Control tokens of chatml."""
STILL = {
    "lora": {"adapter": {"kind": "lora", "targets": ["*"], "leave": ["head.*"]}},
    "bottleneck": {"adapter": {"kind": "bottleneck"}},
    "prefix": {"adapter": {"kind": "prefix", "tokens": 2}},
    "frozen": {"freeze": ["embed.*", "head.*"]},
}


def base(tmp_path, family, spare):
    """Return a folder with the smallest model of a family, which has some rows more than its tokenizer tokens."""
    rules, folder = load_family(family), tmp_path / "base"
    config = {**rules.TINY, "vocab_size": TOKENIZER.size + spare}
    save_model(folder, randomised(rules.spec(config).build(0)), family, config, TOKENIZER)
    return folder


def tables(model):
    """Return the tensors with a row for each token, by name."""
    names = set(vocabulary_tensors(model.spec))
    return {name: tensor for name, tensor in weights_of(model).items() if name in names}


@pytest.mark.parametrize(
    ("family", "spare"),
    [*((name, 9) for name in FAMILIES), *((name, n) for name in ("llama", "opt") for n in (0, 1, NEW))],
)
def test_a_new_token_begins_near_the_mean_wherever_its_row_lies(tmp_path, family, spare):
    folder = base(tmp_path, family, spare)
    before = {name: tensor.clone() for name, tensor in tables(read(folder).model).items()}
    made = assemble(recipe(tmp_path, {"from": str(folder)}, batches={"length": 32}))
    after, known = tables(made.parts.model), TOKENIZER.size
    assert after.keys() == before.keys()
    assert len(after) > 0
    for name in after:
        assert torch.equal(after[name][:known], before[name][:known])
        assert torch.equal(after[name][known + NEW :], before[name][known + NEW :])
        mean = before[name][:known].mean(0)
        furthest = float((after[name][known : known + NEW] - mean).abs().max())
        assert furthest < 0.2  # what is drawn beside it has the deviation 0.02
        if spare >= NEW:
            assert not torch.equal(after[name][known : known + NEW], before[name][known : known + NEW])
    told = "which its model had to spare" if spare >= NEW else f"its model has {known + NEW:,} tokens now"
    assert any(told in note for note in made.parts.notes)


@pytest.mark.parametrize(
    ("family", "still", "spare"),
    [*(("llama", still, n) for still in STILL for n in (1, 9)), *(("gpt2", "lora", n) for n in (0, NEW))],
)
def test_rows_that_nothing_teaches_are_refused_wherever_they_lie(tmp_path, family, still, spare):
    folder = base(tmp_path, family, spare)
    with pytest.raises(UsageError, match=r"new control tokens have rows in embed\.token\.weight") as fault:
        assemble(recipe(tmp_path, {"from": str(folder), **STILL[still]}, batches={"length": 32}))
    if "adapter" not in STILL[still]:
        return
    (names,) = re.findall(r"model\.adapter\.learn: \[([^\]]*)\]", fault.value.hint)  # the hint is followed
    adapter = {**STILL[still]["adapter"], "learn": names.split(", ")}
    made = assemble(recipe(tmp_path, {"from": str(folder), "adapter": adapter}, batches={"length": 32}))
    learning = {name for name, parameter in made.parts.model.named_parameters() if parameter.requires_grad}
    assert tables(made.parts.model).keys() <= learning


def test_a_tokenizer_without_new_tokens_leaves_spare_rows_as_they_are(tmp_path):
    folder = base(tmp_path, "llama", 9)
    text = tmp_path / "text.txt"
    text.write_text("the cat sat on the mat and the dog on the log\n" * 30)
    plain = {"kind": "text", "train": str(text), "split": {"tail": 0.2}}
    settings = recipe(tmp_path, {"from": str(folder), "adapter": {"kind": "lora"}})
    values = settings.model_dump(mode="json", by_alias=True)
    for key in ("data", "objective", "batches"):
        values.pop(key)
    from orrery.recipes.read import check_recipe

    made = assemble(check_recipe({**values, "data": plain, "batches": {"length": 16, "size": 2}}, "a test"))
    before, after = tables(read(folder).model), tables(made.parts.model)
    assert all(torch.equal(before[name], after[name]) for name in before)
