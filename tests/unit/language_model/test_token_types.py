"""Token types (token_type_ids) of a language model: as transformers reads them, or refused by name."""

import logging

import pytest
import torch
import transformers

from orrery.errors import DataError, UsageError
from orrery.exchange.reading.read import read
from orrery.exchange.saving.save import save_model
from orrery.families import load_family, model_type
from orrery.language_model.model import LanguageModel
from tiny_models import randomised, saved

logging.getLogger("transformers").setLevel(logging.ERROR)
IDS = torch.randint(3, 61, (2, 9), generator=torch.Generator().manual_seed(0))
MASK = (torch.arange(9) < torch.tensor([[9], [6]])).long()
TYPES = torch.tensor([[0, 0, 0, 0, 1, 1, 1, 1, 1], [0, 0, 1, 1, 1, 1, 0, 0, 0]])


@pytest.fixture(scope="module", params=["bert", "albert", "electra"])
def folder(request, tmp_path_factory):
    rules, folder = load_family(request.param), tmp_path_factory.mktemp(request.param)
    config = {**rules.TINY, "type_vocab_size": 2}
    save_model(folder, randomised(rules.spec(config).build(0).double()), model_type(request.param), config)
    return folder


def test_logits_and_hidden_states_are_those_of_transformers(folder):
    lm = LanguageModel(read(folder))
    theirs = transformers.AutoModelForMaskedLM.from_pretrained(folder, dtype=torch.float64).eval()
    with torch.no_grad():
        given = {"input_ids": IDS, "attention_mask": MASK, "token_type_ids": TYPES}
        expected = theirs(**given, output_hidden_states=True)
    real = MASK.bool()
    logits = lm.logits(IDS, MASK, token_type_ids=TYPES.tolist())
    torch.testing.assert_close(logits[real], expected.logits[real], rtol=1e-6, atol=1e-6)
    hidden = lm.hidden(IDS, MASK, token_type_ids=TYPES)
    torch.testing.assert_close(hidden[real], expected.hidden_states[-1][real], rtol=1e-6, atol=1e-6)
    plain = lm.logits(IDS, MASK)
    torch.testing.assert_close(plain, lm.logits(IDS, MASK, token_type_ids=torch.zeros_like(IDS)), rtol=0, atol=0)
    assert (plain - logits)[real].abs().max() > 1e-3


def test_token_types_that_the_model_does_not_have_are_refused(folder):
    lm = LanguageModel(read(folder))
    for token_types, fault in ((2, "token type 2, but the model has 2"), (-1, "token type -1")):
        with pytest.raises(DataError, match=fault):
            lm.logits(IDS, token_type_ids=torch.full_like(IDS, token_types))
    with pytest.raises(UsageError, match=r"token_type_ids of shape \[2, 8\] for input_ids of \[2, 9\]"):
        lm.hidden(IDS, token_type_ids=TYPES[:, :8])


def test_a_model_without_token_types_refuses_them(tmp_path):
    lm = LanguageModel(read(saved(tmp_path / "gpt2", "gpt2")))
    for method in (lm.logits, lm.hidden):
        with pytest.raises(UsageError, match="no token types"):
            method(IDS, token_type_ids=torch.zeros_like(IDS))
    rules = load_family("t5")
    save_model(tmp_path / "t5", randomised(rules.spec(rules.TINY).build(0)), "t5", rules.TINY)
    with pytest.raises(UsageError, match="no token types"):
        LanguageModel(read(tmp_path / "t5")).logits(IDS, None, [[0, 1]], token_type_ids=torch.zeros_like(IDS))
