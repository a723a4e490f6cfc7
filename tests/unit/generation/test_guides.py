import json
import re
import threading
from contextlib import suppress

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from orrery.errors import UsageError
from orrery.generation.generate import generate
from orrery.generation.grammar import Form, Formed, TokenVocabulary
from orrery.generation.guides import SpellingIndex, without
from orrery.generation.row import Limits
from orrery.generation.samplers import sampler
from tiny_models import TOKENIZER, tiny

BYTES = [bytes([byte]) for byte in range(256)]
SPELLINGS = [*BYTES, b"bad", b"ba", b"ad", b"ly bad", b"dba", b'{"', b'": ', b"<end>"]
END = len(SPELLINGS) - 1
INDEX = SpellingIndex(SPELLINGS)
WORDS = ["bad", "dd"]


def written(guide, seed, tokens, draw_from=None):
    """Draw tokens that the guide allows; return the answer's bytes and whether it ended."""
    rng, answer = torch.Generator().manual_seed(seed), b""
    for _ in range(tokens):
        allowed = guide.allowed()
        if draw_from is not None:
            allowed = allowed & draw_from
        token = int(torch.multinomial(allowed.double(), 1, generator=rng))
        if token == END:
            return answer, True
        answer += SPELLINGS[token]
        guide.push(token)
        if guide.over:
            return answer, True
    return answer, False


@given(st.integers(0, 10_000))
def test_a_bad_word_never_comes_however_it_is_cut(seed):
    some = torch.zeros(len(SPELLINGS), dtype=torch.bool)
    some[[*b"abd ", *range(256, END)]] = True
    answer, _ = written(without(WORDS, INDEX)(), seed, 60, some)
    assert not any(word.encode() in answer for word in WORDS)


def test_only_what_completes_a_bad_word_is_forbidden():
    guide = without(["bad"], INDEX)()
    assert {id for id, allowed in enumerate(guide.allowed().tolist()) if not allowed} == {256, 259}
    for token in (ord("x"), 257):  # "x", "ba"
        guide.push(token)
    hidden = {SPELLINGS[id] for id, allowed in enumerate(guide.allowed().tolist()) if not allowed}
    assert hidden == {b"d", b"dba", b"bad", b"ly bad"}


FORMS = [
    Form(regex=r"[a-c]{3}/[0-9]+(\.[0-9])?"),
    Form(regex=r"(yes|no|it's \"so\")"),
    Form(schema={"type": "object", "properties": {"name": {"enum": ["a", "b"]}, "n": {"type": "integer"}},
                 "required": ["name", "n"], "additionalProperties": False}),
    Form(grammar='start: "(" start ")" | "x"'),
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS, ids=["number", "choice", "schema", "grammar"])
@given(seed=st.integers(0, 10_000))
def test_every_answer_has_the_form(form, seed):
    answer, ended = written(Formed.begin(form, TokenVocabulary(SPELLINGS, [END], [END])), seed, 60)
    if not ended:
        return
    text = answer.decode()
    if form.regex is not None:
        assert re.fullmatch(form.regex, text)
    elif form.schema is not None:
        value = json.loads(text)
        assert set(value) == {"name", "n"}
        assert value["name"] in "ab"
        assert type(value["n"]) is int
    else:
        depth = text.index("x")
        assert text == "(" * depth + "x" + ")" * depth


@pytest.mark.parametrize("form", FORMS, ids=["number", "choice", "schema", "grammar"])
def test_a_vocabulary_without_an_end_is_served_too(form):
    guide = Formed.begin(form, TokenVocabulary(SPELLINGS[:END], [], []))
    assert len(guide.allowed()) == END
    answer, _ = written(guide, 1, 40)
    assert answer


@pytest.mark.parametrize("regex", [r"(a", r"(?=x)y", r"(a)\1", "(" * 5000], ids=range(4))
def test_a_form_that_cannot_be_used_is_refused(regex):
    with pytest.raises(UsageError, match="form cannot be used"):
        Formed.begin(Form(regex=regex), TokenVocabulary(SPELLINGS, [END], [END]))


@pytest.mark.timeout(20)
@pytest.mark.parametrize("regex", [r"((((a{1,99}){1,99}){1,99}){1,99}b){1,99}c", "(a|b|ab)*" * 60 + "c"], ids=range(2))
def test_a_form_with_many_states_is_followed_or_refused_in_time(regex):
    with suppress(UsageError):
        written(Formed.begin(Form(regex=regex), TokenVocabulary(SPELLINGS, [END], [END])), 1, 200)


@pytest.mark.parametrize(
    ("regex", "text"),
    [
        ("a/b", "a/b"),
        (r"a\/b", "a/b"),
        (r"a\\/b", "a\\/b"),
        ("[/]{2}", "//"),
        ("a\nb", "a\nb"),
        ('"', '"'),
        ("a#b", "a#b"),
    ],
)
def test_a_regular_expression_means_what_it_says(regex, text):
    assert re.fullmatch(regex, text)
    guide = Formed.begin(Form(regex=regex), TokenVocabulary(SPELLINGS, [END], [END]))
    for byte in text.encode():
        assert guide.allowed()[byte]
        guide.push(byte)
    assert guide.over


def chain(links):
    """Return a schema whose references follow each other."""
    rules = {f"r{n}": {"type": "array", "items": {"$ref": f"#/$defs/r{n + 1}"}} for n in range(links)}
    return {"$defs": {**rules, f"r{links}": {"type": "null"}}, "$ref": "#/$defs/r0"}


def holding_itself():
    itself = []
    itself.append(itself)
    return {"enum": itself}


TOO_MUCH = {
    "the least whole number": {"schema": {"const": -(2**63)}},
    "one more": {"schema": {"type": "array", "items": {"enum": ["b", -(2**63) + 1]}}},
    "3,000 references": {"schema": chain(3_000)},
    "1,000 properties": {"schema": {"properties": {f"p{n}": {} for n in range(1_000)}}},
    "a list that holds itself": {"schema": holding_itself()},
    "5,000 rules": {"grammar": "start: r0\n" + "".join(f"r{n}: r{n + 1}\n" for n in range(5_000)) + 'r5000: "a"\n'},
    "100,000 characters": {"regex": "(a?)" * 25_000},
}


@pytest.mark.parametrize("what", TOO_MUCH)
def test_a_form_over_which_the_library_ends_the_program_is_refused(what):
    with pytest.raises(UsageError):
        Form(**TOO_MUCH[what])


@pytest.mark.parametrize("form", [{"schema": chain(290)}, {"schema": {"const": -(2**53)}}], ids=["chain", "number"])
def test_a_form_within_the_limits_is_followed_on_another_thread(form):
    allowed = []
    vocabulary = TokenVocabulary(SPELLINGS, [END], [END])
    thread = threading.Thread(target=lambda: allowed.append(Formed.begin(Form(**form), vocabulary).allowed().any()))
    thread.start()
    thread.join()
    assert allowed == [True]


@pytest.mark.parametrize("arguments", [{}, {"regex": "a", "grammar": "b"}], ids=str)
def test_a_form_is_exactly_one_thing(arguments):
    with pytest.raises(UsageError, match="form of"):
        Form(**arguments)


def test_answers_in_a_batch_keep_each_its_own_form():
    model, vocabulary = tiny("gpt2", torch.float32), TokenVocabulary(TOKENIZER.pieces, TOKENIZER.control, [])
    form = Formed.begin(Form(regex=r"[a-f]{2,9}-[0-9]{2}"), vocabulary)
    limits = Limits(20, 48, guides=(form.copy, without(["7", "ab"], SpellingIndex(TOKENIZER.pieces))))
    draw = sampler(temperature=1.0, vocabulary=TOKENIZER.size)
    prompts = [[5, 9], [7], [8, 8, 120, 14], [40, 41]]
    answers = generate(model, prompts, TOKENIZER, limits, sampler=draw, seed=1)
    assert all(re.fullmatch("[a-f]{2,9}-[0-9]{2}", answer.text) for answer in answers)
    assert not any("7" in answer.text or "ab" in answer.text for answer in answers)
    assert {answer.finish_reason for answer in answers} == {"end"}
    alone = [generate(model, [p], TOKENIZER, limits, sampler=draw, seed=1 + n)[0].ids for n, p in enumerate(prompts)]
    assert [answer.ids for answer in answers] == alone


def test_demands_that_contradict_each_other_are_refused():
    form = Formed.begin(Form(regex="yes"), TokenVocabulary(TOKENIZER.pieces, TOKENIZER.control, []))
    limits = Limits(20, 48, guides=(form.copy, without(["e"], SpellingIndex(TOKENIZER.pieces))))
    with pytest.raises(UsageError, match="no token may follow"):
        generate(tiny("gpt2", torch.float32), [[5]], TOKENIZER, limits)


def test_an_empty_bad_word_is_refused():
    with pytest.raises(UsageError, match="empty"):
        without([""], INDEX)


def test_tokens_that_are_words_can_be_guided_and_may_come_to_an_end():
    words = [b" one", b" two", b" three", b" END"]
    vocabulary = TokenVocabulary(words, [3], [3], blank=True)
    guide = Formed.begin(Form(regex="one( two)+ three"), vocabulary)
    for token, allowed in ((0, [0]), (1, [1]), (1, [1, 2]), (2, [1, 2])):
        assert guide.allowed().nonzero()[:, 0].tolist() == allowed
        guide.push(token)
    assert guide.over
    stuck = Formed.begin(Form(regex="one (four|five)"), vocabulary)
    assert stuck.allowed().tolist() == [True, False, False, False]
    stuck.push(0)
    assert not stuck.allowed().any()  # and who draws is told so
