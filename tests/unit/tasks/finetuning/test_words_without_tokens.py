"""Words that the tokenizer drops: what a tagger says of them, whatever stands before them."""

import pytest
import tokenizers
import torch
from tokenizers import models, normalizers, pre_tokenizers, processors

from orrery.data.rows.tagged import Tagged
from orrery.exchange.saving.save import save_model
from orrery.families import load_family
from orrery.language_model.load import load
from orrery.language_model.model import LanguageModel
from orrery.tasks.tagging import predicted, usual
from orrery.text.tokenizer import Tokenizer
from tiny_models import ENCODERS, randomised

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "rome", "paris"]
NAMES = {0: "B-X", 1: "O", 2: "I-X"}
LOST = ["\u200d", "\ufe0f", "\u200b", "\x95", "\u2060", "\u200e", "\u200f", "\u202a", "\x01", "\u200d\ufe0f", "\u00ad"]


def published() -> Tokenizer:
    """Return a tokenizer as BERT's is published, which drops control and zero-width characters."""
    own = tokenizers.Tokenizer(models.WordPiece({word: n for n, word in enumerate(VOCABULARY)}, unk_token="[UNK]"))
    own.add_special_tokens(VOCABULARY[:5])
    own.normalizer, own.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    own.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return Tokenizer(own.to_str())


@pytest.fixture(scope="module")
def lm(tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    """Return a tagger that calls every token B-X."""
    config = {**ENCODERS["bert"], "vocab_size": len(VOCABULARY), "architectures": ["BertForTokenClassification"]}
    config |= {"id2label": {str(number): name for number, name in NAMES.items()}}
    model = randomised(load_family("bert").spec(config).build())
    with torch.no_grad():
        model.heads["token"].labels.bias[0] = 1e4
    folder = tmp_path_factory.mktemp("tagger") / "bert"
    save_model(folder, model, "bert", config, published())
    return load(folder, device="cpu", say=lambda line: None)


@pytest.mark.parametrize("lost", LOST)
def test_a_word_without_a_token_is_outside_of_entities(lm: LanguageModel, lost: str) -> None:
    assert lm.tokenizer.encode(lost) == []
    sentences = [["rome", lost, "paris"], [lost, "rome"], [lost], ["rome", lost, lost]]
    labels = {"B-X": 50, "O": 3, "I-X": 1}
    rows = [Tagged("", tuple(words), ()) for words in sentences]
    labels_found = predicted(lm, rows, 16, usual(labels))
    assert labels_found == [["B-X", "O", "B-X"], ["O", "B-X"], ["O"], ["B-X", "O", "O"]]


def test_without_entities_it_has_the_most_frequent_label() -> None:
    assert usual({"NOUN": 3, "VERB": 9, "X": 1}) == "VERB"
