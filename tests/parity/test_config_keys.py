"""Keys of a config.json that change no number stop no load; those that the reference reads are refused, all at once."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

import orrery
from orrery.cli.program import run
from orrery.errors import ModelFileError
from orrery.families import load_family, names
from orrery.families._config import UnknownKeysError
from parity.read_keys import RECORD, beyond, classes_of
from tiny_models import saved

HARMLESS: dict[str, Any] = {
    "unsloth_version": "2026.1.1",
    "unsloth_fixed": True,
    "_attn_implementation_autoset": True,
    "_model_name_or_path": "somebody/model",
    "unk_token_id": 0,
    "mask_token_id": None,
    "model_max_length": 1_000_000,
    "num_labels": 2,
    "max_sequence_length": 4096,
    "axolotl_config": {"a": [1]},
    "quantization_config": None,
    "hiden_size": 3,
}


def with_keys(folder: Path, **keys: Any) -> Path:
    file = folder / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **keys}))
    return folder


@pytest.mark.parametrize(
    ("family", "architecture"), [("llama", "LlamaForCausalLM"), ("t5", "T5ForConditionalGeneration")]
)
def test_the_record_is_what_the_source_of_the_reference_says(family: str, architecture: str) -> None:
    record = json.loads(RECORD.read_text())
    assert set(beyond(family, architecture)) == {*record["*"], *record[architecture]}


@pytest.mark.parametrize("key", HARMLESS)
@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_a_key_that_no_number_depends_on_stops_no_load(family: str, key: str, tmp_path: Path) -> None:
    folder, said = saved(tmp_path / "model", family), []
    ids = [[1, 2, 3]]
    plain = orrery.load(folder, "cpu", say=lambda line: None).logits(ids)
    with_keys(folder, **{key: HARMLESS[key]})
    lm = orrery.load(folder, "cpu", say=said.append)
    assert torch.equal(lm.logits(ids), plain)
    theirs = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").eval()
    with torch.no_grad():
        assert torch.allclose(theirs(torch.tensor(ids)).logits, plain, atol=1e-5)
    assert key == "quantization_config" or f"{key} passed over" in said[-1]
    lm.save(tmp_path / "again")
    assert torch.equal(orrery.load(tmp_path / "again", "cpu", say=lambda line: None).logits(ids), plain)


def test_keys_that_the_reference_reads_are_refused_together_and_may_be_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = with_keys(saved(tmp_path / "model", "llama"), layer_types=["full_attention"] * 2, is_causal=True, foo=1)
    with pytest.raises(ModelFileError) as caught:
        orrery.load(folder)
    assert "'is_causal', 'layer_types'" in caught.value.message or "'layer_types', 'is_causal'" in caught.value.message
    assert "foo" not in caught.value.message
    assert "--ignore-keys" in caught.value.hint
    words = caught.value.hint.partition("orrery ")[2].replace(" NEW ", f" {tmp_path / 'new'} ").split()
    assert run(words) == 0
    assert "layer_types" not in json.loads((tmp_path / "new" / "config.json").read_text())
    assert orrery.load(tmp_path / "new", say=lambda line: None).generate("the", max_new_tokens=1) is not None
    capsys.readouterr()


QUANTISED = {
    "gptq to 5 bits": {"quant_method": "gptq", "bits": 5, "group_size": 128},
    "hqq to 2 bits": {"quant_method": "hqq", "nbits": 2},
    "compressed-tensors": {"quant_method": "compressed-tensors", "format": "marlin-24"},
    "an unnamed method": {"bits": 4},
}


@pytest.mark.parametrize("what", QUANTISED)
def test_quantised_weights_are_named(what: str, tmp_path: Path) -> None:
    folder = with_keys(saved(tmp_path / "model", "llama"), quantization_config=QUANTISED[what])
    with pytest.raises(ModelFileError, match=f"quantised by {what} ") as caught:
        orrery.load(folder)
    assert "GGUF" in caught.value.hint


@pytest.mark.parametrize("family", ["llama", "gpt2", "lstm"])
def test_a_key_that_a_user_writes_into_a_recipe_is_refused(family: str) -> None:
    rules = load_family(family)
    with pytest.raises(UnknownKeysError, match="'hiden_size', 'unk_token_id'"):
        rules.spec({**rules.TINY, "hiden_size": 3, "unk_token_id": 1})


def test_the_record_has_every_class_of_every_family() -> None:
    """One that it lacks would have each unknown key refused, harmless or not."""
    known = json.loads(RECORD.read_text(encoding="utf-8"))
    lacking = [name for family in names() for name in classes_of(family) if name not in known]
    assert lacking == []
