"""What models of pictures and texts say of labels that a caller names, beside transformers over the same folder."""

import json
import random
import shutil

import pytest
import torch
import transformers

import orrery
from orrery.errors import UsageError
from orrery.text import load_tokenizer
from tests.parity.picture_folders import MODES, canonical_tokenizer, contrasted, paired, picture, seeing
from tests.parity.pipelines import same

PICTURES = [picture(mode, (20 + 3 * n, 30 - 2 * n), n) for n, mode in enumerate(MODES)]
LABELS = ["cat", "dog", "a Dog  of it's 20 cats", "été"]
TASK = "zero-shot-image-classification"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("clip")
    theirs, tokenizer, processor = contrasted(place)

    @torch.no_grad()
    def answers(pictures, labels, template="This is a photo of {}."):
        """Return what transformers' pipeline returns: every label of each picture, the likeliest first."""
        rows = tokenizer([template.format(label) for label in labels], padding=True, return_tensors="pt")
        colours = [one.convert("RGBA").convert("RGB") if one.mode in ("LA", "RGBA") else one for one in pictures]
        seen = processor([one.convert("RGB") for one in colours], return_tensors="pt")
        scores = theirs.double()(**rows, pixel_values=seen["pixel_values"].double()).logits_per_image.softmax(-1)
        return [
            sorted(
                ({"score": float(score), "label": label} for score, label in zip(row, labels, strict=True)),
                key=lambda one: -one["score"],
            )
            for row in scores
        ]

    return place, answers


def test_labels_and_scores_are_those_of_transformers(folder):
    place, answers = folder
    opaque = [one for one in PICTURES if one.mode not in ("RGBA", "LA")]
    ours = orrery.pipeline(TASK, place, device="cpu", dtype="float64")
    for size in (1, 4):
        same(ours(opaque, candidate_labels=LABELS, batch_size=size), answers(opaque, LABELS), bound=1e-9)
    same(ours(opaque[0], LABELS[:2], hypothesis_template="{}"), answers(opaque[:1], LABELS[:2], "{}")[0], bound=1e-9)
    same(ours(opaque[0], "cat, dog", top_k=1), answers(opaque[:1], LABELS[:2])[0][:1], bound=1e-9)


def test_what_transformers_5_nests_in_the_processors_file_prepares_pictures(folder, tmp_path):
    """Its ``CLIPProcessor.save_pretrained`` writes no preprocessor_config.json; one that is there counts less."""
    place, answers = folder
    new = tmp_path / "saved"
    shutil.copytree(place, new)
    stands = json.loads((new / "preprocessor_config.json").read_text())
    nested = {"image_processor": stands, "processor_class": "CLIPProcessor"}
    (new / "processor_config.json").write_text(json.dumps(nested))
    (new / "preprocessor_config.json").write_text(json.dumps({**stands, "image_mean": [0.0, 0.0, 0.0]}))
    for _ in range(2):
        ours = orrery.pipeline(TASK, new, device="cpu", dtype="float64")
        same(ours(PICTURES[:1], candidate_labels=LABELS), answers(PICTURES[:1], LABELS), bound=1e-9)
        (new / "preprocessor_config.json").unlink(missing_ok=True)


def test_labels_are_read_once_a_call(folder, monkeypatch):
    place, answers = folder
    ours = orrery.pipeline(TASK, place, device="cpu", dtype="float64")
    read, vectors = [], ours.lm.model.vectors
    monkeypatch.setattr(ours.lm.model, "vectors", lambda side, *how: (read.append(side), vectors(side, *how))[1])
    opaque = [one for one in PICTURES if one.mode not in ("RGBA", "LA")]
    for labels in (LABELS, LABELS[:2]):
        same(ours(opaque, candidate_labels=labels, batch_size=1), answers(opaque, labels), bound=1e-9)
    assert sum(side is ours.lm.model.reads for side in read) == 2
    assert sum(side is ours.lm.model.sees for side in read) == 2 * len(opaque)


def test_another_picture_has_another_answer(folder):
    place, answers = folder
    ours = orrery.pipeline(TASK, place, device="cpu", dtype="float64")
    with pytest.raises(AssertionError):
        same(ours(PICTURES[1], LABELS), answers(PICTURES[:1], LABELS)[0], bound=1e-9)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "has no candidate_labels"),
        ({"candidate_labels": [""]}, "has no candidate_labels"),
        ({"candidate_labels": ["cat"], "hypothesis_template": "a photo"}, "has no place for a label"),
        ({"candidate_labels": ["cat " * 50]}, "longer than this model's context of 40"),
        ({"candidate_labels": ["cat"], "top_k": 0}, "top_k"),
    ],
)
def test_what_cannot_be_answered_says_why(folder, settings, message):
    with pytest.raises(UsageError, match=message) as refused:
        orrery.pipeline(TASK, folder[0], device="cpu")(PICTURES[0], **settings)
    assert refused.value.hint


def test_a_model_without_texts_is_refused(tmp_path):
    seeing(tmp_path, "ViTForImageClassification")
    with pytest.raises(UsageError, match="needs a model of pictures and texts"):
        orrery.pipeline(TASK, tmp_path, device="cpu")


def test_the_stream_of_the_pictures_is_that_of_transformers(folder):
    place, _ = folder
    ours = orrery.pipeline("image-feature-extraction", place, device="cpu", dtype="float64")
    lm = orrery.load(place, device="cpu", dtype="float64")
    stream = torch.tensor(ours(PICTURES[0]), dtype=torch.float64)
    assert stream.shape == (1, 17, 32)
    assert torch.tensor(ours(PICTURES[0], pool=True)).shape == (1, 24)
    trace = lm.trace((PICTURES[0], "a cat"))
    assert (trace.tokens[0], trace.tokens[-1]) == ("<|startoftext|>", "<|endoftext|>")
    assert torch.equal(trace["encoder.blocks.1.resid_post"], stream)


SIGNS = (
    "a",
    "photo ",
    " ",
    "cat",
    "T",
    "\u00df",
    "\u00c9",
    "it's",
    "!",
    "\u2581",
    "_",
    "\t",
    "\u3000",
    "\x1c",
    "\ufb01",
    "\u00bd",
    "-",
)


def test_texts_become_small_letters_without_punctuation_as_in_siglip(tmp_path):
    theirs, ours, some = canonical_tokenizer(tmp_path), load_tokenizer(tmp_path), random.Random(0)
    assert ours.special("pad") == theirs.pad_token_id == 1
    assert ours.encode("CATS, dogs!") == ours.encode("cats dogs")
    for _ in range(300):
        text = "".join(some.choice(SIGNS) for _ in range(some.randrange(1, 9)))
        assert ours.around(ours.encode(text)).ids == theirs(text)["input_ids"], text


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    place = tmp_path_factory.mktemp("siglip")
    theirs, tokenizer, processor = paired(place)
    parts = {"model": theirs.double(), "tokenizer": tokenizer, "image_processor": processor}
    return place, transformers.pipeline(TASK, **parts)


def test_each_label_has_a_probability_of_its_own_where_the_similarity_has_a_bias(pairs):
    """Texts are filled with the padding token up to 64, all of which is read, in both."""
    place, theirs = pairs
    opaque = [one.convert("RGB") for one in PICTURES if one.mode not in ("RGBA", "LA")]
    ours = orrery.pipeline(TASK, place, device="cpu", dtype="float64")
    expected = theirs(opaque, candidate_labels=LABELS)
    for size in (1, 4):
        same(ours(opaque, candidate_labels=LABELS, batch_size=size), expected, bound=1e-9)
    assert abs(sum(one["score"] for one in expected[0]) - 1) > 1e-3
    one = theirs(opaque[0], candidate_labels=LABELS[:1], hypothesis_template="{}")
    same(ours(opaque[0], LABELS[:1], hypothesis_template="{}"), one, bound=1e-9)
    with pytest.raises(UsageError, match="longer than this model's context of 64"):
        ours(opaque[0], ["cat " * 80])
    cut = theirs(opaque[0], candidate_labels=["cat " * 80])
    same(ours(opaque[0], ["cat " * 80], truncation=True), cut, bound=1e-9)


def test_a_trace_reads_the_text_that_is_compared(pairs):
    place, theirs = pairs
    lm = orrery.load(place, device="cpu", dtype="float64")
    trace = lm.trace((PICTURES[0], "this is a photo of a cat"))
    assert trace.tokens[-20:] == ["</s>"] * 20
    assert len(trace.tokens) == 64
    (said,) = theirs(PICTURES[0], candidate_labels=["cat"], hypothesis_template="this is a photo of a {}")
    assert float(trace.logits.sigmoid()) == pytest.approx(said["score"], abs=1e-9)


def test_the_vector_of_a_picture_is_what_the_learned_query_reads(pairs):
    place, theirs = pairs
    ours = orrery.pipeline("image-feature-extraction", place, device="cpu", dtype="float64")
    seen = theirs.image_processor(PICTURES[0], return_tensors="pt")["pixel_values"].double()
    with torch.no_grad():
        said = theirs.model.vision_model(seen)
    same(ours(PICTURES[0]), said.last_hidden_state.tolist(), bound=1e-9)
    same(ours(PICTURES[0], pool=True), said.pooler_output.tolist(), bound=1e-9)


def test_a_folder_that_was_saved_says_the_same_in_transformers(pairs, tmp_path):
    place, theirs = pairs
    orrery.load(place, device="cpu", dtype="float32", say=lambda line: None).save(tmp_path)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    model = transformers.AutoModel.from_pretrained(tmp_path, dtype=torch.float64).eval()
    parts = {"model": model, "tokenizer": tokenizer, "image_processor": theirs.image_processor}
    again = transformers.pipeline(TASK, **parts)
    same(again(PICTURES[0], candidate_labels=LABELS), theirs(PICTURES[0], candidate_labels=LABELS), bound=1e-9)
