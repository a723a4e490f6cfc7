import base64
import json
import struct
import tracemalloc
from itertools import chain

import numpy as np
import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

from orrery.errors import ModelFileError
from orrery.kernels.compiled import HAVE_NUMBA
from orrery.text import Tokenizer, load_tokenizer
from orrery.text.sentencepiece import charsmap
from orrery.text.sentencepiece.export import KEY, definition
from orrery.text.sentencepiece.file import read
from orrery.text.sentencepiece.normaliser import Longest
from orrery.text.sentencepiece.unigram import Unigram

if HAVE_NUMBA:
    from orrery.text.sentencepiece.compiled import Compiled

needs_numba = pytest.mark.skipif(not HAVE_NUMBA, reason="needs numba")

SPACE = "\N{LOWER ONE EIGHTH BLOCK}"
CONTROLS = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("</s>", 0.0, 3)]
PIECES = [*CONTROLS, (SPACE, -3.0, 1), ("a", -2.0, 1), ("b", -2.0, 1), (SPACE + "ab", -4.0, 1), ("ab", -4.5, 1)]
MERGED = [*CONTROLS, *((character, -9.0, 1) for character in SPACE + "abc"), ("ab", -1.0, 1), ("bc", -2.0, 1)]


def varint(number):
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    content = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(content)) + content


def message(values):
    return b"".join(field(number, value) for number, value in values)


def model(pieces=PIECES, training=(), normal=()):
    parts = [(1, message(enumerate(piece, 1))) for piece in pieces]
    return message([*parts, (2, message(training)), (3, message(normal))])


def trie(rules):
    """Compile rules whose keys are one or two ASCII letters: every node has a block of 256 of its own."""
    nodes = sorted({key[:end] for key in rules for end in range(len(key) + 1)})
    block = {key: 256 * (place + 1) for place, key in enumerate(nodes)}
    units, texts = np.zeros(256 * (len(nodes) + 1), "<u4"), b""
    for key in nodes:
        at = block[key[:-1]] ^ ord(key[-1]) if key else 0
        units[at] = (at ^ block[key]) << 10 | (ord(key[-1]) if key else 0) | (1 << 8 if key in rules else 0)
        if key in rules:
            units[block[key]] = 1 << 31 | len(texts)
            texts += rules[key].encode() + b"\0"
    return struct.pack("<I", units.nbytes) + units.tobytes() + texts


@pytest.fixture
def load(tmp_path):
    def write(name, content):
        (tmp_path / name).write_bytes(content)
        return load_tokenizer(tmp_path / name)

    return write


def test_unigram_takes_the_likeliest_pieces_and_no_control_token_of_the_text(load):
    tokenizer = load("tiny.model", model())
    assert tokenizer.encode("ab  b ") == [6, 3, 5]
    assert tokenizer.encode("azzb") == [3, 4, 0, 5]
    assert tokenizer.decode(tokenizer.encode("ab b")) == "ab b"
    assert not tokenizer.control & set(tokenizer.encode("a<s></s>b"))
    assert tokenizer.encode("<s>", special=True) == [1]
    assert load("tiny.model", model(normal=[(3, 0), (4, 0)])).encode("ab  ") == [4, 5, 3, 3]
    assert tokenizer.encode("") == tokenizer.encode("  ") == []


def test_bytes_stand_for_unknown_characters(load):
    pieces = [*PIECES, *((f"<0x{byte:02X}>", 0.0, 6) for byte in range(256))]
    for kind in (1, 2):
        tokenizer = load("tiny.model", model(pieces, training=[(3, kind)]))
        first = len(PIECES)
        assert tokenizer.encode("bé") == [3, 5, first + 0xC3, first + 0xA9]
        assert tokenizer.decode(tokenizer.encode("bé 東")) == "bé 東"
        assert first + 0x41 not in tokenizer.encode("<0x41>")


def test_user_defined_pieces_win_inside_words(load):
    pieces = [*PIECES, ("bab", 0.0, 4), ("<sep>", 0.0, 4)]
    tokenizer = load("tiny.model", model(pieces))
    assert tokenizer.encode("ababa") == [3, 4, 8, 4]
    assert tokenizer.encode("a<sep>b <sep>") == [3, 4, 9, 5, 3, 9]
    assert tokenizer.decode(tokenizer.encode("a<sep>bab")) == "a<sep>bab"
    assert not tokenizer.control & {8, 9}


def test_bpe_merges_by_score(load):
    tokenizer = load("tiny.model", model(MERGED, training=[(3, 2)]))
    assert [tokenizer.token(id) for id in tokenizer.encode("abc bc")] == [SPACE, "ab", "c", SPACE, "bc"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (model() + field(9, b"abc")[:-1], "after its message"),
        (model() + b"\xff", "does not end"),
        (b"\x0b", "unknown kind 3"),
        (model([*PIECES, ("ab", -1.0, 1)]), "'ab' stands twice"),
        (model(PIECES[1:]), "0 unknown pieces"),
        (model([*PIECES, (b"\xff", -1.0, 1)]), "not UTF-8"),
        (model([*PIECES, ("x", float("nan"), 1)]), "score nan"),
        (model([*PIECES, ("x", 0.0, 5)]), "unused pieces, which cannot be imported"),
        (model([*PIECES, ("<0x41>", 0.0, 6)]), "255 are missing, <0x00> first"),
        (model([*PIECES, ("x", 0.0, 3)]), "control pieces of one character"),
        (model(training=[(3, 3)]), "model type 3"),
        (model(normal=[(2, b"\1\2")]), "normalisation rules say"),
        (model(normal=[(2, trie({"x": "y"})[:1032])]), "normalisation rules say"),
        (model(normal=[(2, trie({"x": "y"})[:-1])]), "lies outside"),
        (b"", "is empty"),
    ],
)
def test_damaged_models_are_refused(load, content, message):
    with pytest.raises(ModelFileError, match=message) as caught:
        load("tiny.model", content)
    assert caught.value.hint


def test_rules_are_read_from_their_trie():
    rules = {"x": "a", "xy": "bb", "z": ""}
    assert charsmap.rules(trie(rules)) == rules


def test_the_longest_rule_is_applied_once_at_each_place(load):
    rules = {"x": "a", "xy": "bxb", "z": "", "q": " "}
    tokenizer = load("tiny.model", model(normal=[(2, trie(rules))]))
    assert tokenizer.normalise("xyxz") == SPACE + "bxba"
    assert tokenizer.normalise("qqaq qb q") == f"{SPACE}a{SPACE}b"
    assert tokenizer.normalise("zq") == tokenizer.normalise(SPACE) == ""


def test_a_user_defined_piece_is_not_normalised(load):
    pieces = [*MERGED, ("xc", 0.0, 4), ("xcx", 0.0, 4)]
    for kind in (1, 2):
        tokenizer = load("tiny.model", model(pieces, training=[(3, kind)], normal=[(2, trie({"x": "a", "c": "b"}))]))
        assert [tokenizer.token(id) for id in tokenizer.encode("xxcxxcab")] == [SPACE, "a", "xcx", "xc", "ab"]


def test_of_equal_merges_the_left_one_comes_first(load):
    some = [("a", -9.0, 1), ("aa", -1.0, 1), ("aaa", -2.0, 1)]
    tokenizer = load("tiny.model", model([*CONTROLS, *some], training=[(3, 2)], normal=[(3, 0)]))
    assert [tokenizer.token(id) for id in tokenizer.encode("aaaaa")] == ["aa", "aaa"]
    assert [tokenizer.token(id) for id in tokenizer.encode("aaa")] == ["aaa"]


def test_sums_are_rounded_to_float32(load):
    """After -65536 a float32 cannot tell -2 from what is a little less, and the first found stays."""
    pieces = [*CONTROLS, ("x", -(2.0**16), 1), ("ab", -2 - 2.0**-9, 1), ("a", -1.0, 1), ("b", -1.0, 1)]
    tokenizer = load("tiny.model", model(pieces, normal=[(3, 0)]))
    assert [tokenizer.token(id) for id in tokenizer.encode("ab")] == ["a", "b"]
    assert [tokenizer.token(id) for id in tokenizer.encode("xab")] == ["x", "ab"]


def test_every_way_to_encode_gives_the_same_ids(load):
    for kind in (1, 2):
        pieces = PIECES if kind == 1 else MERGED
        tokenizer = load("tiny.model", model(pieces, training=[(3, kind)]))
        for text in ("ab  b zz ab", "", "a<s>b", " ab"):
            ids = tokenizer.encode(text)
            assert list(chain.from_iterable(tokenizer.encode_parts(text))) == ids
            assert tokenizer.encode_batch([text, text]) == [ids, ids]
            assert tokenizer.encode_with_ends(text)[0] == ids
            assert tokenizer.encode(text.replace("<s>", ""), special=True) == tokenizer.encode(text.replace("<s>", ""))


def test_ends_are_places_of_the_text_as_it_was_given(load):
    tokenizer = load("tiny.model", model(normal=[(2, trie({"xy": "ab"}))]))
    assert tokenizer.encode_with_ends(" xy  bzz ") == ([6, 3, 5, 0], [3, 5, 6, 8])


SCORES = st.sampled_from([-1.0, -2.0, -2.5, -(2.0**-9), -1.1, -(2.0**16), -60_000.3])
SOME = st.dictionaries(st.text("abc" + SPACE, min_size=1, max_size=4), SCORES, max_size=9)
TEXT = st.text("abcxyzq \u6771\U0001f98a" + SPACE, max_size=40)
RULES = {"x": "a", "xy": "bxb", "z": "", "q": " ", "yy": "ab"}


def some_model(pieces, users, spelled, normal=()):
    kinds = [(text, score, 1) for text, score in pieces.items() if text not in users]
    more = [(f"<0x{byte:02X}>", 0.0, 6) for byte in range(256)] if spelled else []
    return model([*CONTROLS, *kinds, *((text, 0.0, 4) for text in users), *more], normal=normal)


@needs_numba
@given(SOME, st.sets(st.text("abc", min_size=2, max_size=3), max_size=2), st.booleans(), TEXT, st.integers(1, 9))
def test_the_compiled_search_gives_what_the_plain_one_gives(pieces, users, spelled, text, size):
    """Scores that tie, that float32 cannot add, and that grow beyond what is taken off again."""
    model_read = read(some_model(pieces, users, spelled))
    plain, compiled = Unigram(model_read), Compiled(model_read)
    expected = [list(part) for part in plain.cut(text)]
    assert [list(part) for part in compiled.cut(text)] == expected
    for cutter in (plain, compiled):
        cutting = cutter.begin()
        parts = [cutting.push(text[start : start + size], final=False) for start in range(0, len(text), size)]
        parts.append(cutting.push("", final=True))
        assert list(chain.from_iterable(parts)) == expected[0]


@pytest.mark.parametrize("kind", [1, 2])
@given(text=TEXT, size=st.integers(1, 9), normal=st.sampled_from([(), ((3, 0),), ((4, 0),), ((3, 0), (4, 0))]))
def test_a_text_that_comes_part_by_part_gives_the_ids_of_the_whole(kind, text, size, normal):
    pieces = [*(PIECES if kind == 1 else MERGED), ("xc", 0.0, 4), ("xcx", 0.0, 4)]
    content = model(pieces, training=[(3, kind)], normal=[*normal, (2, trie(RULES))])
    tokenizer = Tokenizer(definition(content))
    stream = tokenizer.begin()
    parts = [stream.push(text[start : start + size]) for start in range(0, len(text), size)]
    assert list(chain.from_iterable([*parts, stream.finish()])) == tokenizer.encode(text)


@pytest.mark.parametrize("fast", [False, pytest.param(True, marks=needs_numba)])
@pytest.mark.parametrize("unit", ["ab b ba ", "ab"])
def test_the_memory_of_a_stream_does_not_grow_with_its_text(unit, fast):
    """All ways are open over the second text: pieces overlap at every place."""
    model_read = read(model([*PIECES, ("ba", -6.0, 1)], normal=[(3, 0)]))
    cutting = (Compiled if fast else Unigram)(model_read).begin()
    text = unit.replace(" ", SPACE) * 100
    count = 0
    for _ in range(50):
        count += len(cutting.push(text, final=False))
    # The plain search waits for a place that no piece reaches across, and "abab" has none.
    assert count > 49 * 100 if fast or unit != "ab" else count == 0


def test_the_tokenizer_json_is_an_ordinary_one(load, tmp_path):
    pieces = [*PIECES, ("<sep>", 0.0, 4)]
    for kind in (1, 2):
        tokenizer = load("tiny.model", model(pieces, training=[(3, kind)]))
        tokenizer.save(tmp_path / "saved")
        again = load_tokenizer(tmp_path / "saved")
        library = tokenizers.Tokenizer.from_file(str(tmp_path / "saved" / "tokenizer.json"))
        for text in ("ab ba  a", "abb zz a", "a<sep>b"):
            assert again.encode(text) == tokenizer.encode(text) == library.encode(text).ids
            assert again.decode(again.encode(text)) == library.decode(library.encode(text).ids)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({KEY: "?"}, "not base64"),
        ({KEY: 3}, "not base64"),
        ({KEY: base64.b64encode(model(PIECES[:-1])).decode()}, "is not that of the SentencePiece model"),
        ({KEY: base64.b64encode(model()[:-1]).decode()}, "does not end"),
    ],
)
def test_a_tokenizer_json_that_contradicts_its_model_is_refused(change, message):
    made = json.loads(definition(model()))
    with pytest.raises(ModelFileError, match=message):
        Tokenizer(json.dumps({**made, "model": {**made["model"], **change}}))


def test_added_words_beside_a_model_are_refused_and_added_control_tokens_taken():
    made = json.loads(definition(model()))
    token = {**made["added_tokens"][0], "id": len(PIECES), "content": "<end>"}
    more = Tokenizer(json.dumps({**made, "added_tokens": [*made["added_tokens"], token]}))
    assert more.encode("ab<end>ab", special=True) == [6, len(PIECES), 6]
    assert more.decode([6, len(PIECES), 6]) == "ab ab"
    assert more.decode([6, len(PIECES)], special=True) == "ab<end>"
    with pytest.raises(ModelFileError, match="'<end>' is a word"):
        Tokenizer(json.dumps({**made, "added_tokens": [*made["added_tokens"], {**token, "special": False}]}))


@pytest.mark.parametrize("kind", [1, 2])
def test_a_long_line_takes_memory_for_little_more_than_its_ids(load, kind):
    tokenizer = load("tiny.model", model(PIECES if kind == 1 else MERGED, training=[(3, kind)]))
    text = "abba ab " * 1_000
    tokenizer.encode(text[:80])
    tracemalloc.start()
    tokenizer.encode(text)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 40 * len(text)


@needs_numba
@pytest.mark.parametrize("count", [50, 70, 90, 150])
def test_at_most_half_of_the_slots_of_the_compiled_table_are_taken(count):
    """A fuller table finds the same pieces, and looks into more slots for each."""
    pieces = [*CONTROLS, *((chr(0x4E00 + number), -5.0, 1) for number in range(count))]
    table = Compiled(read(model(pieces))).table
    assert (table[:, 0] >= 0).sum() == count <= len(table) / 2


def test_no_string_is_the_longest_of_none():
    assert Longest([]).longest == 0
    assert Longest(["a", "bc"]).longest == 2
