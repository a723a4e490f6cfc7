"""Bare models that were saved without their pooler, as transformers saves them where it was left out."""

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from orrery.errors import ModelFileError
from orrery.exchange.exporting.export import export_hf
from orrery.exchange.reading.read import read

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
TEXTS = {"vocab_size": 61, "pad_token_id": 1, "max_position_embeddings": 40}
IMAGES = {"image_size": 32, "patch_size": 8}
CASES: dict[str, dict[str, Any]] = {
    "Albert": TEXTS, "Bert": TEXTS, "Camembert": TEXTS, "MPNet": TEXTS, "Roberta": TEXTS, "XLMRoberta": TEXTS,
    "XLMRobertaXL": TEXTS, "DeiT": IMAGES, "ViT": IMAGES,
    "Yolos": {"image_size": [32, 32], "patch_size": 8, "num_detection_tokens": 4},
}  # fmt: skip


def saved(folder: Path, name: str) -> Any:
    config = getattr(transformers, f"{name}Config")(**SIZES, **CASES[name])
    model = getattr(transformers, f"{name}Model")(config, add_pooling_layer=False).eval()
    model.save_pretrained(folder)
    return model


@pytest.mark.parametrize("name", CASES)
def test_the_stream_is_that_of_the_reference(tmp_path: Path, name: str) -> None:
    reference = saved(tmp_path / "model", name).double()
    stored = read(tmp_path / "model")
    model: Any = stored.model.double()
    assert dict(model.spec.heads) == {}
    given = torch.randint(5, 60, (2, 9)) if CASES[name] is TEXTS else torch.randn(2, 3, 32, 32, dtype=torch.float64)
    with torch.no_grad():
        assert (model.hidden(given) - reference(given).last_hidden_state).abs().max() < 1e-9


def test_an_export_is_read_again(tmp_path: Path) -> None:
    saved(tmp_path / "model", "Bert")
    stored = read(tmp_path / "model")
    export_hf(stored, tmp_path / "again")
    assert read(tmp_path / "again").model.spec == stored.model.spec


def test_half_a_pooler_is_a_damaged_file(tmp_path: Path) -> None:
    config = transformers.BertConfig(**SIZES, **TEXTS)
    transformers.BertModel(config).save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    save_file(
        {name: tensor for name, tensor in tensors.items() if name != "pooler.dense.bias"},
        tmp_path / "model.safetensors",
    )
    with pytest.raises(ModelFileError, match=r"1 missing: pooler\.dense\.bias"):
        read(tmp_path)
