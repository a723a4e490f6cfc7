import itertools
import threading
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orrery.data.cleaning.filters import QUALITY, REPETITION, Between, Filtered, Matching, parse_rules
from orrery.data.cleaning.measures import MEASURES, gram_numbers
from orrery.data.corpora import Document, read_corpus
from orrery.errors import UsageError

FEW_WORDS = st.lists(st.sampled_from(["a", "bb", "ccc", "d"]), max_size=40)


def distinct(count: int, word: str = "word") -> list[str]:
    return [f"{word}{number:04}" for number in range(count)]


def lines(good: int, bad: int, line: str) -> str:
    """``good`` lines that differ, ``bad`` of another kind."""
    return "\n".join([f"this is line {number}" for number in range(good)] + [line.format(n) for n in range(bad)])


# For each rule of Gopher a text on either side of its bound: the first passes, at the bound itself where it can.
SIDES = {
    "words": (" ".join(distinct(50)), " ".join(distinct(49))),
    "mean_word_length": ("abc abcd ab", "abc abc ab"),
    "hash_ratio": ("# " + " ".join(distinct(9)), "# " + " ".join(distinct(8))),
    "ellipsis_ratio": ("so... " + " ".join(distinct(9)), "so… " + " ".join(distinct(8))),
    "bullet_lines": (lines(1, 9, "- point {}"), lines(1, 10, "• point {}")),
    "ellipsis_lines": (lines(7, 3, "more {}..."), lines(7, 4, "more {}…")),
    "words_with_letters": ("a b c d 5", "a b c 4 5"),
    "stop_words": ("The dog has to", "the dog, the cat"),
    "duplicate_lines": (lines(6, 4, "same"), lines(6, 5, "same")),
    "duplicate_paragraphs": ("\n\n".join("aaaabcdefg"), "\n \n".join("aaaaabcdef")),
    "duplicate_line_characters": ("1234567890\n1234567890\n" + "x" * 30, "1234567890\n1234567890\n" + "x" * 29),
    "duplicate_paragraph_characters": ("1234567890\n\n1234567890\n\n" + "x" * 30, "12345\n\n12345\n\n" + "x" * 14),
    "top_2_grams": ("a b a b " + "x" * 8 + " " + "y" * 8, "a b a b " + "x" * 8 + " " + "y" * 7),
    "top_3_grams": ("a b c a b c " + "x" * 28, "a b c a b c " + "x" * 27),
    "top_4_grams": ("a b c d a b c d " + "x" * 42, "a b c d a b c d " + "x" * 41),
}
for size, percent in zip(range(5, 11), (15, 14, 13, 12, 11, 10), strict=True):
    gram = " ".join("abcdefghij"[:size])
    rest = -(-2 * size * 100 // percent) - 2 * size  # the least other characters with which the share passes
    SIDES[f"duplicate_{size}_grams"] = (f"{gram} {'x' * rest} {gram}", f"{gram} {'x' * (rest - 1)} {gram}")


@pytest.mark.parametrize("rule", QUALITY + REPETITION, ids=lambda rule: rule.name)
def test_each_rule_of_gopher_on_both_sides_of_its_bound(rule: Between) -> None:
    passes, falls = SIDES[rule.name]
    assert rule(1, Document("", passes)) is None, MEASURES[rule.name](passes)
    assert rule(1, Document("", falls)) is not None, MEASURES[rule.name](falls)


def test_the_upper_bounds_of_both_lengths() -> None:
    words, mean = QUALITY[0], QUALITY[1]
    assert [words(1, Document("", "w " * count)) for count in (100_000, 100_001)] == [
        None,
        "1e+05, at most 100000 allowed",
    ]
    assert [mean(1, Document("", "w" * size)) is None for size in (10, 11)] == [True, False]


def test_measures_that_gopher_lacks() -> None:
    assert MEASURES["characters"]("a b") == 3
    assert MEASURES["alphabetic"]("ab 1 .") == 0.5
    assert MEASURES["punctuated_lines"]("One.\n\n  Two!  \nthree\nfour,") == 0.5


@pytest.mark.parametrize("name", MEASURES)
def test_a_text_of_nothing_measures_zero(name: str) -> None:
    assert [MEASURES[name](text) for text in ("", "\n")] == ([0, 1] if name == "characters" else [0, 0])


@given(FEW_WORDS, st.integers(2, 6))
def test_repeated_grams_equal_a_plain_count(words: list[str], size: int) -> None:
    text, length = " ".join(words), sum(map(len, words)) or 1
    grams = [tuple(words[i : i + size]) for i in range(len(words) - size + 1)]
    counts = Counter(grams)
    covered = {i + place for i, gram in enumerate(grams) if counts[gram] > 1 for place in range(size)}
    from orrery.data.cleaning.measures import duplicate_grams, top_gram

    assert duplicate_grams(text, size) == sum(len(words[i]) for i in covered) / length
    most = max(counts.values(), default=0)
    top = max((len("".join(gram)) for gram, count in counts.items() if count == most), default=0)
    assert top_gram(text, size) == (most * top / length if most > 1 else 0)
    numbers = gram_numbers(text, size).tolist()
    assert len(numbers) == len(grams)
    assert len(set(zip(numbers, grams, strict=True))) == len(set(numbers)) == len(set(grams))


def test_prose_passes_where_tables_and_lists_fall(data_set) -> None:
    data_set("eltec-novels")
    novels = list(itertools.islice(read_corpus("eltec-novels/val"), 2))
    rules = [rule for rule in parse_rules("gopher") if rule.name not in ("words", "stop_words")]
    chapters = [Document(novel.name, novel.text[50_000:80_000]) for novel in novels]
    assert len(list(Filtered(chapters, rules))) == 2
    assert list(Filtered([Document("table", "| 1 | 2 |\n" * 40), Document("toc", "- 1.2 ...\n" * 40)], rules)) == []


def test_it_counts_each_reason_and_shows_examples() -> None:
    documents = [Document(f"d{n}", text) for n, text in enumerate(["", "# x", "fine words here", "# y", "ab 5", "# z"])]
    told: list[tuple[str, str]] = []
    rules = [*parse_rules("characters=1:,hash_ratio=:0.4"), Matching(r"\d")]
    filtered = Filtered(documents, rules, lambda document, rule, why: told.append((document.name, rule)))
    assert [document.name for document in filtered] == ["d2"]
    assert (filtered.read, filtered.kept) == (6, 1)
    assert filtered.reasons == {"characters": 1, "hash_ratio": 3, r"matches \d": 1}
    assert told[0] == ("d0", "characters")
    assert len(told) == 5
    assert filtered.table() == [
        ("kept", "1", "16.7 %", "15 of 28 characters"),
        ("characters", "1", "16.7 %", "d0: 0, at least 1 asked"),
        ("hash_ratio", "3", "50.0 %", "; ".join(f"d{n}: 0.5, at most 0.4 allowed" for n in (1, 3, 5))),
        (r"matches \d", "1", "16.7 %", "d4: '5'"),
    ]
    assert Filtered([], rules).table() == [("kept", "0", "0.0 %", "0 of 0 characters")]


def test_rules_are_read_from_words() -> None:
    assert parse_rules("words=2:5, alphabetic=0.5:") == [Between("words", 2, 5), Between("alphabetic", 0.5)]
    assert parse_rules("gopher") == parse_rules("gopher-quality,gopher-repetition") == [*QUALITY, *REPETITION]
    assert {rule.name for rule in parse_rules("gopher")} == set(SIDES)
    for wrong in ("gofer", "gopher=1:2", "words", "wrds=1:2", "words=5", "words=5:2", "words=a:b", "words=nan:"):
        with pytest.raises(UsageError):
            parse_rules(wrong)


def test_a_pattern_looks_at_the_beginning_of_each_line() -> None:
    rule = Matching("secret")
    assert rule(1, Document("", "nothing\nthe secret is")) == "'secret'"
    assert rule(1, Document("", "x" * 1000 + "secret")) is None
    with pytest.raises(UsageError, match="not a regular expression"):
        Matching("(")


def test_a_pattern_that_needs_ages_is_stopped() -> None:
    hostile = Document("hostile", "a" * 60 + "!")
    with pytest.raises(UsageError, match=r"on hostile takes over 0\.2 s"):
        Matching(r"(a+)+$", seconds=0.2)(1, hostile)
    assert Matching(r"(a+)+$", seconds=5.0)(1, Document("", "aaa")) == "'aaa'"
    answers: list[str | None] = []
    thread = threading.Thread(target=lambda: answers.append(Matching("b")(1, Document("", "abc"))))
    thread.start()
    thread.join()
    assert answers == ["'b'"]
