"""Long texts lose the end that their tokenizer's folder names, at every door, as in transformers."""

import json
from pathlib import Path

import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Pooling

import orrery
from orrery.data.batches.framing import fitted
from orrery.errors import ModelFileError
from orrery.text.chat.guard import guarded
from orrery.text.special import with_control
from orrery.text.tokenizer import load_tokenizer
from tests.parity.pipelines import TEXTS, named, pair, same

SEQUENCE = "AutoModelForSequenceClassification"

LONG = " ".join(TEXTS)
PAIRS = [{"text": LONG, "text_pair": "Ada"}, {"text": LONG, "text_pair": LONG}, {"text": "A", "text_pair": LONG}]
WHERE = {
    "tokenizer_config.json": lambda place: tell(place, "tokenizer_config.json", truncation_side="left"),
    "tokenizer.json": lambda place: tell(
        place,
        "tokenizer.json",
        truncation={"direction": "Left", "max_length": 16, "strategy": "LongestFirst", "stride": 0},
    ),
}


def tell(place, file, **said):
    content = json.loads((place / file).read_text())
    (place / file).write_text(json.dumps({**content, **said}))


@pytest.fixture(params=WHERE)
def left(request, monkeypatch):
    """Let the folders that a test makes say so."""
    import tests.parity.pipelines as made

    folder = made.folder

    def telling(place, *rest, **more):
        found = folder(place, *rest, **more)
        WHERE[request.param](Path(place))
        return found

    monkeypatch.setattr(made, "folder", telling)


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_classes_read_the_end_of_a_long_text(left, kind, tmp_path):
    theirs, ours = pair(tmp_path, kind, SEQUENCE, "text-classification", context=16, **named(["a", "b", "c"]))
    for item in (LONG, *PAIRS):
        same(ours(item, truncation=True), theirs(item, truncation=True))


def test_labels_that_a_caller_names_read_the_end(left, tmp_path):
    names = named(["contradiction", "neutral", "entailment"])
    theirs, ours = pair(tmp_path, "bert", SEQUENCE, "zero-shot-classification", context=24, **names)
    labels = ["sport", "art"]
    same(ours(LONG, labels, truncation=True), theirs(LONG, labels, truncation="only_first"))


def test_tags_keep_their_places_in_the_text(left, tmp_path):
    auto = "AutoModelForTokenClassification"
    theirs, ours = pair(tmp_path, "bert", auto, "token-classification", context=16, **named(["O", "B-x", "B-y"]))
    theirs.tokenizer.model_max_length = 16
    same(ours(LONG, truncation=True), theirs(LONG))


def test_vectors_read_the_end(tmp_path):
    pair(tmp_path / "own", "bert", "AutoModel", "feature-extraction", context=64)
    WHERE["tokenizer_config.json"](tmp_path / "own")
    reads = Transformer(str(tmp_path / "own"), max_seq_length=16)
    model = SentenceTransformer(modules=[reads, Pooling(reads.get_embedding_dimension(), "mean")], device="cpu")
    model.save(str(tmp_path / "saved"))
    theirs = SentenceTransformer(str(tmp_path / "saved"), device="cpu")
    ours = orrery.load(tmp_path / "saved", "cpu", say=str)
    texts = [LONG, *TEXTS]
    assert float((ours.embed(texts) - theirs.encode(texts, convert_to_tensor=True)).abs().max()) < 2e-6


def test_training_cuts_where_reading_does_and_every_copy_remembers(left, tmp_path):
    theirs, ours = pair(tmp_path, "bert", SEQUENCE, "text-classification", context=16)
    tokenizer = ours.lm.tokenizer
    for first, second in ((LONG, None), (LONG, "Ada"), (LONG, LONG)):
        found, _ = fitted(tokenizer, tokenizer.encode(first), second and tokenizer.encode(second), 16)
        assert found.ids == theirs.tokenizer(first, second, truncation=True, max_length=16)["input_ids"]
    tokenizer.save(tmp_path / "again")
    assert load_tokenizer(tmp_path / "again").cut == "left"
    for copy in (tokenizer.continuing, guarded(tokenizer), with_control(tokenizer, ["<|new|>"])):
        assert copy.cut == "left"


@pytest.mark.parametrize("side", ["middle", "LEFT", None, 1, ["left"]])
def test_what_is_no_side_is_refused(side, tmp_path):
    pair(tmp_path, "bert", SEQUENCE, "text-classification")
    tell(tmp_path, "tokenizer_config.json", truncation_side=side)
    with pytest.raises(ModelFileError, match="truncation_side"):
        load_tokenizer(tmp_path)
