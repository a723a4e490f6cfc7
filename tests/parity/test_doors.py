"""What a tokenizer puts around a text stands there behind every door, as transformers reads it from the same folder."""

import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

import orrery
from orrery.evaluation.perplexity import evaluate_perplexity
from orrery.language_model.model import LanguageModel
from parity import oracle

CONVENTIONS = {"none": None, "start": "<s> $A", "end": "$A </s>", "both": "<s> $A </s>"}
TEXT = "the cat sat on the mat and drank coffee in the morning while birds sang. "
TEXTS = ("the cat sat", "a", "birds sang.\n\nthe mat", "<s>the cat", "Größe, ångström", " the", "coffee " * 9)
Both = tuple[LanguageModel, Any, Any]


@pytest.fixture(scope="module", params=CONVENTIONS)
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """Return a model of ours, and the reference's model and tokenizer, all of one folder."""
    folder = tmp_path_factory.mktemp(request.param)
    made = Tokenizer(models.BPE())
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=290, special_tokens=["<s>", "</s>"], initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator([TEXT] * 20, trainer)
    if around := CONVENTIONS[request.param]:
        made.post_processor = processors.TemplateProcessing(around, special_tokens=[("<s>", 0), ("</s>", 1)])
    PreTrainedTokenizerFast(tokenizer_object=made, bos_token="<s>", eos_token="</s>").save_pretrained(folder)
    torch.manual_seed(0)
    theirs = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=290,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            max_position_embeddings=64,
            bos_token_id=0,
            eos_token_id=None,
        )
    )
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.mul_(6 if parameter.dim() > 1 else 1)
    theirs.double().eval().save_pretrained(folder)
    lm = orrery.load(folder, "cpu", "float64", say=lambda line: None)
    with oracle.widened(oracle.modelling("llama")):
        yield lm, theirs, AutoTokenizer.from_pretrained(folder)


@pytest.mark.parametrize("text", TEXTS)
def test_the_ids_are_those_of_the_reference(both: Both, text: str) -> None:
    lm, _, tokenizer = both
    expected = tokenizer(text, split_special_tokens=True).input_ids
    assert lm.tokenizer.frame(text).ids == expected
    assert lm.trace(text).tokens == [lm.tokenizer.decode([id], special=True) for id in expected]


@pytest.mark.parametrize("text", TEXTS)
def test_greedy_answers_are_those_of_the_reference_by_every_door(both: Both, text: str) -> None:
    lm, theirs, tokenizer = both
    row = tokenizer(text, return_tensors="pt", split_special_tokens=True)
    rows = theirs.generate(**row, max_new_tokens=6, do_sample=False, pad_token_id=1)
    expected = rows[0][row.input_ids.shape[1] :].tolist()
    (by_hand,) = lm.write([row.input_ids[0].tolist()], {"max_new_tokens": 6})
    doors = {
        "generations": lm.generations([text], max_new_tokens=6, temperature=0)[0].ids,
        "generations of ids": lm.generations([row.input_ids[0].tolist()], max_new_tokens=6, temperature=0)[0].ids,
        "one text": lm.generations(text, max_new_tokens=6, temperature=0)[0].ids,
        "search": lm.search([text], num_beams=1, max_new_tokens=6)[0][0].hypothesis.ids,
        "speculate": lm.speculate(text, "lookup", max_new_tokens=6, temperature=0).answer.ids,
        "contrastive_search": lm.contrastive_search(text, penalty_alpha=0, max_new_tokens=6).ids,
        "write": by_hand[0],
    }
    assert {name: list(ids)[: len(expected)] for name, ids in doors.items()} == dict.fromkeys(doors, expected)


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_is_as_probable_as_for_the_reference(both: Both, text: str) -> None:
    lm, theirs, tokenizer = both
    ids = tokenizer(text, split_special_tokens=True).input_ids
    opening = [] if ids[0] == 0 else [0]
    row = torch.tensor([[*opening, *ids]])
    logp = theirs(row).logits[0, :-1].detach().log_softmax(-1)[range(row.shape[1] - 1), row[0, 1:]].tolist()
    assert lm.score(text).total == pytest.approx(math.fsum(logp), rel=1e-9)
    own = logp[: len(logp) - (ids[-1] == 1)]
    assert lm.text_likelihoods(text) == pytest.approx([math.fsum(own)], rel=1e-9)
    if ids[0] == 0:
        measured = evaluate_perplexity(lm, [text])
        assert measured["perplexity"] == pytest.approx(math.exp(-math.fsum(own) / len(own)), rel=1e-9)


@pytest.mark.parametrize(
    ("context", "text"),
    [
        ("the cat", " sat"),
        ("the ca", "t sat"),
        ("coff", "ee in the"),
        ("the morn", "ing"),
        ("b", "irds"),
        ("", "a mat"),
    ],
)
def test_a_continuation_that_merges_with_its_context_is_scored_as_a_text(both: Both, context: str, text: str) -> None:
    lm, theirs, tokenizer = both
    whole, own = (tokenizer(part, add_special_tokens=False).input_ids for part in (context + text, context))
    shared = 0
    while shared < min(len(own), len(whole)) and own[shared] == whole[shared]:
        shared += 1
    opens = tokenizer(text).input_ids[0] == 0 or not shared
    row = torch.tensor([[*[0] * opens, *whole]])
    logp = theirs(row).logits[0, :-1].detach().log_softmax(-1)[range(row.shape[1] - 1), row[0, 1:]]
    (likelihood,) = lm.likelihoods([(context, text)])
    assert (likelihood.nats, likelihood.tokens) == (
        pytest.approx(logp[opens + shared - 1 :].sum().item(), rel=1e-9),
        len(whole) - shared,
    )
