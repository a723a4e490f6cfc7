"""Each trainer against a reference that counts everything again at every step."""

import itertools
import json
import math
import os
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orrery.errors import UsageError
from orrery.text.algorithms.likelihood import joined, learn, symbols_of
from orrery.text.algorithms.words import of_words
from orrery.text.kinds import TOKENIZERS
from orrery.text.streaming import StreamDecoder
from orrery.text.tokenizer import Tokenizer, load_tokenizer
from orrery.text.train import MOST, train_tokenizer

NEW = [("word", None), ("char_bpe", 60), ("wordpiece", 90), ("unigram", 60)]
TEXTS = ["the cat sat on the mat, the cats sat\n", "naïve café 東京 the mat"]
# Frequent inside many words: "he". Rare, but always together: "qz". Probable as a whole: "heap".
DIFFERENT = {"heap": 6, "hem": 4, "ache": 4, "eh": 2, "qz": 2}


def corpus(counts):
    return [" ".join(word for word, count in counts.items() for _ in range(count))]


def merge(word, pair):
    place = 0
    while place < len(word) - 1:
        if tuple(word[place : place + 2]) == pair:
            word[place : place + 2] = [joined(pair)]
        place += 1


def brute_merges(counts, spell, score, room):
    """Merge the best pair, counting all symbols and pairs of all words again each time."""
    words = [(spell(word), count) for word, count in counts.items()]
    pieces = sorted({symbol for word, _ in words for symbol in word})
    while len(pieces) < room:
        single, pairs = Counter(), Counter()
        for word, count in words:
            for symbol in word:
                single[symbol] += count
            for pair in itertools.pairwise(word):
                pairs[pair] += count
        able = [pair for pair in pairs if pairs[pair] >= 2]
        if not able:
            break
        best = min(able, key=lambda pair: (-score(pairs[pair], *(single[s] for s in pair)), -pairs[pair], pair))
        for word, _ in words:
            merge(word, best)
        if joined(best) not in pieces:
            pieces.append(joined(best))
    return pieces


def brute_wordpiece(counts, room):
    """Try every merge on all words, and keep the one after which a unigram model finds them likeliest."""
    words = [(symbols_of(word), count) for word, count in counts.items()]
    pieces = sorted({symbol for word, _ in words for symbol in word})
    while len(pieces) < room:
        candidates = []
        for pair in {pair for word, _ in words for pair in itertools.pairwise(word)}:
            after = [([*word], count) for word, count in words]
            for word, _ in after:
                merge(word, pair)
            merges = sum(count * len(word) for word, count in words) - sum(count * len(word) for word, count in after)
            gain = round(nats(after) - nats(words), 6)
            if merges >= 2 and gain > 0:
                candidates.append(((-gain, -merges, pair), after))
        if not candidates:
            break
        (_, _, best), words = min(candidates, key=lambda one: one[0])
        if joined(best) not in pieces:
            pieces.append(joined(best))
    return pieces


def nats(words):
    """The log likelihood of the symbols under the unigram model that fits them best."""
    single = Counter()
    for word, count in words:
        for symbol in word:
            single[symbol] += count
    return sum(count * math.log(count / single.total()) for count in single.values())


@given(st.dictionaries(st.text("abc", min_size=1, max_size=6), st.integers(1, 9), min_size=1), st.integers(1, 40))
def test_wordpiece_is_the_brute_force(counts, room):
    expected = brute_wordpiece(counts, room)
    assert learn(counts, room) == expected


def brute_seeds(counts):
    """Return the characters, and what is not always continued by one and the same (nodes of a suffix tree)."""
    after = {}
    for word in counts:
        for a, b in itertools.combinations(range(len(word) + 1), 2):
            after.setdefault(word[a:b], set()).add(word[b : b + 1])
    several = {part for part in after if len(after[part]) > 1 or after[part] == {""}}
    return {*"".join(counts)} | {part for part in several if len(part) > 1}


def unigram_scores(tokenizer):
    return dict(tokenizer.definition["model"]["vocab"][1:])


def test_three_trainers_differ_and_each_is_its_brute_force():
    texts = corpus(DIFFERENT)
    # One spelling for all three: what the engine cuts off a word with a space before is spelled without it.
    wordpiece = train_tokenizer("wordpiece", texts, 16)
    learnt = [wordpiece.token(id) for id in range(1, wordpiece.size - 1)]
    assert learnt == brute_wordpiece(DIFFERENT, 14)
    lines = [word for word, count in DIFFERENT.items() for _ in range(count)]
    bpe = train_tokenizer("char_bpe", lines, 12)
    merged = [bpe.token(id) for id in range(1, bpe.size - 1)]
    assert {*merged} == {*brute_merges(DIFFERENT, list, lambda both, *_: both, 10)}
    unigram = unigram_scores(train_tokenizer("unigram", lines, 60))
    assert {*unigram} <= brute_seeds(DIFFERENT)
    assert {*unigram} > {*"".join(DIFFERENT)}
    assert sum(map(math.exp, unigram.values())) == pytest.approx(1, abs=1e-6)
    chosen = [
        {piece.removeprefix("##") for piece in pieces if len(piece.removeprefix("##")) > 1}
        for pieces in (merged, learnt, unigram)
    ]
    assert all(one != other for one, other in itertools.combinations(chosen, 2)), chosen


@pytest.mark.parametrize(("kind", "vocabulary"), NEW)
def test_no_text_becomes_a_control_token_and_files_keep_it_so(kind, vocabulary, tmp_path):
    for end in ("<|endoftext|>", "END") if kind != "char_bpe" else ("<|endoftext|>",):
        tokenizer = train_tokenizer(kind, [*TEXTS, "END END END <|endoftext|>"] * 3, vocabulary, end)
        tokenizer.save(tmp_path)
        loaded = load_tokenizer(tmp_path)
        for one in (tokenizer, loaded):
            assert one.special("end") not in one.encode(f"the {end} mat")
            assert one.encode(f"the {end}", special=True)[-1] == one.special("end")
            assert one.unknown(one.encode("ψ")) == 1
        assert loaded.fingerprint == tokenizer.fingerprint


@pytest.mark.parametrize(("kind", "vocabulary"), NEW)
def test_decoding_and_streaming(kind, vocabulary):
    tokenizer = train_tokenizer(kind, TEXTS * 3, vocabulary)
    for text in TEXTS:
        ids = tokenizer.encode(text)
        if kind in ("char_bpe", "unigram"):
            assert tokenizer.decode(ids) == text
        assert tokenizer.decode(ids).split() == text.split() or kind == "wordpiece"
        stream = StreamDecoder(tokenizer)
        assert "".join([*map(stream.push, ids), stream.finish()]) == tokenizer.decode(ids)


TRAIN = """
import hashlib, sys
from pathlib import Path
from orrery.text.kinds import TOKENIZERS
from orrery.text.train import MOST, train_tokenizer
text = Path(sys.argv[1]).read_text(encoding="utf-8")[:300_000]
for kind in TOKENIZERS.names():
    train_tokenizer(kind, text.splitlines(keepends=True)).save(sys.argv[2])
    print(kind, hashlib.sha256(Path(sys.argv[2], "tokenizer.json").read_bytes()).hexdigest())
"""


def test_the_same_bytes_for_any_number_of_threads_and_in_every_run(data_set, tmp_path):
    """Three processes for every kind on 300 kB of plays: the hash tables of each are in another order."""
    text = data_set("tiny-shakespeare/input.txt")
    files = {
        subprocess.run(
            [sys.executable, "-c", TRAIN, text, tmp_path],
            env=os.environ | {"RAYON_NUM_THREADS": threads, "TOKENIZERS_PARALLELISM": "true"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for threads in ("1", "2", "2")
    }
    assert len(files) == 1
    assert files.pop().count("\n") == len(TOKENIZERS.names())


def test_order_and_pieces_of_the_texts_change_no_unigram_score():
    lines = [f"{word} {other}\n" for word in ("the", "then", "there") for other in ("cat", "cats", "mat")]
    forward, backward = (train_tokenizer("unigram", order * 3, 40) for order in (lines, lines[::-1]))
    assert forward.definition == backward.definition


@pytest.mark.parametrize("kind", ["char_bpe", "wordpiece", "unigram"])
@pytest.mark.parametrize("vocabulary", [2, 5])
def test_vocabularies_without_room_are_refused(kind, vocabulary):
    with pytest.raises(UsageError):
        train_tokenizer(kind, TEXTS, vocabulary)


@pytest.mark.parametrize("kind", ["char_bpe", "unigram"])
def test_a_mark_stays_with_its_letter(kind):
    """Vowels of Hindi and Thai are marks, and so are accents that are written apart."""
    words = ["\u0928\u092e\u0938\u094d\u0924\u0947", "\u0e1e\u0e39\u0e14", "cafe\u0301"]
    tokenizer = train_tokenizer(kind, [" ".join(words) + " \u2764\ufe0f.\n"] * 9, 60)
    assert tokenizer.words(" ".join(words)) == [words[0], " " + words[1], " " + words[2]]
    assert all(tokenizer.id(" " + word) is not None for word in words[1:])
    assert tokenizer.words("\u2764\ufe0f a") == ["\u2764\ufe0f", " a"]


def test_a_merge_that_spells_the_end_token_is_refused():
    with pytest.raises(UsageError, match="END"):
        train_tokenizer("char_bpe", ["END END END"], 60, "END")


@pytest.fixture
def slides(data_set):
    return json.loads(data_set("course-slides/slides.json").read_text(encoding="utf-8"))


def test_slide_words(slides):
    example = slides["D_tokenizers"]
    tokenizer = train_tokenizer("word", [example["word"]["in"].lower()])
    for row in (example["word"], example["word_oov"]):
        assert [tokenizer.token(id) for id in tokenizer.encode(row["in"].lower())] == row["out"]


def test_slide_characters(slides):
    row = slides["D_tokenizers"]["character"]
    tokenizer = train_tokenizer("character", [row["in"].lower()])
    shown = [tokenizer.token(id) for id in tokenizer.encode(row["in"].lower()) if tokenizer.token(id) != " "]
    assert shown[: len(row["first"])] == row["first"]


def test_slide_padding(slides):
    example = slides["G11_padding"]
    rows = [sentence.split()[: example["block"]] for sentence in example["sentences"]]
    vocabulary = ["<PAD>", *sorted({word for row in rows for word in row})]
    assert len(vocabulary) == 57
    tokenizer = Tokenizer(of_words(vocabulary).to_str(), {"pad": "<PAD>"})
    ids = [tokenizer.encode(" ".join(row)) for row in rows]
    padded = [row + [tokenizer.special("pad")] * (example["block"] - len(row)) for row in ids]
    assert padded == example["ids"]


def test_the_largest_vocabulary_may_be_asked_for_and_no_larger():
    assert train_tokenizer("character", ["ab"], MOST).size == train_tokenizer("character", ["ab"]).size
    with pytest.raises(UsageError, match="more than any model has"):
        train_tokenizer("character", ["ab"], MOST + 1)
