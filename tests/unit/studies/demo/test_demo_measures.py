import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from orrery.data.corpora import Document
from orrery.errors import DataError
from orrery.evaluation.floors import model_bits_per_byte
from orrery.generation.scoring import log_probabilities
from orrery.language_model.load import load
from orrery.studies.demo.floors import aims, floors
from orrery.studies.demo.heads import (
    FEWEST,
    MOST,
    beginning,
    describe,
    further_back,
    look,
    on_the_one_before,
    sentence_from,
)
from tiny_models import TOKENIZER, saved

END = TOKENIZER.special("end")


@pytest.fixture(scope="module")
def lm(tmp_path_factory):
    return load(saved(tmp_path_factory.mktemp("model"), "llama"), device="cpu", say=lambda line: None)


def test_a_short_document_costs_what_its_tokens_cost_one_by_one(lm) -> None:
    texts = ["the cat sat", "the dog"]
    documents = [np.array([*TOKENIZER.encode(text), END], np.uint32) for text in texts]
    bits = 0.0
    for document in documents:
        ids = torch.tensor([[END, *document.tolist()]])
        bits -= float(log_probabilities(lm.logits(ids), ids).sum()) / math.log(2)
    bits_per_byte = model_bits_per_byte(lm.model, documents, length=32, size=18)
    assert bits_per_byte == pytest.approx(bits / 18, rel=1e-5)


class Uniform(torch.nn.Module):
    """A model that knows nothing: all 256 tokens are alike."""

    spec = SimpleNamespace(head_names=("language_model",))

    def __init__(self):
        super().__init__()
        self.head = torch.nn.Linear(4, 256, bias=False)

    def forward(self, batch, heads):
        x_BLD = torch.zeros(*batch["ids"].shape, 4)
        return {name: answer(self.head, x_BLD, None) for name, answer in heads.items()}


def test_every_token_of_a_long_document_counts_once() -> None:
    document = np.arange(101, dtype=np.uint32)
    assert model_bits_per_byte(Uniform(), [document, document], length=10, size=101) == pytest.approx(2 * 8)


def test_floors_and_aims_are_ordered_as_what_they_know() -> None:
    text = b"the cat sat on the mat. " * 40
    unigram, trigram, alone = floors(text, text[:200])
    assert unigram.bits_per_byte > trigram.bits_per_byte
    ids = [np.array([*TOKENIZER.encode(text.decode()), END], np.uint32)]
    counts, primed = aims(text, text[:200], ids, ids, TOKENIZER.size)
    assert primed.bits_per_byte < alone.bits_per_byte
    assert counts.bits_per_byte > 0


def test_heads_are_described_by_their_numbers(lm) -> None:
    before = torch.zeros(6, 6)
    before[0, 0] = 1.0
    before[range(1, 6), range(5)] = 1.0
    assert (on_the_one_before(before), further_back(before)) == (1.0, 0.0)
    assert describe(before) == "100% of its weight on the token just before, 0% further back"
    even = torch.ones(6, 6).tril()
    assert further_back(even / even.sum(-1, keepdim=True)) > 0
    sight = look(lm, "the cat sat on the mat")
    assert [head.name for head in sight.heads[:2]] == ["block 0, head 0", "block 0, head 1"]
    assert len(sight.heads) == 8
    assert len({head.name for head in sight.chosen}) == 2
    assert all(check.passed for check in sight.checks)
    assert [sum(row) for row in sight.heads[0].pattern] == pytest.approx([1.0] * len(sight.tokens), abs=1e-2)


def test_the_sentence_is_plain_and_fits_a_picture() -> None:
    text = (
        "NAME(x) -> None\n\nToo short. The cat sat on\nthe mat, the dog sat on the log. Another sentence follows here."
    )
    assert sentence_from([Document("a", text)], TOKENIZER) == "The cat sat on the mat, the dog sat on the log."
    odd = sentence_from([Document("a", "1 2 3 4 5 6 7 8 9 " * 9)], TOKENIZER)
    assert odd.startswith("1 2 3")
    assert FEWEST <= len(TOKENIZER.encode(odd)) <= MOST
    with pytest.raises(DataError, match="the held-back text is too short to look at") as refused:
        sentence_from([Document("a", "x")], TOKENIZER)
    assert refused.value.hint == "give the demo more text"


@pytest.mark.parametrize(("tokens", "shown"), [(3, 3), (MOST, MOST), (MOST + 1, MOST)])
def test_a_text_without_sentences_is_shown_from_its_beginning(tokens: int, shown: int) -> None:
    ids = list(TOKENIZER.encode("the cat sat on a mat " * MOST)[:tokens])
    assert beginning(ids, TOKENIZER) == TOKENIZER.decode(ids[:shown])
    with pytest.raises(DataError):
        beginning(ids[:2], TOKENIZER)
