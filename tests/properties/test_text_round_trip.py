import json

from hypothesis import given
from hypothesis import strategies as st

from orrery.text.streaming import StreamDecoder
from orrery.text.train import train_tokenizer

TEXTS = ["the cat sat on the mat", "naïve café 東京 🦊🦊 שלום", "<|endoftext|> <|endo"]
BPE = train_tokenizer("byte_bpe", TEXTS * 3, 340)
CHARACTERS = train_tokenizer("character", TEXTS)


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


def test_naughty_strings_round_trip(data_set):
    texts = json.loads(data_set("naughty-strings/blns.json").read_text(encoding="utf-8"))
    assert len(texts) > 200
    for text in texts:
        ids = BPE.encode(text)
        pieces, rest = streamed(BPE, ids)
        assert "".join(pieces) + rest == BPE.decode(ids) == text


def test_incomplete_bytes_are_flushed_at_the_end():
    ids = BPE.encode("🙃")[:-1]
    pieces, rest = streamed(BPE, ids)
    assert "".join(pieces) == ""
    assert rest == BPE.decode(ids) == "\N{REPLACEMENT CHARACTER}"
