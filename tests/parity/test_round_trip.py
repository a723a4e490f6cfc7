"""Hugging Face -> Orrery -> Hugging Face, for every family: the same bytes, the same meaning, the same logits."""

import json

import pytest
import torch

from orrery.checkpoints.tensors import read_tensors
from orrery.families import load_family
from orrery.language_model.load import load
from tests.parity.oracle import REFERENCED, randomise
from tests.parity.stand_ins import class_of

WRITTEN_ANEW = {"transformers_version", "dtype", "torch_dtype", "_name_or_path"}


def reference(family):
    """Return a random model of the family's tiny configuration, as transformers makes it."""
    rules = load_family(family)
    made = class_of(rules.ARCHITECTURE)
    config = made.config_class(**{"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, **rules.TINY})
    model = made._from_config(config, attn_implementation="eager").eval()
    randomise(model, seed=0)
    return model


@pytest.mark.each_family
@pytest.mark.parametrize("family", sorted(REFERENCED))
def test_there_and_back(tmp_path, family):
    theirs = reference(family)
    theirs.save_pretrained(tmp_path / "theirs")
    load(tmp_path / "theirs", say=lambda line: None).save(tmp_path / "ours")
    before, after = (read_tensors(tmp_path / side / "model.safetensors") for side in ("theirs", "ours"))
    assert before.keys() == after.keys()
    assert all(before[name].dtype == after[name].dtype for name in before)
    assert [name for name in before if not torch.equal(before[name], after[name])] == []
    configs = [json.loads((tmp_path / side / "config.json").read_text()) for side in ("theirs", "ours")]
    assert {k: v for k, v in configs[0].items() if k not in WRITTEN_ANEW} == {
        k: v for k, v in configs[1].items() if k not in WRITTEN_ANEW
    }
    again = type(theirs).from_pretrained(tmp_path / "ours", attn_implementation="eager").eval()
    for parameter in again.parameters():  # in a file they lie where its header ends, and products round accordingly
        parameter.data = parameter.data.clone()
    with torch.no_grad():
        assert torch.equal(answer(again), answer(theirs))


def answer(model):
    """Return the reference's main answer to a fixed input."""
    if hasattr(model.config, "text_config"):
        side = model.config.vision_config.image_size
        answers = "logits" if model.config.model_type == "blip" else "logits_per_image"
        image = torch.randn(1, 3, side, side, generator=torch.Generator().manual_seed(1))
        return model(pixel_values=image, input_ids=torch.tensor([[5, 6, 7, 8, 60]]))[answers]
    if "pixel_values" in model.main_input_name:
        size = model.config.encoder if hasattr(model.config, "encoder") else model.config
        rows, columns = size.image_size if isinstance(size.image_size, list) else [size.image_size] * 2
        image = torch.randn(1, 3, rows, columns, generator=torch.Generator().manual_seed(1))
        extra = {"decoder_input_ids": torch.tensor([[3, 4]])} if hasattr(model.config, "encoder") else {}
        if hasattr(model.config, "mask_ratio"):  # what is hidden is drawn at each call, unless it is given
            patches = (rows // size.patch_size) * (columns // size.patch_size)
            extra = {"noise": torch.rand(1, patches, generator=torch.Generator().manual_seed(2))}
        answer = model(pixel_values=image, **extra)
        return main(answer)
    ids = torch.tensor([[5, 6, 7, 8, 9]])
    extra = {"decoder_input_ids": ids[:, :3]} if model.config.is_encoder_decoder else {}
    answer = model(ids, **extra)
    return main(answer)


def main(answer):
    """Return the first of these that a model answers with."""
    return next(answer[key] for key in ("logits", "image_embeds", "text_embeds", "pooler_output") if key in answer)
