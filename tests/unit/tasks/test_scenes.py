"""Masks, boxes and captions of scenes, from a recipe to a report and to answers; encoders that go on elsewhere."""

import json

import numpy as np
import pytest
import torch

import orrery
from orrery.data.pictures.addresses import as_address
from orrery.errors import UsageError
from orrery.exchange.reading.read import read
from orrery.runs.begin import take_encoder
from orrery.tasks.finetuning._painting import beside, colours, in_colours, with_boxes
from orrery.tasks.finetuning._words_on_pictures import inside_share, lit, word_patterns
from orrery.tasks.image_segmentation import ImageSegmentation
from orrery.tasks.object_detection import ObjectDetection
from views_toy import language_model_of

SIDE = {"hidden_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 48}
KIND = {**SIDE, "image_size": 24, "patch_size": 6, "num_channels": 3}
VIT = {"family": "vit", "config": {**KIND, "architectures": ["ViTModel"], "initializer_range": 0.1}}
WRITER = {
    "model_type": "gpt2", "is_decoder": True, "add_cross_attention": True, "n_positions": 32, "n_embd": 32,
    "n_layer": 2, "n_head": 2,
}  # fmt: skip


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Return what trains a recipe on a few scenes, for some steps, and gives its folder."""
    from orrery.data.generated import _set

    patch, folder, found = pytest.MonkeyPatch(), tmp_path_factory.mktemp("runs"), {}
    patch.setattr("orrery.data.generated.scenes.COUNTS", {"train": 24, "val": 4})
    patch.setattr("orrery.data.generated.things.COUNTS", {"train": 28, "val": 14})
    _set._records.cache_clear()

    def trained(name, steps=3, **recipe):
        if name not in found:
            file = folder / f"{name}.yaml"
            values = {
                "name": name,
                "model": VIT,
                "batches": {"size": 8},
                "training": {"steps": steps, "optimizer": {"kind": "adamw", "rate": 0.003}, "precision": "float32"},
                "evaluation": {"every": steps},
                "checkpoints": {"every": steps, "keep": 1},
                **recipe,
            }
            file.write_text(json.dumps(values))
            found[name] = orrery.finetune(str(file), output=folder / name, quiet=True).runs[0]
        return found[name]

    yield trained
    patch.undo()
    _set._records.cache_clear()


@pytest.fixture(scope="module")
def masks(runs):
    data = {"kind": "masks", "train": "scenes", "val": "scenes/val"}
    return runs("masks", task="image_segmentation", data=data, objective="segmentation")


@pytest.fixture(scope="module")
def boxes(runs):
    data = {"kind": "boxes", "train": "scenes", "val": "scenes/val", "augment": {"flip": True}}
    return runs("boxes", task="object_detection", data=data, objective="detection")


@pytest.fixture(scope="module")
def things(runs):
    data = {"kind": "pictures", "train": "things", "val": "things/val"}
    model = {"family": "vit", "config": KIND}
    return runs("things", task="image_classification", data=data, objective="classification", model=model)


@pytest.fixture(scope="module")
def captions(runs, things):
    config = {"encoder": {**KIND, "model_type": "vit"}, "decoder": WRITER}
    return runs(
        "captions",
        task="captioning",
        data={"kind": "captions", "train": "scenes", "val": "scenes/val"},
        objective="captioning",
        model={
            "family": "vision_encoder_decoder",
            "config": config,
            "from": {"encoder": str(things)},
            "freeze": ["reader.*"],
        },
        tokenizer={"kind": "word"},
        batches={"size": 8, "length": 24},
    )


@pytest.mark.parametrize("writer", ["trocr", "bert"])
def test_other_families_learn_captions_too(runs, writer):
    width = {"trocr": {"d_model": 32, "decoder_layers": 1, "decoder_attention_heads": 2, "decoder_ffn_dim": 48}}
    decoder = {"model_type": writer, "max_position_embeddings": 32, **width.get(writer, SIDE)}
    config = {
        "encoder": {**KIND, "model_type": "deit"},
        "decoder": {**decoder, "is_decoder": True, "add_cross_attention": True},
    }
    run = runs(
        writer,
        task="captioning",
        data={"kind": "captions", "train": "scenes", "val": "scenes/val"},
        objective="captioning",
        model={"family": "vision_encoder_decoder", "config": config},
        tokenizer={"kind": "word"},
        batches={"size": 8, "length": 24},
    )
    assert isinstance(orrery.load(run).caption(scene(), max_new_tokens=4), str)


@pytest.fixture(scope="module")
def contrast(runs):
    text = {**SIDE, "max_position_embeddings": 40}
    return runs(
        "contrast",
        task="contrast",
        data={"kind": "captions", "train": "scenes", "val": "scenes/val"},
        objective="contrast",
        model={"family": "clip", "config": {"projection_dim": 16, "text_config": text, "vision_config": KIND}},
        tokenizer={"kind": "word", "frame": "roberta"},
        batches={"size": 8, "length": 24},
    )


def test_pictures_and_captions_find_each_other_and_labels_are_told(contrast):
    scores = json.loads((contrast / "scores.json").read_text())
    names = ["caption hit@1", "caption hit@10", "picture hit@1", "picture hit@10"]
    assert [each["name"] for each in scores["scores"]] == names
    assert scores["floors"][0]["method"] == "a guess"
    assert scores["floors"][0]["score"] == 0.25
    lm = orrery.load(contrast)
    assert lm.tokenizer.around(lm.tokenizer.encode("a red seven")).ids[-1] == lm.model.spec.reads.end.token
    found = orrery.pipeline("zero-shot-image-classification", contrast)(scene(), ["a red seven", "a blue circle"])
    assert sum(one["score"] for one in found) == pytest.approx(1)
    assert {one["label"] for one in found} == {"a red seven", "a blue circle"}


def test_each_pair_is_learned_by_itself_with_siglip(runs):
    config = {"text_config": {**SIDE, "max_position_embeddings": 40}, "vision_config": KIND}
    run = runs(
        "siglip",
        task="contrast",
        data={"kind": "captions", "train": "scenes", "val": "scenes/val"},
        objective="contrast",
        model={"family": "siglip", "config": config},
        tokenizer={"kind": "word", "frame": "roberta"},
        batches={"size": 8, "length": 24},
    )
    lm = orrery.load(run)
    assert len(lm.trace((scene(), "a red seven")).tokens) == 40
    found = orrery.pipeline("zero-shot-image-classification", run)(scene(), ["a red seven", "a blue circle"])
    assert sum(one["score"] for one in found) < 0.5  # both begin as improbable: one caption of many is right


def scene():
    return np.random.default_rng(0).integers(0, 256, (48, 40, 3), dtype=np.uint8)


def test_masks_are_learned_scored_drawn_and_told(masks):
    scores = json.loads((masks / "scores.json").read_text())
    assert [each["name"] for each in scores["scores"]] == ["mean IoU", "pixel accuracy"]
    assert scores["floors"][0]["method"] == "every pixel ground"
    assert (masks / "report.html").read_text().count("data:image/png") == 4
    ask = orrery.pipeline("image-segmentation", masks)
    found = ask(scene())
    whole = sum((np.asarray(each["mask"]) > 0).astype(int) for each in found)
    assert whole.shape == (48, 40)
    assert (whole == 1).all()
    assert {*found[0]} == {"score", "label", "mask"}
    sizes = [(np.asarray(each["mask"]) > 0).sum() for each in found]
    assert sizes == sorted(sizes, reverse=True)
    assert ask([scene(), as_address(scene())])[1][0]["label"] == found[0]["label"]
    told = ask.told(found)
    assert json.dumps(told)
    assert told[0]["mask"].startswith("data:image/png;base64,")
    assert next(iter(ask.lines("a.png", found))).endswith("a.png")


def test_boxes_are_learned_scored_drawn_and_told(boxes):
    scores = json.loads((boxes / "scores.json").read_text())
    assert [each["name"] for each in scores["scores"]] == ["AP50", "AP75", "AP"]
    assert (boxes / "report.html").read_text().count("data:image/png") == 4
    ask = orrery.pipeline("object-detection", boxes, threshold=0.05)
    found = ask(scene())
    assert [each["score"] for each in found] == sorted((each["score"] for each in found), reverse=True)
    assert all(each["box"]["xmin"] <= each["box"]["xmax"] for each in found)
    assert ask([scene()], threshold=0.999) == [[]]
    assert list(ask.lines("a.png", [])) == ["nothing  a.png"]
    assert len(list(ask.lines("a.png", found))) == len(found)
    with pytest.raises(UsageError, match="threshold"):
        ask(scene(), threshold=2)


def test_yolos_answers_are_those_of_its_processor_in_transformers():
    transformers = pytest.importorskip("transformers", reason="transformers, the oracle, is not installed")
    lm = language_model_of("yolos")
    pixels = scene()
    ask = orrery.pipeline("object-detection", lm)
    (row,) = ask.rows(pixels, ask.chosen({}))
    said = lm.model({"images": row.images}, ("classes", "boxes"))
    outputs = transformers.models.yolos.modeling_yolos.YolosObjectDetectionOutput(
        logits=said["classes"], pred_boxes=said["boxes"]
    )
    processor = transformers.models.yolos.image_processing_pil_yolos.YolosImageProcessorPil()
    (theirs,) = processor.post_process_object_detection(outputs, threshold=0.0, target_sizes=[(48, 40)])
    order = theirs["scores"].argsort(descending=True, stable=True)
    found = ask(pixels, threshold=0.0)
    assert [each["score"] for each in found] == pytest.approx(theirs["scores"][order].tolist(), abs=1e-6)
    assert [list(each["box"].values()) for each in found] == theirs["boxes"][order].int().tolist()
    assert [each["label"] for each in found] == [f"LABEL_{n}" for n in theirs["labels"][order].tolist()]


def test_yolos_learns_things_and_goes_on_with_other_labels(runs):
    yolos = {**SIDE, "image_size": [24, 24], "patch_size": 6, "num_detection_tokens": 5, "num_channels": 3}
    data = {"kind": "boxes", "train": "scenes", "val": "scenes/val"}
    first = runs("yolos", task="object_detection", data=data, objective="detection",
                 model={"family": "yolos", "config": yolos})  # fmt: skip
    stored = read(first)
    assert stored.model.spec.heads["classes"].head.labels == 15
    assert stored.model.spec.heads["classes"].head.names[-1] == "nothing"
    again = runs("yolos-again", task="object_detection", data=data, objective="detection", model={"from": str(first)},
                 steps=1)  # fmt: skip
    one, other = (dict(read(folder).model.named_parameters()) for folder in (first, again))
    apart = (one["heads.classes.head.labels.weight"] - other["heads.classes.head.labels.weight"]).abs().max()
    assert float(apart.detach()) < 0.01  # the labels are the same: nothing was drawn again


def test_captions_are_learned_scored_and_shown_word_by_word(captions):
    scores = json.loads((captions / "scores.json").read_text())
    assert [each["name"] for each in scores["scores"]] == ["exact", "ROUGE-L"]
    assert "Where each word looked" in (captions / "report.html").read_text()
    lm = orrery.load(captions)
    assert isinstance(lm.caption(scene(), max_new_tokens=4), str)
    assert orrery.pipeline("image-to-text", lm)(scene(), max_new_tokens=3)[0]["generated_text"] is not None
    words, patterns = word_patterns(lm, scene(), "a red seven and a blue circle")
    assert words == ["a", "red", "seven", "and", "a", "blue", "circle"]
    assert patterns.shape == (2, 7, 16)
    trace = lm.trace(scene(), target="a red seven and a blue circle")
    own = trace["blocks.1.cross.pattern"][0].mean(0)[:7, 1:]
    assert torch.allclose(patterns[1].float(), own, atol=1e-6)


def test_an_encoder_goes_on_beneath_a_writer(captions, things, masks):
    there, own = read(things).model.state_dict(), read(captions).model.state_dict()
    names = [name for name in there if name.startswith(("embed.", "stack."))]
    assert len(names) > 15
    assert all(torch.equal(there[name], own[f"reader.{name}"]) for name in names)
    back = read(masks).model
    assert take_encoder(back, str(captions))[-1] == f"the encoder is that of {captions}: {len(names)} tensors"
    assert torch.equal(back.state_dict()[names[0]], own[f"reader.{names[0]}"])
    with pytest.raises(UsageError, match="has the shape"):
        take_encoder(language_model_of("vit", hidden_size=48).model, str(things))
    with pytest.raises(UsageError, match="does not fit"):
        take_encoder(language_model_of("llama").model, str(things))


def test_a_client_sends_content_and_models_of_other_things_do_not_fit(masks, boxes):
    for task in (ImageSegmentation, ObjectDetection):
        with pytest.raises(UsageError, match="sent as its content"):
            task.from_client("/etc/passwd")
        assert task.from_client("data:image/png;base64,AA==").startswith("data:")
        assert not task.fits(language_model_of("vit"))
        assert not task.fits(language_model_of("bert"))
    assert ImageSegmentation.fits(orrery.load(masks))
    assert ObjectDetection.fits(orrery.load(boxes))
    assert ObjectDetection.fits(language_model_of("yolos"))


def test_pictures_for_reports_show_what_they_say():
    assert len({tuple(colour) for colour in colours(15).tolist()}) == 15
    painted = in_colours(np.array([[0, 1], [-100, 2]]), 3)
    assert painted[:, 0, 0].tolist() == [0, 0, 0]
    assert painted[:, 1, 0].tolist() == [255, 255, 255]
    grey = torch.zeros(1, 6, 8, dtype=torch.uint8)
    outlined = with_boxes(grey, [((1, 1, 5, 4), (9, 8, 7))])
    assert outlined[0].tolist() == [
        [0] * 8, [0, 9, 9, 9, 9, 0, 0, 0], [0, 9, 0, 0, 9, 0, 0, 0], [0, 9, 9, 9, 9, 0, 0, 0], [0] * 8, [0] * 8
    ]  # fmt: skip
    assert with_boxes(grey, [((-5, -5, 50, 50), (1, 1, 1))])[0, 0].tolist() == [1] * 8
    assert beside(grey, outlined).shape == (3, 6, 8 + 2 + 8)
    bright = lit(torch.full((3, 4, 4), 200, dtype=torch.uint8), torch.tensor([[0.0, 1.0], [0.5, 0.0]]))
    assert bright[0, 0].tolist() == [40, 40, 200, 200]
    weights = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert inside_share(weights, (0, 0, 3, 3), (8, 8)) == pytest.approx(0.1)
    assert inside_share(weights, (3, 0, 3, 3), (8, 8)) == pytest.approx(0.3)
    assert inside_share(weights, (0, 0, 8, 8), (8, 8)) == pytest.approx(1)
