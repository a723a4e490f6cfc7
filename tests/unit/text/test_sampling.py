"""Random cuts: the ends of the scale are the engine's, what lies between has exactly the right frequencies."""

import itertools
import json
import math
from collections import Counter, defaultdict
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer as Engine
from tokenizers import models

from orrery.errors import UsageError
from orrery.text.algorithms.dropout import drop
from orrery.text.algorithms.lattice import Lattice
from orrery.text.algorithms.sampling import bpe_dropout, lattice_of, unigram
from orrery.text.tokenizer import Tokenizer, load_tokenizer
from orrery.text.train import train_tokenizer

TEXTS = [
    "the theme of the bath, the other bathes\n\n",
    "aaaa aaa banana bananas naïve 東京",
    "low lower lowest slow",
] * 3
MERGES = [("a", "b"), ("b", "a"), ("ab", "a"), ("a", "a"), ("ab", "ab")]
RANKS = {pair: rank for rank, pair in enumerate(MERGES)}
SCORES = {"a": -2.0, "b": -2.5, "ab": -2.2, "ba": -3.0, "aba": -3.5, "bb": -6.0}
DRAWS = 6_000
# Few characters inside the vocabulary and some outside, spaces of every kind.
TEXT = st.text(st.sampled_from("the bathmosln\n\t東京Qé🙂"), max_size=30)


@pytest.fixture(scope="module")
def trained():
    return {kind: train_tokenizer(kind, TEXTS, size) for kind, size in SIZES.items()}


SIZES = {"byte_bpe": 290, "char_bpe": 50, "unigram": 45}


def chi_square(draws, expected):
    """Return how many standard deviations the statistic lies above its mean."""
    assert abs(sum(expected.values()) - 1) < 1e-9
    assert draws.keys() <= expected.keys()
    total = draws.total()
    statistic = sum((draws[cut] - total * p) ** 2 / (total * p) for cut, p in expected.items())
    free = len(expected) - 1
    return (statistic - free) / math.sqrt(2 * free)


def all_cuts(word):
    for cuts in itertools.product((False, True), repeat=len(word) - 1):
        ends = [place for place, cut in enumerate(cuts, 1) if cut]
        yield tuple(word[a:b] for a, b in itertools.pairwise([0, *ends, len(word)]))


def dropped(symbols, p):
    """The exact distribution: every subset of places passed over, step by step."""
    places = [place for place in range(len(symbols) - 1) if symbols[place : place + 2] in RANKS]
    result = defaultdict(float)
    for keep in itertools.product((False, True), repeat=len(places)):
        kept = [place for place, keeps in zip(places, keep, strict=True) if keeps]
        weight = math.prod(1 - p if keeps else p for keeps in keep)
        if not kept:
            result[symbols] += weight
            continue
        best = min(RANKS[symbols[place : place + 2]] for place in kept)
        after, place = [], 0
        while place < len(symbols):
            joins = place in kept and RANKS[symbols[place : place + 2]] == best
            after.append("".join(symbols[place : place + 1 + joins]))
            place += 1 + joins
        for cut, probability in dropped(tuple(after), p).items():
            result[cut] += weight * probability
    return result


@given(TEXT)
def test_without_dropout_it_is_the_engine(trained, text):
    for kind in ("byte_bpe", "char_bpe"):
        assert bpe_dropout(trained[kind], 0.0).encode(text, Random(0)) == trained[kind].encode(text)


@given(TEXT)
def test_with_all_merges_dropped_it_is_characters(trained, text):
    ids = bpe_dropout(trained["byte_bpe"], 1.0).encode(text, Random(0))
    assert [trained["byte_bpe"].decode_bytes([id]) for id in ids] == [bytes([byte]) for byte in text.encode()]


@given(TEXT, st.floats(0, 1), st.integers(0, 9))
def test_every_random_cut_spells_the_text(trained, text, amount, seed):
    assert trained["byte_bpe"].decode(bpe_dropout(trained["byte_bpe"], amount).encode(text, Random(seed))) == text
    known = "".join(c for c in text if trained["unigram"].id(c) is not None)
    assert trained["unigram"].decode(unigram(trained["unigram"], amount).encode(known, Random(seed))) == known


@pytest.mark.parametrize("p", [0.1, 0.5, 0.8])
@pytest.mark.parametrize("word", ["ababab", "aaaab"])
def test_dropout_has_the_frequencies_of_the_brute_force(word, p):
    rng = Random(1)
    draws = Counter(tuple(drop(word, RANKS, p, rng)) for _ in range(DRAWS))
    assert chi_square(draws, dropped(tuple(word), p)) < 4
    # The test can fail: the wrong probability is far off.
    assert chi_square(draws, dropped(tuple(word), p + 0.05)) > 20


@given(TEXT)
def test_the_best_cut_is_the_engines(trained, text):
    likeliest = unigram(trained["unigram"], 1e6).encode(text, Random(0))
    expected = trained["unigram"].encode(text)
    lattice, words = lattice_of(trained["unigram"]), trained["unigram"].words(text)
    pieces = [piece for word in words for piece in lattice.best(word, 1)[0][1]]
    known = [trained["unigram"].id(piece) for piece in pieces if trained["unigram"].id(piece) is not None]
    assert [id for id in expected if id != trained["unigram"].special("unknown")] == known
    # Of two cuts with one score the draw may take either.
    assert likeliest == expected or any(tied(lattice, word) for word in words)


def tied(lattice, word):
    first, *second = lattice.best(word, 2)
    return bool(second) and first[0] - second[0][0] < 1e-4


@pytest.mark.parametrize("word", ["abab", "aabba", "b", "abcba"])
def test_all_cuts_are_ranked_and_weighed_as_in_the_brute_force(word):
    lattice = Lattice(SCORES)
    possible = [cut for cut in all_cuts(word) if all(piece in SCORES or len(piece) == 1 for piece in cut)]
    score = {cut: sum(SCORES.get(piece, -16.0) for piece in cut) for cut in possible}
    cuts = lattice.best(word, 100)
    assert {cut for _, cut in cuts} == set(possible)
    assert all(abs(total - score[cut]) < 1e-12 for total, cut in cuts)
    assert [total for total, _ in cuts] == sorted((total for total, _ in cuts), reverse=True)
    assert lattice.best(word, 3) == cuts[:3]
    for alpha in (0.0, 0.3, 1.0, 2.0):
        weights = {cut: math.exp(alpha * score[cut]) for cut in possible}
        for cut in possible:
            assert abs(lattice.probability(word, cut, alpha) - weights[cut] / sum(weights.values())) < 1e-12


@pytest.mark.parametrize("alpha", [0.0, 0.2, 1.0])
def test_unigram_draws_have_the_frequencies_of_the_brute_force(alpha):
    lattice, rng, word = Lattice(SCORES), Random(2), "ababb"
    draws = Counter(tuple(lattice.sample(word, alpha, rng)) for _ in range(DRAWS))
    possible = [cut for cut in all_cuts(word) if all(piece in SCORES for piece in cut)]

    def exact(alpha):
        weights = {cut: math.exp(alpha * sum(SCORES[piece] for piece in cut)) for cut in possible}
        return {cut: weight / sum(weights.values()) for cut, weight in weights.items()}

    assert chi_square(draws, exact(alpha)) < 4
    assert chi_square(draws, exact(alpha + 0.1)) > 12


def test_equal_seeds_give_equal_ids_and_others_do_not(trained):
    for sampler in (bpe_dropout(trained["char_bpe"], 0.5), unigram(trained["unigram"], 0.1)):
        drawn = [tuple(sampler.encode(TEXTS[0], Random(seed))) for seed in (1, 1, 2, 3)]
        assert drawn[0] == drawn[1]
        assert len(set(drawn)) > 1


PUBLISHED = ["Thanks for all the fish, naïve café 東京 🙂", "  two  spaces\n"]


def test_gpt2_is_cut_as_the_engine_cuts_it(data_set):
    gpt2 = load_tokenizer(data_set("tokenizer-reference/gpt2"))
    assert all(bpe_dropout(gpt2, 0.0).encode(text, Random(0)) == gpt2.encode(text) for text in PUBLISHED)


@pytest.mark.slow
def test_sentencepiece_is_cut_as_the_engine_cuts_it(data_set):
    pieces = load_tokenizer(data_set("tokenizer-reference/sentencepiece/test_model.model"))
    assert all(unigram(pieces, 1e6).encode(text, Random(0)) == pieces.encode(text) for text in PUBLISHED)


def test_words_taken_whole_count_as_a_merge():
    engine = Engine(models.BPE({"a": 0, "b": 1, "ab": 2, "abab": 3}, [("a", "b")], ignore_merges=True))
    tokenizer = Tokenizer(engine.to_str())
    assert tokenizer.encode("abab") == bpe_dropout(tokenizer, 0.0).encode("abab", Random(0)) == [3]
    assert bpe_dropout(tokenizer, 1.0).encode("abab", Random(0)) == [0, 1, 0, 1]


def test_byte_tokens_stand_for_what_is_unknown():
    pieces = [f"<0x{byte:02X}>" for byte in range(256)]
    bpe = models.BPE({p: id for id, p in enumerate(["<unk>", "a", *pieces])}, [], unk_token="<unk>", byte_fallback=True)
    words = models.Unigram([("<unk>", 0.0), ("a", -1.0), *((p, -9.0) for p in pieces)], 0, True)
    for model, sampler in ((bpe, bpe_dropout), (words, unigram)):
        tokenizer = Tokenizer(Engine(model).to_str())
        assert sampler(tokenizer).encode("aéa🙂", Random(0)) == tokenizer.encode("aéa🙂")


def test_what_cannot_be_sampled_is_refused_by_name(trained):
    with pytest.raises(UsageError, match="a Unigram tokenizer, not BPE"):
        bpe_dropout(trained["unigram"])
    with pytest.raises(UsageError, match="a BPE tokenizer, not Unigram"):
        unigram(trained["char_bpe"])
    with pytest.raises(UsageError, match="with probability 2"):
        bpe_dropout(trained["char_bpe"], 2.0)
    with pytest.raises(UsageError, match="worst cuts"):
        unigram(trained["unigram"], -1.0)
    suffixed = Engine(models.BPE({"a": 0, "b</w>": 1}, [], end_of_word_suffix="</w>"))
    with pytest.raises(UsageError, match="marks the ends of words"):
        bpe_dropout(Tokenizer(suffixed.to_str()))
    added = json.loads(json.dumps(trained["char_bpe"].definition))
    added["added_tokens"].append(
        dict(added["added_tokens"][0], id=trained["char_bpe"].size, content="X", special=False)
    )
    with pytest.raises(UsageError, match="takes 1 added words out of a text"):
        bpe_dropout(Tokenizer(json.dumps(added)))


def test_strings_that_break_software_come_back_from_every_cut(data_set):
    texts = json.loads(data_set("naughty-strings/blns.json").read_text(encoding="utf-8"))
    tokenizer = train_tokenizer("byte_bpe", texts, 800)
    never, often = bpe_dropout(tokenizer, 0.0), bpe_dropout(tokenizer, 0.3)
    for text in texts:
        assert never.encode(text, Random(0)) == tokenizer.encode(text)
        assert tokenizer.decode(often.encode(text, Random(0))) == text
