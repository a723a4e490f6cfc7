"""Where Llama's tokenizer puts blanks, as its configuration says it beside a SentencePiece model."""

import json

import pytest
import transformers
from tests.parity.test_sentencepiece_models import train

from orrery.text import load_tokenizer
from orrery.text.chat.spans.encoding import Control, TextSpan, encode_spans
from orrery.text.sentencepiece.export import definition

TEXTS = [
    "", "the bean", "\nthe", "the</s>the", "<s>the bean</s> the </s>the", "</s>\n the", "naïve 東京</s>==</s>",
    "the</s></s>bean", "a  b</s>  c",
]  # fmt: skip
LEADING = [" the bean", "  the", " </s> the", "\u2581the"]
SETTINGS = {"byte_fallback": True, "normalization_rule_name": "identity", "remove_extra_whitespaces": False}


@pytest.fixture(scope="module")
def library():
    """A SentencePiece model like Llama's."""
    return train("bpe", SETTINGS)[0]


def folder_with(folder, library, **said):
    (folder / "tokenizer.model").write_bytes(library.serialized_model_proto())
    roles = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "LlamaTokenizer", **roles, **said}))
    return load_tokenizer(folder)


def reference(library, **said):
    """Return transformers' tokenizer of the pieces, which its own reader of files hands to it."""
    model = json.loads(definition(library.serialized_model_proto()))["model"]
    return transformers.LlamaTokenizer(model["vocab"], [tuple(pair) for pair in model["merges"]], **said)


@pytest.mark.parametrize("said", [
    {"legacy": False}, {"legacy": False, "add_prefix_space": True}, {"legacy": False, "add_prefix_space": None},
    {"legacy": False, "add_prefix_space": False}, {"legacy": True, "add_prefix_space": False},
], ids=str)  # fmt: skip
@pytest.mark.parametrize("name", ["LlamaTokenizer", "CodeLlamaTokenizer", "LlamaTokenizerFast"])
def test_blanks_stand_where_the_configuration_says(tmp_path, library, said, name):
    ours, theirs = folder_with(tmp_path, library, **said, tokenizer_class=name), reference(library, **said)
    never = said.get("add_prefix_space") is False
    for text in [*TEXTS, *(LEADING if never else [])]:
        ids = theirs(text, add_special_tokens=False)["input_ids"]
        assert ours.encode(text, special=True) == ids, text
        assert ours.decode(ids, special=True) == theirs.decode(ids), text


@pytest.mark.parametrize("legacy", [False, True])
def test_blanks_of_a_text_itself_are_sentencepieces(tmp_path, library, legacy):
    ours = folder_with(tmp_path, library, legacy=legacy)
    for text in [*TEXTS, *LEADING]:
        ids = library.encode(text)
        assert ours.encode(text) == ids, text
        assert ours.decode(ids) == library.decode(ids)
        assert [id for id, _, _ in ours.spans(text)] == ids


def test_without_a_setting_a_blank_stands_behind_each_control_token(tmp_path, library):
    ours = folder_with(tmp_path, library)
    the = library.encode("the")
    assert ours.encode("the</s>the", special=True) == [*the, 2, *the]


@pytest.mark.parametrize(
    ("said", "before"), [({}, True), ({"legacy": False}, False), ({"add_prefix_space": False}, False)]
)
def test_a_chat_has_the_same_blanks(tmp_path, library, said, before):
    ours = folder_with(tmp_path, library, **said)
    chat = encode_spans(ours, [Control("<s>"), TextSpan("the bean"), Control("</s>"), TextSpan("the")])
    assert chat.ids == ours.encode("<s>the bean</s>the", special=True)
    assert (chat.ids[1] == library.encode("the")[0]) == before


def test_a_family_without_the_settings_passes_them_over(tmp_path, library):
    plain = folder_with(tmp_path, library, tokenizer_class="GemmaTokenizer").encode("the bean")
    said = {"legacy": False, "add_prefix_space": False}
    assert folder_with(tmp_path, library, tokenizer_class="GemmaTokenizer", **said).encode("the bean") == plain
