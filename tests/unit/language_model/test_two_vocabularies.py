"""Encoder-decoders whose targets have a vocabulary of their own, and whose start token may lie outside of it."""

from dataclasses import replace

import pytest
import torch

from orrery.errors import DataError, UsageError
from orrery.exchange.reading.read import read
from orrery.exchange.saving.save import save_model
from orrery.families import load_family
from orrery.language_model.model import LanguageModel
from orrery.nn.embeddings import TokenEmbedding
from tiny_models import TOKENIZER, randomised

MARIAN = load_family("marian")


def marian(folder, source, target, **config):
    config = {**MARIAN.TINY, "vocab_size": source, "decoder_vocab_size": target, **config}
    save_model(folder, randomised(MARIAN.spec(config).build(0)), "marian", config)
    return LanguageModel(read(folder))


@pytest.mark.parametrize(("source", "target"), [(61, 97), (97, 61)])
def test_sources_and_targets_are_checked_against_their_own_vocabulary(tmp_path, source, target):
    lm = marian(tmp_path, source, target)
    assert (lm.model.spec.vocabulary, lm.model.spec.target_vocabulary) == (source, target)
    logits = lm.logits([[5, source - 1]], decoder_input_ids=[[0, target - 1]])
    assert logits.shape == (1, 2, target)
    with pytest.raises(DataError, match=f"token id {source} is outside the vocabulary of {source}"):
        lm.logits([[5, source]], decoder_input_ids=[[0, 5]])
    with pytest.raises(DataError, match=f"token id {target} is outside the vocabulary of {target}"):
        lm.logits([[5, 6]], decoder_input_ids=[[0, target]])
    with pytest.raises(DataError, match="token id -1"):
        lm.logits([[5, 6]], decoder_input_ids=[[0, -1]])
    with pytest.raises(UsageError, match=r"decoder_input_ids of shape \[2\]"):
        lm.logits([[5, 6]], decoder_input_ids=torch.tensor([0, 1]))


def test_one_tokenizer_does_not_spell_two_vocabularies(tmp_path):
    config = {**MARIAN.TINY, "vocab_size": TOKENIZER.size, "decoder_vocab_size": 97}
    save_model(tmp_path, randomised(MARIAN.spec(config).build(0)), "marian", config, TOKENIZER)
    lm = LanguageModel(read(tmp_path))
    for spell in (lm.generate, lm.trace, lambda text: lm.translate([text]), lambda text: lm.search([text])):
        with pytest.raises(UsageError, match=f"reads {TOKENIZER.size} tokens and writes 97 others"):
            spell("the cat")


def test_a_recurrent_decoder_with_a_vocabulary_of_its_own_too():
    rules = load_family("rnnsearch")
    spec = rules.spec(rules.TINY)
    spec = replace(spec, target=TokenEmbedding.Spec(vocabulary=70), head=replace(spec.head, vocabulary=70))
    assert (spec.vocabulary, spec.target_vocabulary) == (61, 70)
    assert spec.build(0).logits(torch.tensor([[60]]), torch.tensor([[69]])).shape == (1, 1, 70)


def test_a_start_token_that_is_none_is_refused_when_writing_begins(tmp_path):
    lm = marian(tmp_path, 97, 61, decoder_start_token_id=90)
    with pytest.raises(UsageError, match="begin with token 90, but the model writes 61"):
        lm.model.start(torch.tensor([[5]]), 8)
