"""A model that is fine-tuned begins with all that transformers takes from the files of its base, poolers too."""

from pathlib import Path

import pytest
import torch
import transformers

from orrery.checkpoints.rules import to_theirs
from orrery.checkpoints.tensors import TensorFile, write_tensors
from orrery.exchange.reading.read import read
from orrery.exchange.reading.weights import weights_of
from orrery.exchange.saving import import_model
from orrery.families import answering, load_family, model_type, names, rules_of, spec_of
from orrery.runs.begin import Base, take_weights

TARGETS = {"sequence": "ForSequenceClassification", "token": "ForTokenClassification", "span": "ForQuestionAnswering"}
SOURCES = ("Model", "ForMaskedLM", "ForPreTraining", "ForNextSentencePrediction", "ForSequenceClassification")


def stem(family: str) -> str:
    architecture = load_family(family).ARCHITECTURE
    return architecture.removesuffix("ForMaskedLM") if architecture.endswith("ForMaskedLM") else ""


ENCODERS = [name for name in names() if stem(name) and hasattr(transformers, f"{stem(name)}ForSequenceClassification")]
CASES = [
    (family, source, kind)
    for family in ENCODERS
    for source in SOURCES
    for kind, end in TARGETS.items()
    if hasattr(transformers, stem(family) + source) and hasattr(transformers, stem(family) + end)
]


IMPORTED = sorted({(family, source) for family, source, _ in CASES})


@pytest.mark.parametrize("pickled", [False, True], ids=["safetensors", "pickle"])
@pytest.mark.parametrize(("family", "source"), IMPORTED)
def test_an_import_keeps_what_the_class_in_its_configuration_does_not_name(
    family: str, source: str, pickled: bool, tmp_path, monkeypatch
) -> None:
    def convert(path: Path, target: Path) -> TensorFile:
        write_tensors(target, torch.load(path, weights_only=True))
        return TensorFile(target)

    monkeypatch.setattr(import_model, "_convert", convert)  # in this process: another takes seconds
    config = transformers.AutoConfig.for_model(
        model_type(family), **{"pad_token_id": 0, **load_family(family).TINY}, architectures=[stem(family) + source]
    )
    torch.manual_seed(0)
    kept = "ForPreTraining" if source == "ForMaskedLM" and family in ("bert", "albert") else source
    model = getattr(transformers, stem(family) + kept)(config)
    before, after = tmp_path / "before", tmp_path / "after"
    model.save_pretrained(before)
    config.architectures = [stem(family) + source]
    config.save_pretrained(before)
    held = dict(TensorFile(before / "model.safetensors"))
    if pickled:
        (before / "model.safetensors").unlink()
        torch.save(held, before / "pytorch_model.bin")
    told: list[str] = []
    import_model.import_model(before, after, allow_pickle=True, say=told.append)
    written = TensorFile(after / "model.safetensors")
    assert set(held) <= set(written)
    assert all(torch.equal(held[name], written[name]) for name in held)
    assert ("for heads that config.json does not name" in "".join(told)) == (kept != source)
    getattr(transformers, stem(family) + kept).from_pretrained(after)


@pytest.mark.parametrize(("family", "source", "kind"), CASES)
def test_what_they_take_from_a_folder_is_taken(family: str, source: str, kind: str, tmp_path) -> None:
    rules = load_family(family)
    config = transformers.AutoConfig.for_model(model_type(family), **{"pad_token_id": 0, **rules.TINY})
    torch.manual_seed(0)
    kept = "ForPreTraining" if source == "ForMaskedLM" and family in ("bert", "albert") else source
    getattr(transformers, stem(family) + kept)(config).save_pretrained(tmp_path)
    # As the published BERT: the file holds more than its class names.
    saved = transformers.AutoConfig.from_pretrained(tmp_path)
    saved.architectures = [stem(family) + source]
    saved.save_pretrained(tmp_path)
    theirs, told = getattr(transformers, stem(family) + TARGETS[kind]).from_pretrained(
        tmp_path, num_labels=2, output_loading_info=True
    )
    stored = read(tmp_path)
    named = answering(family, stored.config, kind, 2)
    model = spec_of(rules, named).build()
    take_weights(model, Base(stored), ("heads.sequence.labels.",), config=named)
    ours = to_theirs(weights_of(model), rules_of(rules, named))
    taken = set(dict(theirs.named_parameters())) - set(told["missing_keys"])
    labels = {name for name in taken if name.startswith(("classifier.", "qa_outputs."))}
    assert taken - labels
    for name in (taken - labels) & set(ours):
        assert torch.equal(ours[name], theirs.get_parameter(name).detach()), name
