"""Special tokens around texts: what Orrery adds when asked is what transformers adds for the saved tokenizer."""

import json

import pytest
import transformers
from tokenizers import Tokenizer as Engine
from tokenizers import processors

from orrery.errors import ModelFileError, UsageError
from orrery.text import load_tokenizer
from orrery.text.tokenizer import Tokenizer
from unit.text.test_sentencepiece import model

BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s", "sat"]
GPT2 = ["a", "b", "c", "ab", "abc", "Ġ", "<|endoftext|>"]
ROBERTA = ["<s>", "<pad>", "</s>", "<unk>", "a", "b", "c", "ab", "abc", "Ġ", "<mask>"]
TEXTS = ["", "the cats", "abc ab", "[CLS] sat</s> <s>"]


def bert(folder):
    (folder / "vocab.txt").write_text("\n".join(BERT) + "\n", encoding="utf-8")
    return load_tokenizer(folder)


def merges(pieces):
    def make(folder):
        (folder / "vocab.json").write_text(json.dumps({piece: id for id, piece in enumerate(pieces)}), encoding="utf-8")
        (folder / "merges.txt").write_text("#version: 0.2\na b\nab c\n", encoding="utf-8")
        return load_tokenizer(folder)

    return make


KINDS = {"bert": bert, "roberta": merges(ROBERTA), "gpt2": merges(GPT2)}
AROUND = {"bert": (["[CLS]"], ["[SEP]"]), "roberta": (["<s>"], ["</s>"]), "gpt2": ([], [])}


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def saved(tokenizer, folder):
    tokenizer.save(folder / "saved")
    return transformers.AutoTokenizer.from_pretrained(folder / "saved")


def test_special_tokens_are_added_only_when_asked_for(kind, tmp_path):
    tokenizer = KINDS[kind](tmp_path)
    before, after = (list(map(tokenizer.special, names)) for names in AROUND[kind])
    for text in TEXTS:
        ids = tokenizer.encode(text)
        assert not set(ids) & tokenizer.control - {tokenizer.id("[UNK]"), tokenizer.id("<unk>")}
        assert tokenizer.encode(text, special="around") == [*before, *ids, *after]


def test_transformers_adds_the_same_for_the_saved_tokenizer(kind, tmp_path):
    tokenizer = KINDS[kind](tmp_path)
    theirs = saved(tokenizer, tmp_path)
    again = load_tokenizer(tmp_path / "saved")
    for text in TEXTS[:3]:
        assert tokenizer.encode(text, special="around") == theirs(text)["input_ids"]
        assert again.encode(text, special="around") == tokenizer.encode(text, special="around")
        for pair in TEXTS[1:3]:  # transformers takes an empty second text for none
            encoded = theirs(text, pair, return_token_type_ids=True)
            framed = tokenizer.frame(text, pair)
            assert framed.ids == encoded["input_ids"] == tokenizer.encode(text, special="around", pair=pair)
            assert framed.token_types == encoded["token_type_ids"]


def test_the_saved_tokenizer_names_its_tokens(kind, tmp_path):
    theirs = saved(KINDS[kind](tmp_path), tmp_path)
    names = {
        "bert": {"cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]", "pad": "[PAD]", "unk": "[UNK]"},
        "roberta": {"bos": "<s>", "eos": "</s>", "cls": "<s>", "sep": "</s>", "mask": "<mask>", "pad": "<pad>",
                    "unk": "<unk>"},
        "gpt2": {"eos": "<|endoftext|>"},
    }  # fmt: skip
    assert theirs.special_tokens_map == {f"{role}_token": token for role, token in names[kind].items()}


@pytest.mark.parametrize(("name", "kind"), [("BertTokenizer", "bert"), ("RobertaTokenizer", "roberta")])
def test_the_tokens_are_those_of_the_families_own_classes(name, kind, tmp_path):
    tokenizer = KINDS[kind](tmp_path)
    theirs = getattr(transformers, name).from_pretrained(tmp_path)
    for text in ("the cats", "abc ab"):
        assert tokenizer.encode(text, special="around") == theirs(text)["input_ids"]
        assert tokenizer.encode(text, special="around", pair="cat") == theirs(text, "cat")["input_ids"]
    masked = "the [MASK] sat" if kind == "bert" else "a <mask> b"
    assert tokenizer.encode(masked, special=True) == theirs(masked, add_special_tokens=False)["input_ids"]


SENTENCEPIECE = {
    "T5TokenizerFast": ({}, [], ["</s>"]),
    "LlamaTokenizer": ({}, ["<s>"], []),
    "LlamaTokenizerFast": ({"add_bos_token": False, "add_eos_token": True, "eos_token": "</s>"}, [], ["</s>"]),
    "CodeLlamaTokenizer": ({"add_eos_token": True}, ["<s>"], ["</s>"]),
    "GemmaTokenizer": ({"bos_token": {"content": "<s>"}, "add_bos_token": True}, ["<s>"], []),
    "PreTrainedTokenizerFast": ({}, [], []),
}


@pytest.mark.parametrize("name", SENTENCEPIECE)
def test_a_sentencepiece_model_gets_what_its_family_adds(name, tmp_path):
    config, before, after = SENTENCEPIECE[name]
    (tmp_path / "spiece.model").write_bytes(model())
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": name, **config}))
    tokenizer = load_tokenizer(tmp_path)
    left, right = (list(map(tokenizer.special, names)) for names in (before, after))
    ids = tokenizer.encode("ab abc")
    assert tokenizer.encode("ab abc", special="around") == [*left, *ids, *right]
    assert saved(tokenizer, tmp_path)("ab abc")["input_ids"] == [*left, *ids, *right]


@pytest.mark.parametrize("name", ["XGLMTokenizer", "M2M100TokenizerFast", "BarthezTokenizer"])
def test_a_family_that_numbers_its_pieces_otherwise_is_refused(name, tmp_path):
    (tmp_path / "spiece.model").write_bytes(model())
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": name}))
    with pytest.raises(ModelFileError, match="numbers its pieces otherwise"):
        load_tokenizer(tmp_path)


PROCESSORS = {
    "bert": processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2)),
    "roberta": processors.RobertaProcessing(("[SEP]", 3), ("[CLS]", 2)),
    "bytes": processors.ByteLevel(),
    "template": processors.TemplateProcessing("[CLS] $A:1", "$B [SEP]:2 $A:1 [SEP]", [("[CLS]", 2), ("[SEP]", 3)]),
    "several": processors.Sequence(
        [processors.ByteLevel(), processors.TemplateProcessing("[CLS] $0", "$A:0 $B:1", [("[CLS]", 2)])]
    ),
}


@pytest.mark.parametrize("name", PROCESSORS)
def test_every_post_processor_adds_what_the_library_adds(name, tmp_path):
    engine = Engine.from_str(json.dumps(bert(tmp_path).definition))
    engine.post_processor = PROCESSORS[name]
    tokenizer = Tokenizer(engine.to_str())
    for pair in (None, "cats sat"):
        encoded = engine.encode("the cat", pair)
        framed = tokenizer.frame("the cat", pair)
        assert (framed.ids, framed.token_types) == (encoded.ids, encoded.type_ids)


def test_tokens_that_are_added_twice_are_refused(tmp_path):
    engine = Engine.from_str(json.dumps(bert(tmp_path).definition))
    engine.post_processor = processors.Sequence([PROCESSORS["bert"], PROCESSORS["bert"]])
    with pytest.raises(ModelFileError, match="adds special tokens twice"):
        Tokenizer(engine.to_str()).frame("the cat")


def test_a_wrong_way_to_ask_is_named(tmp_path):
    tokenizer = bert(tmp_path)
    with pytest.raises(UsageError, match='special="around"'):
        tokenizer.encode("the cat", pair="sat")
    with pytest.raises(UsageError, match='special="around"'):
        tokenizer.encode("the cat", special=True, pair="sat")


def test_a_character_that_no_piece_has_is_read_as_the_unknown_token(tmp_path):
    assert bert(tmp_path).read("the 日") == "the [UNK]"
