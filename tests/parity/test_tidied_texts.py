"""Decoded texts, whole and streamed, are those of transformers, with and without the blanks before punctuation."""

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import AutoTokenizer

from orrery.text.chat.guard import guarded
from orrery.text.special import with_control
from orrery.text.streaming import StreamDecoder
from orrery.text.tokenizer import load_tokenizer

TEXT = "Hello , world . It 's n't a list ? I 'm we 've they 're ! don't can't 'quoted' a ' b. naive 🙂 the cat sat."
TEXTS = (
    TEXT,
    "..., ! ?",
    "  two  blanks ",
    "<think> a</think> ' b",
    "<|x|> . ?",
    "a ' ' s n't  ' 'm n ' ",
    " never over , ",
)
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
SETTINGS: dict[str, dict[str, Any]] = {
    "unsaid": {},
    "no": {"clean_up_tokenization_spaces": False},
    "yes": {"clean_up_tokenization_spaces": True},
    "bpe too": {
        "clean_up_tokenization_spaces": True,
        "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output": True,
    },
}


def word_pieces() -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(cleanup=False)
    tokenizer.train_from_iterator([TEXT], trainers.WordPieceTrainer(vocab_size=150, special_tokens=["[UNK]", "[SEP]"]))
    return tokenizer


def byte_level() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.Sequence([decoders.ByteLevel()])
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator([TEXT], trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet))
    return tokenizer


def llama() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    tokenizer.decoder = decoders.Sequence(steps)
    tokenizer.train_from_iterator([TEXT], trainers.BpeTrainer(vocab_size=420, special_tokens=["<unk>", *BYTES]))
    content = json.loads(tokenizer.to_str())
    return Tokenizer.from_str(json.dumps({**content, "added_tokens": content["added_tokens"][:1]}))


def unigram() -> Tokenizer:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=90, special_tokens=["<unk>", "</s>"], unk_token="<unk>")
    tokenizer.train_from_iterator([TEXT], trainer)
    return tokenizer


def unigram_of_bytes() -> Tokenizer:
    content = json.loads(unigram().to_str())
    content["model"] |= {"byte_fallback": True, "vocab": content["model"]["vocab"] + [[byte, -20.0] for byte in BYTES]}
    content["decoder"] = {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, content["decoder"]]}
    return Tokenizer.from_str(json.dumps(content))


def words() -> Tokenizer:
    tokenizer = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.train_from_iterator([TEXT], trainers.WordLevelTrainer(special_tokens=["[UNK]"]))
    return tokenizer


KINDS = {f.__name__: f for f in (word_pieces, byte_level, llama, unigram, unigram_of_bytes, words)}


@pytest.fixture(params=KINDS)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    tokenizer = KINDS[request.param]()
    tokenizer.add_special_tokens([AddedToken("<|x|>", lstrip=True, rstrip=True, normalized=False)])
    tokenizer.add_tokens([AddedToken("the cat", single_word=True), AddedToken(" lead", lstrip=True), "<think>"])
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def rows(theirs: Any) -> Iterator[list[int]]:
    random, added = Random(1), list(theirs.get_added_vocab().values())
    yield from (theirs.encode(text, add_special_tokens=False) for text in TEXTS)
    yield from ([random.randrange(len(theirs)) for _ in range(random.randrange(1, 40))] for _ in range(150))
    yield from ([random.choice([*added, random.randrange(len(theirs))]) for _ in range(5)] for _ in range(50))


@pytest.mark.parametrize("setting", SETTINGS)
def test_texts_and_streams_are_those_of_transformers(folder: Path, setting: str) -> None:
    config = {"tokenizer_class": "PreTrainedTokenizerFast", **SETTINGS[setting]}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    theirs, ours = AutoTokenizer.from_pretrained(folder), load_tokenizer(folder)
    ours.save(folder / "again")
    for tokenizer in (ours, load_tokenizer(folder / "again"), guarded(ours), with_control(ours, ["<other>"])):
        for special in (False, True) if tokenizer is ours else (True,):
            for row in rows(theirs):
                expected = theirs.decode(row, skip_special_tokens=not special)
                stream = StreamDecoder(tokenizer, special)
                assert tokenizer.decode(row, special) == expected, row
                assert "".join([*map(stream.push, row), stream.finish()]) == expected, row
    again = AutoTokenizer.from_pretrained(folder / "again")
    assert [again.decode(row) for row in rows(theirs)] == [theirs.decode(row) for row in rows(theirs)]
