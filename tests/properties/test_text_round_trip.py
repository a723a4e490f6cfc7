import json
import re
from functools import cache

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

from orrery.errors import DataError
from orrery.text import load_tokenizer
from orrery.text.kinds import TOKENIZERS
from orrery.text.streaming import StreamDecoder
from orrery.text.tokenizer import Tokenizer
from orrery.text.train import train_tokenizer

TEXTS = ["the cat sat on the mat", "naïve café 東京 🦊🦊 שלום", "<|endoftext|> <|endo <unk> <OOV>"]
ROOM = {"byte_bpe": 340, "char_bpe": 120, "wordpiece": 120, "unigram": 120}
PUBLISHED = ("gpt2", "bert-base-uncased", "sentencepiece/test_model.model", "sentencepiece/test_ja_model.model")
BPE = train_tokenizer("byte_bpe", TEXTS * 3, 340)
CHARACTERS = train_tokenizer("character", TEXTS)
UNKNOWN = "\N{REPLACEMENT CHARACTER}"


@cache
def of_kind(kind):
    return train_tokenizer(kind, TEXTS * 3, ROOM.get(kind))


@pytest.fixture(scope="module")
def naughty(data_set):
    """Strings that break software: the well-known list, and those made for this project, repeats included."""
    texts = json.loads(data_set("naughty-strings/blns.json").read_text(encoding="utf-8"))
    for line in data_set("naughty-strings/generated.jsonl").read_text(encoding="utf-8").split("\n"):
        row = json.loads(line or "{}")
        if "hex" in row:
            texts.append(bytes.fromhex(row["hex"]).decode(errors="replace"))
        elif row:
            texts.append(row["text"] if "text" in row else row["repeat"][0] * row["repeat"][1])
    assert len(texts) == 258 + 113
    return texts


@pytest.fixture(scope="module", params=[*TOKENIZERS.names(), *PUBLISHED])
def any_tokenizer(request, data_set):
    if request.param in TOKENIZERS.names():
        return of_kind(request.param)
    return load_tokenizer(data_set(f"tokenizer-reference/{request.param}"))


@cache
def known_characters(kind):
    tokenizer = of_kind(kind)
    vocabulary = [tokenizer.token(id) for id in range(tokenizer.size)]
    return {token for token in vocabulary if len(token) == 1}


def promised(kind, tokenizer, text):
    """What decoding an encoded text has to give back, by the kind's own rule for what it does not know."""
    if kind == "byte_bpe":
        return text
    if kind == "word":
        return " ".join(word if tokenizer.id(word) is not None else "<OOV>" for word in words_of(text))
    if kind == "bigram":
        return "".join(pair if tokenizer.id(pair) is not None else UNKNOWN for pair in tokenizer.words(text))
    known = known_characters(kind)
    return "".join(c if c in known else UNKNOWN for c in text)


def words_of(text):
    return [word for word in re.split(r"[^\S\x1c-\x1f]+", text) if word]


def once(text):
    """Unigram counts a run of unknown characters as one."""
    return re.sub(f"{UNKNOWN}+", UNKNOWN, text)


def streamed(tokenizer, ids, special=False):
    stream = StreamDecoder(tokenizer, special)
    pieces = [stream.push(id) for id in ids]
    return pieces, stream.finish()


@given(st.text())
def test_any_text_round_trips(text):
    ids = BPE.encode(text)
    assert BPE.decode_bytes(ids) == text.encode()
    assert BPE.decode(ids) == text
    assert not BPE.control & set(ids)


@given(st.lists(st.sampled_from(["<|", "endoftext", "|>", "<|endoftext|>", " ", "<|endo", "text|>"])).map("".join))
def test_pieces_of_special_tokens_stay_text(text):
    for tokenizer in (BPE, CHARACTERS):
        assert tokenizer.special("end") not in tokenizer.encode(text)


@given(st.lists(st.integers(0, BPE.size - 1)), st.booleans())
def test_streamed_is_full_for_any_ids(ids, special):
    pieces, rest = streamed(BPE, ids, special)
    assert "".join(pieces) + rest == BPE.decode(ids, special)


@given(st.text(alphabet="a🦊東é\N{REPLACEMENT CHARACTER}"))
def test_no_piece_shows_half_a_character(text):
    ids = [BPE.id(symbol) for symbol in BPE.words(text) for symbol in symbol]  # one id a byte: every split
    pieces, rest = streamed(BPE, ids)
    assert "".join(pieces) == text
    assert rest == ""
    assert all(text.startswith("".join(pieces[:count])) for count in range(len(pieces)))


@given(st.lists(st.integers(0, CHARACTERS.size - 1)))
def test_streamed_characters_are_full(ids):
    pieces, rest = streamed(CHARACTERS, ids)
    assert "".join(pieces) + rest == CHARACTERS.decode(ids)


@pytest.mark.parametrize("kind", [kind for kind in TOKENIZERS.names() if kind != "wordpiece"])
@given(text=st.text() | st.text(alphabet="thecatsm éï東🦊<>|unkOV\n\t"))
def test_every_kind_gives_back_what_it_promises(kind, text):
    tokenizer = of_kind(kind)
    decoded, expected = tokenizer.decode(tokenizer.encode(text)), promised(kind, tokenizer, text)
    assert (once(decoded) == once(expected)) if kind == "unigram" else (decoded == expected)
    assert not tokenizer.control & {*tokenizer.encode(text)}


@given(st.lists(st.sampled_from(["the", "cat", "mat", "that", "naïve", "東京"])))
def test_wordpiece_gives_back_words_of_known_characters(words):
    tokenizer = of_kind("wordpiece")
    ids = tokenizer.encode("  ".join(words))
    assert tokenizer.decode(ids) == " ".join(words)
    assert tokenizer.unknown(tokenizer.encode("qqq the")) == 1


@pytest.mark.parametrize("kind", TOKENIZERS.names())
def test_naughty_strings_round_trip(kind, naughty):
    tokenizer = of_kind(kind)
    for text in naughty:
        ids = tokenizer.encode(text)
        decoded = tokenizer.decode(ids)
        if kind == "unigram":
            assert once(decoded) == once(promised(kind, tokenizer, text))
        elif kind != "wordpiece":
            assert decoded == promised(kind, tokenizer, text)


def test_naughty_strings_stream_as_they_decode(any_tokenizer, naughty):
    for text in naughty:
        ids = any_tokenizer.encode(text[:2000])
        pieces, rest = streamed(any_tokenizer, ids)
        assert "".join(pieces) + rest == any_tokenizer.decode(ids)


@given(data=st.data(), special=st.booleans())
def test_any_ids_stream_as_they_decode(any_tokenizer, data, special):
    """Any ids at all: bytes that are no character, control tokens and pieces that continue nothing."""
    some = st.integers(0, any_tokenizer.size - 1)
    few = st.sampled_from([*range(min(8, any_tokenizer.size)), *sorted(any_tokenizer.control)])
    ids = data.draw(st.lists(some | few))
    pieces, rest = streamed(any_tokenizer, ids, special)
    assert "".join(pieces) + rest == any_tokenizer.decode(ids, special)


def fallback():
    """Return a SentencePiece-like tokenizer that spells unknown characters in bytes."""
    pieces = [("<unk>", 0.0), *((f"<0x{byte:02X}>", -9.0) for byte in range(256)), ("\u2581", -1.0), ("\u2581a", -2.0)]
    engine = tokenizers.Tokenizer(tokenizers.models.Unigram([*pieces, ("a", -2.0)], 0, byte_fallback=True))
    steps = tokenizers.decoders
    engine.decoder = steps.Sequence(
        [steps.ByteFallback(), steps.Replace("\u2581", " "), steps.Fuse(), steps.Strip(" ", 1, 0)]
    )
    return Tokenizer(engine.to_str())


FALLBACK = fallback()


@given(st.lists(st.sampled_from([1 + byte for byte in "é🦊".encode()]) | st.integers(250, FALLBACK.size - 1)))
def test_runs_of_byte_pieces_stream_as_they_decode(ids):
    pieces, rest = streamed(FALLBACK, ids)
    assert "".join(pieces) + rest == FALLBACK.decode(ids)


def test_streaming_is_linear(any_tokenizer, monkeypatch):
    """Counted, not timed: the ids that are decoded on the way are a few for each id, whatever the ids are."""
    length, decoded = 500, 0
    decode, decode_bytes = Tokenizer.decode, Tokenizer.decode_bytes

    def count(method):
        def counting(self, ids, special=False):
            nonlocal decoded
            decoded += len(ids)
            return method(self, ids, special)

        return counting

    monkeypatch.setattr(Tokenizer, "decode", count(decode))
    monkeypatch.setattr(Tokenizer, "decode_bytes", count(decode_bytes))
    repeated = [[id] * length for id in (*range(min(20, any_tokenizer.size)), *sorted(any_tokenizer.control)[:9])]
    for ids in [*repeated, any_tokenizer.encode("the cat 東京 🦊 sat\n" * 300)[:length]]:
        decoded = 0
        streamed(any_tokenizer, ids)
        assert decoded <= 8 * len(ids) + 20


@pytest.mark.parametrize("kind", TOKENIZERS.names())
def test_half_of_a_surrogate_pair_is_refused_by_every_kind(kind):
    with pytest.raises(DataError, match="character 1"):
        of_kind(kind).encode("a\ud83e")


def test_incomplete_bytes_are_flushed_at_the_end():
    ids = BPE.encode("🙃")[:-1]
    pieces, rest = streamed(BPE, ids)
    assert "".join(pieces) == ""
    assert rest == BPE.decode(ids) == "\N{REPLACEMENT CHARACTER}"
