import json
import os
import pickle
import subprocess
import sys

import pytest
import transformers

from orrery.errors import DataError, ModelFileError, UsageError
from orrery.text import load_tokenizer
from orrery.text.algorithms.merges import merge_steps
from orrery.text.tokenizer import Tokenizer
from orrery.text.train import train_tokenizer

TEXTS = [
    "the cat sat on the mat, the cat sat\n",
    "naïve café — 東京 🦊",
    "def f(x):\n    return x  # the mat",
]
KINDS = [("byte_bpe", 300), ("character", None)]


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: kind[0])
def tokenizer(request):
    kind, vocabulary = request.param
    return train_tokenizer(kind, TEXTS, vocabulary)


def test_texts_round_trip(tokenizer):
    assert [tokenizer.decode(tokenizer.encode(text)) for text in TEXTS] == TEXTS
    assert [tokenizer.decode_bytes(tokenizer.encode(text)) for text in TEXTS] == [text.encode() for text in TEXTS]
    assert tokenizer.encode_batch(TEXTS) == [tokenizer.encode(text) for text in TEXTS]


def test_control_tokens_come_from_code_only(tokenizer):
    end = tokenizer.special("end")
    text = "the<|endoftext|>"
    assert end == tokenizer.special("<|endoftext|>")
    assert end not in tokenizer.encode(text)
    assert tokenizer.encode(text, special=True)[-1] == end
    assert end not in tokenizer.encode(text)  # asking for them once changes nothing later
    assert tokenizer.decode([end]) == ""
    assert tokenizer.decode([end], special=True) == "<|endoftext|>"


def test_saved_and_loaded_is_the_same(tokenizer, tmp_path):
    tokenizer.save(tmp_path)
    for path in (tmp_path, tmp_path / "tokenizer.json"):
        loaded = load_tokenizer(path)
        assert (loaded.fingerprint, loaded.size, loaded.roles) == (
            tokenizer.fingerprint,
            tokenizer.size,
            tokenizer.roles,
        )


def test_transformers_loads_what_is_saved(tokenizer, tmp_path):
    tokenizer.save(tmp_path)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert [theirs.encode(text, add_special_tokens=False) for text in TEXTS] == tokenizer.encode_batch(TEXTS)
    assert theirs.eos_token_id == tokenizer.special("end")


@pytest.mark.parametrize("id", [-1, 999_999, 2**70])
def test_ids_outside_the_vocabulary_are_named(tokenizer, id):
    for use in (tokenizer.decode, tokenizer.decode_bytes):
        with pytest.raises(DataError, match=f"{id} is outside the vocabulary of {tokenizer.size}"):
            use([0, id])


def test_lone_surrogates_are_refused_with_their_place(tokenizer):
    uses = (
        *(tokenizer.encode, lambda text: tokenizer.encode(text, special=True), tokenizer.spans, tokenizer.normalise),
        *(
            tokenizer.words,
            lambda text: tokenizer.encode_batch(["a", text]),
            lambda text: [*tokenizer.encode_parts(text)],
        ),
    )
    for use in uses:
        with pytest.raises(DataError, match=r"U\+D800 at character 2") as caught:
            use("ab\ud800c")
        assert "decode it as UTF-8" in caught.value.hint
    with pytest.raises(DataError, match="lone surrogate"):
        train_tokenizer("byte_bpe", ["\udc00"], 300)


def test_bytes_come_whole_without_training_on_them():
    tokenizer = train_tokenizer("byte_bpe", ["a"], 300)
    assert tokenizer.size == 257
    text = "\x00\r\n\ufeff\r\u2028 שלום 👨‍👩‍👧"
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_unknown_characters_are_counted_and_shown():
    tokenizer = train_tokenizer("character", ["abc\n<unk>"])
    ids = tokenizer.encode("aüb<unk>")
    assert tokenizer.unknown(ids) == 1
    assert tokenizer.decode(ids) == "a\N{REPLACEMENT CHARACTER}b<unk>"


def test_character_vocabulary_keeps_the_most_frequent():
    tokenizer = train_tokenizer("character", ["aaabbc"], 4)
    assert tokenizer.size == 4
    assert tokenizer.decode(tokenizer.encode("abc")) == "ab\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize("texts", [[], [""], [" \n\t", "\r\n"]])
@pytest.mark.parametrize(("kind", "vocabulary"), KINDS)
def test_an_empty_corpus_is_refused(kind, vocabulary, texts):
    with pytest.raises(DataError, match="0 tokens"):
        train_tokenizer(kind, texts, vocabulary)


@pytest.mark.parametrize(("kind", "vocabulary"), [("byte_bpe", 256), ("character", 2), ("x", 9)])
def test_impossible_requests_are_refused(kind, vocabulary):
    with pytest.raises(UsageError):
        train_tokenizer(kind, ["text"], vocabulary)


def test_the_number_of_threads_changes_nothing():
    program = (
        "from orrery.text.train import train_tokenizer\n"
        "texts = [f'word{i % 17} other{i % 5} and{i % 3}' for i in range(500)]\n"
        "print(train_tokenizer('byte_bpe', texts, 320).fingerprint)"
    )
    prints = {
        subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"RAYON_NUM_THREADS": threads, "TOKENIZERS_PARALLELISM": "true"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for threads in ("1", "2", "5")
    }
    assert len(prints) == 1


def test_merges_end_at_the_tokens():
    tokenizer = train_tokenizer("byte_bpe", TEXTS * 3, 320)
    for text in TEXTS:
        words = tokenizer.words(text)
        merged = [symbol for word in words for symbol in merge_steps(tokenizer.definition, word)[-1]]
        assert merged == [tokenizer.token(id) for id in tokenizer.encode(text)]


def broken(change):
    definition = json.loads(json.dumps(train_tokenizer("byte_bpe", TEXTS, 300).definition))
    change(definition)
    return json.dumps(definition)


def added(**fields):
    token = {"id": 300, "content": "x", "special": True, "normalized": False}
    token |= {"single_word": False, "lstrip": False, "rstrip": False} | fields
    return lambda definition: definition["added_tokens"].append(token)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "not json",
        "[]",
        "{}",
        '{"model": {}}',
        "[" * 100_000,
        broken(lambda d: d["model"].update(type="Nope")),
        broken(lambda d: d["model"]["merges"].append(["zz", "q"])),
        broken(lambda d: d["model"]["vocab"].update(h=-1)),
        broken(lambda d: d["model"]["vocab"].update(h=3)),
        broken(lambda d: d["model"]["vocab"].update(h=999_999_999)),
        broken(added(content="<|endoftext|>", id=5)),
        broken(added(content="far", id=10**9)),
        broken(added(content="y" * 1_000_000)),
        broken(added(content="")),
    ],
    ids=range(15),
)
def test_broken_files_are_model_file_errors(content, tmp_path):
    file = tmp_path / "tokenizer.json"
    file.write_text(content)
    with pytest.raises(ModelFileError, match=r"tokenizer\.json"):
        load_tokenizer(file)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ModelFileError, match="no such tokenizer"):
        load_tokenizer(tmp_path)


def test_what_a_tokenizer_puts_around_a_text_is_no_part_of_its_encoding():
    plain = train_tokenizer("byte_bpe", TEXTS, 300)
    end = plain.special("end")
    around = {
        "type": "TemplateProcessing",
        "single": [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<|endoftext|>": {"id": "<|endoftext|>", "ids": [end], "tokens": ["<|endoftext|>"]}},
    }
    framed = Tokenizer(json.dumps({**plain.definition, "post_processor": around}))
    assert framed.frame("the cat").ids[-1] == end
    for text in TEXTS:
        assert framed.encode(text) == plain.encode(text)
        assert framed.encode_batch([text]) == [plain.encode(text)]
        assert [id for id, *_ in framed.spans(text)] == plain.encode(text)
        assert framed.word_numbers(text) == plain.word_numbers(text)


@pytest.mark.parametrize("ask", ["encode", "spans", "word_numbers"])
def test_half_a_pair_of_surrogates_is_refused_wherever_a_text_is_read(tokenizer, ask):
    with pytest.raises(DataError, match="surrogate"):
        getattr(tokenizer, ask)("the \ud800 cat")


def test_a_tokenizer_that_was_used_is_pickled(tokenizer):
    ids = tokenizer.encode(TEXTS[1])
    wanted = tokenizer.decode_bytes(ids)
    assert pickle.loads(pickle.dumps(tokenizer)).decode_bytes(ids) == wanted


def test_weights_in_the_place_of_a_tokenizer_are_named_and_not_read_whole(tmp_path, monkeypatch):
    weights, manifest = tmp_path / "m.gguf", tmp_path / "manifests/registry.ollama.ai/library/m/latest"
    weights.write_bytes(b"GGUF\3\0\0\0")
    manifest.parent.mkdir(parents=True)
    manifest.write_text('{"layers": []}')
    monkeypatch.setattr("pathlib.Path.read_bytes", lambda path: pytest.fail(f"{path} is read"))
    for file in (weights, manifest):
        with pytest.raises(ModelFileError, match="the tokenizer of a GGUF file is read with its model") as told:
            load_tokenizer(file)
        assert "orrery import MODEL OUT" in told.value.hint
