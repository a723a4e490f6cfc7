"""Cross-encoders: scores of pairs are those of sentence-transformers, and ours load there."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from sentence_transformers import CrossEncoder
from sentence_transformers.base.modules import Dense, Transformer
from sentence_transformers.cross_encoder.modules import LogitScore
from sentence_transformers.sentence_transformer.modules import Pooling

import orrery
from orrery.cli.program import run
from orrery.errors import ModelFileError, UsageError
from orrery.families import load_family
from orrery.language_model.model import LanguageModel
from orrery.text.special import train_framed
from orrery.text.tokenizer import Tokenizer
from serving_toy import post, serving
from tests.parity.oracle import randomise

WORDS = "the cat sat on a mat and the dog lay by the door while it rained"
QUERIES = ["the cat", f"{WORDS} " * 3, "", "UPPER Cat", "émigré 日本"]
DOCUMENTS = ["sat on a mat", WORDS, f"{WORDS} " * 8, "", "  two  spaces ", "Dog", "é 日本 \U0001f642", "a"]
PAIRS = [(query, document) for query in QUERIES for document in DOCUMENTS if query or document]
BOUND = 1e-6
BERT_LIKE = ("bert", "electra", "distilbert", "albert", "deberta_v2", "modernbert")
ROBERTA_LIKE = ("roberta", "xlm_roberta")
SEGMENTED = ("bert", "electra", "albert")
LENGTH = 24


def tokenizer_of(kind: str) -> Tokenizer:
    """Return a small tokenizer with the special tokens that such a family has."""
    if kind in ROBERTA_LIKE:
        return train_framed("bpe", [WORDS] * 20, 400, "roberta")
    return train_framed("wordpiece", [WORDS] * 20, 90, "bert", lowercase=True)


def tell(place: Path, file: str, **said: Any) -> None:
    """Add keys to a JSON file of a folder."""
    content = json.loads((place / file).read_text()) if (place / file).is_file() else {}
    (place / file).write_text(json.dumps({**content, **said}))


def published(place: Path, kind: str = "bert", labels: int = 1, length: int | None = LENGTH, **config: Any) -> Path:
    """Save a tiny classifier of transformers' with random numbers and its tokenizer."""
    tokenizer = tokenizer_of(kind)
    sizes = {"vocab_size": tokenizer.size, "max_position_embeddings": 64, "num_labels": labels, "pad_token_id": 0}
    told = {**load_family(kind).TINY, **sizes, **config}
    shape = transformers.AutoConfig.for_model(kind.replace("_", "-"), **told)
    model = transformers.AutoModelForSequenceClassification.from_config(shape).eval()
    randomise(model, seed=1)
    model.save_pretrained(place)
    tokenizer.save(place)
    if kind in SEGMENTED:  # published ones say so by their class
        tell(place, "tokenizer_config.json", model_input_names=["input_ids", "token_type_ids", "attention_mask"])
    if length is not None:
        tell(place, "tokenizer_config.json", model_max_length=length)
    return place


def loaded(place: Path) -> LanguageModel:
    return orrery.load(place, "cpu", say=str)


def theirs(place: Path) -> CrossEncoder:
    return CrossEncoder(str(place), device="cpu", local_files_only=True)


def distance(lm: LanguageModel, model: CrossEncoder, **asked: Any) -> float:
    """Return how far the scores of all pairs are apart, at most, over the size of theirs."""
    ours = lm.score_pairs(PAIRS, **asked)
    prompts = {"prompt_name": asked["prompt"]} if asked.get("prompt") else asked and {"prompt": ""}
    other = model.predict(PAIRS, convert_to_tensor=True, **(prompts or {}))
    assert ours.shape == other.shape
    return float((ours - other).abs().max() / max(1.0, float(other.abs().max())))


@pytest.mark.parametrize("kind", [*BERT_LIKE, *ROBERTA_LIKE])
def test_pairs_have_their_scores(kind: str, tmp_path: Path) -> None:
    place = published(tmp_path / kind, kind)
    lm, model = loaded(place), theirs(place)
    assert distance(lm, model) < BOUND
    ranked = lm.rank("the cat", DOCUMENTS)
    expected = model.rank("the cat", DOCUMENTS)
    assert [one.index for one in ranked] == [one["corpus_id"] for one in expected]
    assert [one.score for one in ranked] == pytest.approx([one["score"] for one in expected], abs=BOUND)
