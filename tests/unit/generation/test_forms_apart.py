"""Forms that processes of their own hold: the same tokens as here, a bound in time, and rows that wait for no other."""

import contextlib
import gc
import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from jaxtyping import Bool
from torch import Tensor

from orrery.errors import MachineError, UsageError
from orrery.generation import engine as engines
from orrery.generation import forms, forms_alone, forms_apart
from orrery.generation import row as rows
from orrery.generation.engine import Engine
from orrery.generation.form_process import BEGINNING
from orrery.generation.forms import FormsOfVocabularies
from orrery.generation.forms_alone import FormsAlone
from orrery.generation.forms_apart import STARTING, FormedApart, FormsApart
from orrery.generation.generate import generate
from orrery.generation.grammar import Form, Formed
from orrery.generation.guides import Guide
from orrery.generation.requests import Request
from orrery.generation.row import Limits
from orrery.generation.vocabulary import TokenVocabulary
from slow_requests import patterns, schemas
from tiny_models import TOKENIZER, smallest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes that fork")

BYTES = [bytes([byte]) for byte in range(256)]
SPELLINGS = [*BYTES, b"true", b'":', b"ab", b"12", b"<end>"]
END = len(SPELLINGS) - 1
GOOD = [
    Form(regex="ab{2,4}c|x*"), Form(regex=r"\d{4}-\d{2}"), Form(regex="(true|false)( and (true|false)){0,3}"),
    Form(schema={}), Form(schema={"enum": ["a", "ab", "b\u00e9"]}), Form(schema={"type": "integer", "minimum": 10}),
    Form(schema={"type": "array", "items": {"type": "boolean"}, "minItems": 1, "maxItems": 3}),
    Form(schema={"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}),
    Form(grammar='start: a | "x"\na: "(" start ")"\n'), Form(grammar="start: A+\nA: /[ab]/\n"),
]  # fmt: skip
LATER = Form(grammar='start: x y\nx: "x" | "z"\ny: /((a{1000}){1000}){1000}/\n')
"""A form whose first token is found at once, and whose second is not."""


@pytest.fixture(scope="module")
def vocabulary() -> TokenVocabulary:
    return TokenVocabulary(SPELLINGS, [END], [END])


@pytest.fixture(scope="module")
def apart(vocabulary: TokenVocabulary) -> Iterator[FormsApart]:
    process = FormsApart(vocabulary)
    yield process
    process.close()


def walked(one: Guide, other: Guide, seed: int) -> None:
    """Hold that two guides allow the same, token by token, to the end of an answer."""
    rng = random.Random(seed)
    for _ in range(40):
        allowed = one.allowed()
        assert allowed is not None
        assert torch.equal(allowed, other.allowed())
        token = rng.choice(allowed.nonzero().flatten().tolist())
        if token == END:
            return
        one.push(token)
        other.push(token)
        assert one.over == other.over
        if one.over:
            return


@pytest.mark.parametrize("number", range(len(GOOD)))
def test_a_form_held_elsewhere_allows_what_it_allows_here(number: int, apart: FormsApart, vocabulary: TokenVocabulary,
                                                          monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setattr(forms_apart, "GLANCE", 10.0)  # however busy this machine is
    begin, here = apart.begin(GOOD[number]), Formed.begin(GOOD[number], vocabulary)
    for seed in range(3):
        walked(begin(), here.copy(), seed)


def test_an_answer_that_a_form_fails_in_is_not_whole(apart: FormsApart, vocabulary: TokenVocabulary,
                                                     monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    """The library calls what has failed stopped, as it does what is whole: the answer would end as if it were."""
    monkeypatch.setattr(forms_apart, "GLANCE", 10.0)
    failing = Form(regex="ab")
    for guide in (apart.begin(failing)(), Formed.begin(failing, vocabulary)):
        guide.push(BYTES.index(b"a"))
        assert guide.allowed().nonzero().flatten().tolist() == [BYTES.index(b"b")]
        guide.push(BYTES.index(b"x"))
        assert not guide.over
        with pytest.raises(UsageError, match="this form cannot be followed"):
            guide.allowed()


def test_answers_of_one_form_go_their_own_ways(apart: FormsApart) -> None:
    begin = apart.begin(Form(regex="ab|cd|ef"))
    several = [begin() for _ in range(3)]
    for guide, text in zip(several, (b"ab", b"cd", b"ef"), strict=True):
        guide.push(text[0])
        for other in several[: several.index(guide)]:
            assert other.allowed().sum() == 1
    assert [int(guide.allowed().nonzero()[0, 0]) for guide in several] == [*b"bdf"]


@pytest.mark.parametrize("form", [Form(regex="("), Form(schema={"type": "nothing"}), Form(grammar="start: ?!")])
def test_a_form_that_is_none_is_refused_as_here(form: Form, apart: FormsApart, vocabulary: TokenVocabulary) -> None:
    with pytest.raises(UsageError) as there:
        apart.begin(form)
    with pytest.raises(UsageError) as here:
        Formed.begin(form, vocabulary)
    assert (there.value.message, there.value.hint) == (here.value.message, here.value.hint)


def slow_forms() -> list[Form]:
    return [*(Form(regex=pattern) for pattern in patterns()), *(Form(schema=schema) for schema in schemas())]


def test_a_form_begins_within_its_time_or_is_refused(apart: FormsApart) -> None:
    """The issue's pattern of 25 characters took six seconds; one multiple of a prime took minutes."""
    began = time.monotonic()
    with pytest.raises(UsageError, match=f"more than {BEGINNING:g} s"):
        apart.begin(next(form for form in slow_forms() if form.schema is not None))
    assert time.monotonic() - began < BEGINNING + 2


@pytest.mark.slow
def test_every_slow_form_begins_within_its_time_or_is_refused(apart: FormsApart) -> None:
    for form in slow_forms():
        began = time.monotonic()
        with contextlib.suppress(UsageError):
            apart.begin(form)
        assert time.monotonic() - began < BEGINNING + 2


def test_a_form_that_becomes_slow_says_what_may_follow_later_or_never(apart: FormsApart) -> None:
    guide = apart.begin(LATER)()
    assert isinstance(guide, FormedApart)
    assert guide.ready(0.0)
    guide.push(ord("x"))
    began = time.monotonic()
    ready = guide.ready(0.001)
    assert time.monotonic() - began < 0.2
    assert not ready
    assert not guide.over  # it is not known yet, and nobody waits for it long
    assert guide.ready(10.0)
    assert guide.allowed().nonzero().tolist() == [[ord("a")]]
    guide.push(ord("a"))
    with pytest.raises(UsageError, match="this form cannot be followed: "):
        guide.allowed()


def children() -> set[int]:
    """Return the processes that hold forms here."""
    processes = set()
    for folder in Path("/proc").iterdir():
        try:
            line = (folder / "cmdline").read_text() if folder.name.isdigit() else ""
            own = "form_process" in line and (folder / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            continue
        processes |= {int(folder.name)} if own else set()
    return processes


@pytest.mark.alone
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_processes_end_with_their_answers_and_with_the_server(vocabulary: TokenVocabulary) -> None:
    own = FormsApart(vocabulary)
    before = children()
    guide = own.begin(Form(regex="[ab]{9}"))()
    guide.push(ord("a"))
    first, second = sorted(children() - before)
    del guide
    gc.collect()
    assert gone(second)
    own.close()
    assert gone(first)


def gone(process: int) -> bool:
    until = time.monotonic() + 10
    while time.monotonic() < until:
        if process not in children():
            return True
        time.sleep(0.02)
    return False


@pytest.mark.alone
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_process_that_is_killed_ends_its_answer_and_no_other(vocabulary: TokenVocabulary) -> None:
    own = FormsOfVocabularies()
    before = children()
    guide = own.begin(Form(regex="[ab]{9}"), vocabulary)()
    first, second = sorted(children() - before)
    other = own.begin(Form(regex="[cd]{9}"), vocabulary)()
    os.kill(second, signal.SIGKILL)
    guide.push(ord("a"))
    with pytest.raises(UsageError, match="were not found within"):
        guide.allowed()
    other.push(ord("c"))
    assert other.allowed().sum() == 2
    os.kill(first, signal.SIGKILL)
    assert gone(first)
    with pytest.raises(MachineError, match="has ended"):
        own.begin(Form(regex="a"), vocabulary)
    assert own.begin(Form(regex="a"), vocabulary)().allowed().sum() == 1
    own.close()


@pytest.mark.alone
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_where_nothing_can_be_forked_each_form_has_a_process_of_its_own(
    vocabulary: TokenVocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Windows, where nothing is forked, no alarm rings and no descriptor is passed on."""
    monkeypatch.delattr(os, "fork")
    monkeypatch.setattr(forms_alone, "KEPT", 1)
    before = children()
    own = FormsOfVocabularies(glance=10.0)
    for form in GOOD[:3]:
        begin, here = own.begin(form, vocabulary), Formed.begin(form, vocabulary)
        assert isinstance(begin(), FormedApart)
        walked(begin(), here.copy(), 0)
        process = children() - before
        assert own.begin(form, vocabulary)().allowed().any()
        assert children() - before == process  # the form is kept
    del begin
    gc.collect()
    assert len(children() - before) == 1
    with pytest.raises(UsageError, match="this form cannot be used: "):
        own.begin(Form(regex="("), vocabulary)
    own.close()
    gc.collect()
    assert all(gone(process) for process in children() - before)


@pytest.mark.alone
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_process_that_no_limit_ends_is_ended_by_who_waits(
    vocabulary: TokenVocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forms_apart, "BEGINNING", 0.1)
    monkeypatch.setattr(forms_apart, "FOLLOWING", 0.1)
    monkeypatch.setattr(forms_apart, "LATE", 0.1)
    before, own = children(), FormsAlone(vocabulary)
    slow = next(form for form in slow_forms() if form.schema is not None)
    began = time.monotonic()
    with pytest.raises(UsageError, match=r"more than 0\.1 s"):
        own.begin(slow)
    assert time.monotonic() - began < STARTING
    assert children() == before
    guide = own.begin(Form(regex="[ab]{9}"))()
    (process,) = children() - before
    os.kill(process, signal.SIGSTOP)
    guide.push(ord("a"))
    with pytest.raises(UsageError, match="were not found within"):
        guide.allowed()
    assert gone(process)
    guide.push(ord("a"))
    assert not guide.over
    assert own.begin(Form(regex="[ab]{9}"))().allowed().any()  # the next one has a process again


def test_of_many_vocabularies_the_last_have_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "VOCABULARIES", 2)
    own = FormsOfVocabularies()
    several = [TokenVocabulary(SPELLINGS, [END], [END]) for _ in range(3)]
    guides = [own.begin(Form(regex="[ab]{3}"), each)() for each in several]
    for guide in guides:  # those of a process that forks no more go on
        guide.push(ord("a"))
        assert guide.allowed().sum() == 3  # a, b, ab
    assert own.begin(Form(regex="[ab]{3}"), several[0])().allowed().sum() == 3
    own.close()


class Late(Guide):
    """A guide that allows some tokens, and knows so only after it was asked a number of times."""

    def __init__(self, times: int) -> None:
        self.times, self.left, self.asked = times, times, 0

    def ready(self, seconds: float) -> bool:
        self.left -= 1
        self.asked += 1
        return self.left < 0

    def allowed(self) -> Bool[Tensor, "V"]:
        assert self.left < 0
        mask = torch.zeros(TOKENIZER.size, dtype=torch.bool)
        mask[5:25] = True
        return mask

    def push(self, token: int) -> None:
        self.left = self.times

    @property
    def over(self) -> bool:
        return False


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("family", ["llama", "t5", "lstm"])
def test_a_row_whose_guide_is_late_is_put_aside_and_no_other_waits(family: str, deterministic: bool) -> None:
    """Its tokens are those of a guide that is never late, and its neighbour's come in as many rounds as without it."""
    model, context = smallest(family), 24
    engine = Engine(model, TOKENIZER, context, most_rows=3, chunk=8, deterministic=deterministic)
    slow = engine.add(Request([5, 9, 31], Limits(6, context, guides=(lambda: Late(4),))))
    quick = engine.add(Request([7, 7, 12, 5], Limits(8, context)))
    rounds = 0
    while not quick.done:
        assert engine.advance()
        rounds += 1
    assert rounds <= 10
    assert not slow.done
    assert engine.rows == 1
    while engine.advance():
        pass
    assert slow.row is not None
    assert slow.row.guides[0].asked > 5 * len(slow.written)
    wanted = generate(model, [[5, 9, 31]], TOKENIZER, Limits(6, context, guides=(lambda: Late(-1),)))[0]
    assert slow.result().ids == wanted.ids
    assert quick.result().ids == generate(model, [[7, 7, 12, 5]], TOKENIZER, Limits(8, context))[0].ids
    assert slow.reused == 0
    assert engine.rows == engine.tokens == 0


class WholeLate(Late):
    """Such a guide, whose answer is whole after three tokens; that too is known only when it is ready."""

    def __init__(self, times: int) -> None:
        super().__init__(times)
        self.taken = 0

    def push(self, token: int) -> None:
        super().push(token)
        self.taken += 1

    @property
    def over(self) -> bool:
        return self.taken == 3 and self.left < 0

    def allowed(self) -> Bool[Tensor, "V"]:
        assert self.taken < 3  # nothing may follow, not even an end token
        return super().allowed()


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("times", [0, 1, 4, 9])
def test_an_answer_that_is_known_late_to_be_whole_is_the_one_known_at_once(times: int, deterministic: bool) -> None:
    told: list[str] = []
    engine = Engine(smallest("llama"), TOKENIZER, 24, most_rows=2, chunk=8, deterministic=deterministic)
    limits = Limits(8, 24, stop=("never written",), guides=(lambda: WholeLate(times),))
    late = engine.add(Request([5, 9, 31], limits, told=lambda written: told.append(written.text)))
    other = engine.add(Request([7, 7, 12, 5], Limits(8, 24)))
    while engine.advance():
        pass
    at_once = Limits(8, 24, stop=limits.stop, guides=(lambda: WholeLate(-1),))
    wanted = generate(smallest("llama"), [[5, 9, 31]], TOKENIZER, at_once)[0]
    answer = late.result()
    assert (answer.ids, answer.text, answer.finish_reason) == (wanted.ids, wanted.text, wanted.finish_reason)
    assert (len(answer.ids), answer.finish_reason) == (3, "end")
    assert "".join(told) == answer.text
    assert len(other.result().ids) == 8
    assert engine.rows == engine.tokens == 0


def test_a_row_that_waits_can_be_cancelled_and_holds_its_place() -> None:
    engine = Engine(smallest("llama"), TOKENIZER, 24, most_rows=1, chunk=8)
    slow = engine.add(Request([5, 9, 31], Limits(6, 24, guides=(lambda: Late(10**9),))))
    quick = engine.add(Request([7, 7], Limits(2, 24)))
    for _ in range(4):
        assert engine.advance()
    assert (engine.rows, engine.waiting) == (1, 1)
    assert not quick.done
    engine.cancel(slow)
    while engine.advance():
        pass
    assert quick.result().ids


def test_a_round_waits_for_all_late_rows_together_no_longer_than_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "PATIENCE", 0.1)
    asked: list[float] = []

    class Slow(Late):
        def ready(self, seconds: float) -> bool:
            asked.append(seconds)
            time.sleep(seconds)
            return False

    engine = Engine(smallest("llama"), TOKENIZER, 24, most_rows=4, chunk=64)
    for _ in range(4):
        engine.add(Request([5, 9, 31], Limits(6, 24, guides=(lambda: Slow(0),))))
    engine.advance()
    assert len(asked) >= 4
    assert sum(asked) <= 0.11


@pytest.mark.parametrize(("computed", "waited"), [(0.0, 0.005), (0.002, 0.005), (0.012, 0.012), (0.5, 0.02)])
def test_a_round_waits_for_late_rows_as_long_as_it_computed_within_bounds(
    computed: float, waited: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three waits of 20 ms were most of what a client waited for two tokens of a tiny model."""
    asked: list[float] = []

    class Slow(Late):
        def ready(self, seconds: float) -> bool:
            asked.append(seconds)
            return False

    engine = Engine(smallest("llama"), TOKENIZER, 24, most_rows=4, chunk=64)
    own = engine.add(Request([5, 9, 31], Limits(6, 24, guides=(lambda: Slow(0),))))
    engine.advance()
    asked.clear()
    now = engine._began + computed
    for module in (engines, rows):
        monkeypatch.setattr(module, "monotonic", lambda: now)
    assert engine._put_aside([own]) == []
    assert asked == [pytest.approx(waited)]
