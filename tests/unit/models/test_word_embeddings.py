"""The classifier is thrown away and the embeddings are kept: they begin another model, and a model's are read back."""

import numpy as np
import pytest
import torch

from orrery.errors import UsageError
from orrery.models.word2vec.vectors import Vectors
from orrery.models.word_embeddings import initialise_embeddings, vectors_of
from orrery.nn.embeddings import TokenEmbedding
from orrery.text.train import train_tokenizer
from tiny_models import TOKENIZER, tiny

WORDS = train_tokenizer("word", ["the cat sat on the mat"], None)


def vectors(words, width=32):
    return Vectors(words, np.random.default_rng(0).normal(size=(len(words), width)).astype(np.float32))


class Reader(torch.nn.Module):
    def __init__(self, rows=WORDS.size, width=32):
        super().__init__()
        self.embed = TokenEmbedding(rows, width)


def test_rows_of_known_words_are_the_vectors_and_others_stay():
    model, given = Reader(WORDS.size + 3), vectors(["cat", "dog", "mat"])
    before = model.embed.token.weight.detach().clone()
    assert initialise_embeddings(model, WORDS, given) == 2
    after = model.embed.token.weight.detach()
    for id in range(len(before)):
        word = WORDS.token(id) if id < WORDS.size else ""
        expected = torch.from_numpy(given[word]) if word in given else before[id]
        assert torch.equal(after[id], expected), word


def test_a_real_model_with_tied_head_and_the_mark_of_the_space():
    model, given = tiny("gpt2"), vectors(["the", "cat", "sat"])
    marked = [TOKENIZER.id(f"\u0120{word}") for word in given.words]
    known = {id: word for id, word in zip(marked, given.words, strict=True) if id is not None}
    assert known
    initialise_embeddings(model, TOKENIZER, given)
    for id, word in known.items():
        assert torch.equal(model.embed.token.weight[id], torch.from_numpy(given[word]).double())
    assert model.head.vocabulary.weight is model.embed.token.weight


def test_what_does_not_fit_is_refused_by_name():
    with pytest.raises(UsageError, match="embeddings are 16 wide, the word vectors 32"):
        initialise_embeddings(Reader(width=16), WORDS, vectors(["cat"]))
    with pytest.raises(UsageError, match=f"embeddings have 3 rows, the tokenizer {WORDS.size} ids"):
        initialise_embeddings(Reader(rows=3), WORDS, vectors(["cat"]))
    with pytest.raises(UsageError, match="none of the tokenizer's"):
        initialise_embeddings(Reader(), WORDS, vectors(["Cat"]))
    with pytest.raises(UsageError, match="Linear has no table of tokens"):
        initialise_embeddings(torch.nn.Linear(2, 2), WORDS, vectors(["cat"]))


def test_a_model_s_table_is_word_vectors():
    model = tiny("llama")
    vectors = vectors_of(model, TOKENIZER)
    assert len(vectors.words) == TOKENIZER.size
    id = TOKENIZER.encode("cat")[0]
    assert np.array_equal(vectors[TOKENIZER.token(id)], model.embed.token.weight[id].detach().float().numpy())
