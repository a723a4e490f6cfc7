"""What a trace takes: texts, ids, conversations, pairs and images, for every kind of model; and a text as one token."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from orrery.errors import ModelFileError, UsageError
from orrery.exchange.reading.read import Stored
from orrery.families import load_family
from orrery.language_model.model import LanguageModel
from orrery.text import load_tokenizer
from orrery.text.train import train_tokenizer
from tiny_models import TOKENIZER, randomised, tiny

LETTERS = train_tokenizer("character", ["abc "], 16)
BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat"]


def lm(family, tokenizer=LETTERS, **config):
    rules = load_family(family)
    config = {**rules.TINY, "vocab_size": tokenizer.size, **config}
    return LanguageModel(Stored(Path("tiny"), randomised(rules.spec(config).build(0).eval()), tokenizer=tokenizer))


@pytest.mark.parametrize("family", ["gpt2", "llama", "lstm", "nplm"])
def test_a_text_is_its_ids(family):
    model = lm(family)
    ids = LETTERS.encode("ab ca")
    text = model.trace("ab ca")
    for given in (ids, tuple(ids), torch.tensor(ids), torch.tensor([ids])):
        traced = model.trace(given)
        assert torch.equal(traced.logits, text.logits)
        assert torch.equal(traced.ids, torch.tensor([ids]))
        assert list(traced.tokens) == ["a", "b", " ", "c", "a"]
    assert traced.model is model.model
    assert (traced.source_ids, traced.source_tokens) == (None, ())


@pytest.fixture
def words(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(BERT) + "\n", encoding="utf-8")
    return load_tokenizer(tmp_path)


def test_two_ids_are_no_pair():
    assert lm("gpt2").trace((2, 1)).ids.tolist() == [[2, 1]]


@pytest.mark.parametrize("family", ["t5", "bart", "rnnsearch", "transformer"])
def test_a_pair_is_source_and_target(family):
    model = lm(family)
    named = model.trace("ab ca", target="ba")
    pair = model.trace(("ab ca", "ba"))
    assert torch.equal(named.logits, pair.logits)
    first = model.model.first_token
    assert pair.ids.tolist() == [[first, *LETTERS.encode("ba")]]
    assert list(pair.tokens[1:]) == ["b", "a"]
    source = pair.source_ids[0].tolist()
    assert [id for id in source if id in LETTERS.encode("abc ")] == LETTERS.encode("ab ca")
    assert "".join(pair.source_tokens).startswith("ab ca")
    ids = model.trace((source, pair.ids[0].tolist()))
    assert torch.equal(ids.logits, pair.logits)
    assert model.trace("ab").ids.tolist() == [[first]]
    with pytest.raises(UsageError, match="target is given twice"):
        model.trace(("ab", "b"), target="a")


def test_an_encoder_reads_between_its_special_tokens(words):
    model = lm("bert", words)
    traced = model.trace("the cat")
    assert list(traced.tokens) == ["[CLS]", "the", "cat", "[SEP]"]
    assert list(model.trace(traced.ids[0].tolist()[1:-1]).tokens) == ["the", "cat"]
    assert traced.lens(target=model.token_id("[MASK]")).check.passed


def test_images_are_read_as_they_are():
    rules = load_family("vit")
    model = LanguageModel(Stored(Path("tiny"), randomised(rules.spec(rules.TINY).build(0).eval())))
    images = torch.randn(1, *model.model.spec.inputs["images"].shape)
    seen = model.trace(images)
    assert torch.equal(seen.logits, model.model.logits(images))
    assert seen.tokens[:2] == ["class", "1·1"]


def test_messages_go_through_the_template():
    jinja = (
        "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"
        "{% if add_generation_prompt %}assistant:{% endif %}"
    )
    stored = Stored(Path("tiny"), tiny("gpt2", torch.float32, n_positions=128), tokenizer=TOKENIZER)
    model = LanguageModel(replace(stored, chat={"default": jinja}))
    asked = [{"role": "user", "content": "the cat"}]
    answered = [*asked, {"role": "assistant", "content": "sat"}]
    assert "".join(model.trace(asked).tokens) == "user: the cat\nassistant:"
    assert "".join(model.trace(answered).tokens) == "user: the cat\nassistant: sat\n"
    with pytest.raises(ModelFileError, match="no chat template"):
        LanguageModel(stored).trace(asked)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([], "input_ids of shape"),
        (torch.tensor([[1, 2], [3, 4]]), "a trace of Tensor"),
        ([3] * 500, "500 tokens"),
    ],
)
def test_what_cannot_be_read_is_refused(given, says):
    with pytest.raises(UsageError, match=says):
        lm("gpt2").trace(given)


def test_targets_and_chats_where_there_are_none_are_refused():
    with pytest.raises(UsageError, match="has no target"):
        lm("gpt2").trace("ab", target="b")
    with pytest.raises(UsageError, match="has no chats"):
        lm("t5").trace([{"role": "user", "content": "ab"}])


def test_a_token_has_one_id():
    model = LanguageModel(Stored(Path("tiny"), tiny("gpt2", torch.float32), tokenizer=TOKENIZER))
    assert TOKENIZER.encode(" sat") == [model.token_id(" sat")]
    attribution = model.trace("the cat sat").logit_attribution(model.token_id(" sat"), against=model.token_id(" cat"))
    assert attribution.check.passed
    with pytest.raises(UsageError, match=r"'cat ' is 2 tokens: 'cat' \+ ' '") as error:
        model.token_id("cat ")
    assert "; 'cat' is one token; within a sentence" in error.value.hint
    with pytest.raises(UsageError, match="'' is 0 tokens: none"):
        model.token_id("")


def test_a_trace_goes_to_a_folder(tmp_path):
    model = lm("gpt2")
    traced = model.trace("ab ca", folder=tmp_path / "kept", keep=["*.pattern"])
    assert torch.equal(traced["blocks.1.attention.pattern"], model.trace("ab ca")["blocks.1.attention.pattern"])
    assert len(list((tmp_path / "kept").iterdir())) == 2


def test_a_character_outside_the_vocabulary_is_no_token():
    model = lm("gpt2")
    assert model.token_id("a") == LETTERS.id("a")
    with pytest.raises(UsageError, match="'z' is not in the vocabulary"):
        model.token_id("z")
