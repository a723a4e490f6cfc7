"""Files of config.json from before 2020, which say less than today's."""

import json
from pathlib import Path

import pytest
import torch

from orrery.errors import ModelFileError
from orrery.exchange.reading.config_keys import read_config
from orrery.exchange.reading.read import read
from orrery.exchange.saving.save import save_model
from tiny_models import ENCODERS, tiny


def saved(folder: Path, **changed: object) -> Path:
    """Save a tiny BERT with other entries in its config.json; none leaves one out."""
    config = {**ENCODERS["bert"], "architectures": ["BertForMaskedLM"]}
    save_model(folder, tiny("bert", architectures=["BertForMaskedLM"]), "bert", config)
    said = json.loads((folder / "config.json").read_text()) | changed
    (folder / "config.json").write_text(json.dumps({key: value for key, value in said.items() if value is not None}))
    return folder


@pytest.mark.parametrize(
    ("place", "architectures"),
    [
        ("model", ["BertForMaskedLM"]),
        ("bert_pretrained", None),
        ("models--bert-base-uncased/snapshots/0123", None),
    ],
)
def test_a_file_without_model_type_is_what_its_class_or_its_folder_says(
    place: str, architectures: list[str] | None, tmp_path: Path
) -> None:
    whole = read(saved(tmp_path / "whole"))
    (tmp_path / place).mkdir(parents=True)
    again = read(saved(tmp_path / place, model_type=None, architectures=architectures))
    assert again.family == "bert"
    ids = torch.arange(3, 12)[None]
    with torch.no_grad():
        assert torch.equal(again.model.logits(ids), whole.model.logits(ids))


def test_a_longer_name_counts_before_one_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "my-distilbert"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    assert read_config(folder)["model_type"] == "distilbert"
    (folder / "config.json").write_text('{"architectures": ["RobertaForMaskedLM"]}')
    assert read_config(folder)["model_type"] == "roberta"


@pytest.mark.parametrize("place", ["model", "my-roberto", "embertive", "t55"])
def test_what_nothing_tells_is_asked_for(place: str, tmp_path: Path) -> None:
    (tmp_path / place).mkdir()
    (tmp_path / place / "config.json").write_text("{}")
    with pytest.raises(ModelFileError, match="names no model_type") as refused:
        read_config(tmp_path / place)
    assert '"model_type": "bert"' in refused.value.hint


@pytest.mark.parametrize(("key", "library"), [("pretrained_cfg", "timm"), ("model_cfg", "open_clip")])
def test_models_of_other_libraries_are_named(key: str, library: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"architecture": "vit_base_patch16_224", key: {"tag": "augreg"}}))
    with pytest.raises(ModelFileError, match=f"of the library {library}"):
        read_config(tmp_path)


def test_two_names_that_nobody_gave_do_not_count_labels(tmp_path: Path) -> None:
    config = {**ENCODERS["bert"], "architectures": ["BertForSequenceClassification"], "num_labels": 5}
    model = tiny("bert", architectures=["BertForSequenceClassification"], num_labels=5)
    save_model(tmp_path / "model", model, "bert", config)
    file = tmp_path / "model" / "config.json"
    said = json.loads(file.read_text()) | {"num_labels": 5, "id2label": {"0": "LABEL_0", "1": "LABEL_1"}}
    file.write_text(json.dumps(said))
    assert read(tmp_path / "model").model.spec.heads["sequence"] is not None
    file.write_text(json.dumps(said | {"id2label": {"0": "good", "1": "bad"}}))
    with pytest.raises(ModelFileError, match="num_labels = 5, but id2label names 2"):
        read(tmp_path / "model")
