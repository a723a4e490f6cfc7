import gc
import random
from dataclasses import replace
from itertools import pairwise

import pytest
import torch

from orrery.errors import RunError, UsageError
from orrery.families import load_family
from orrery.generation.batch import compacted
from orrery.generation.compiled_step import stepping
from orrery.generation.engine import Engine
from orrery.generation.generate import generate
from orrery.generation.guides import SpellingIndex, without
from orrery.generation.requests import Request
from orrery.generation.row import Limits
from orrery.generation.samplers import GREEDY, sampler
from orrery.nn.cache.pages import PagePool
from orrery.text.spellings import spellings
from tiny_models import TOKENIZER, randomised, smallest

CONTEXT = 24
FAMILIES = ["gpt2", "llama", "bloom", "gemma2", "deepseek_v2", "t5", "bart", "lstm", "mistral", "rnnsearch", "mixtral"]
"""Growing and sliding windows, latent keys, encoder-decoders, recurrences, experts."""
SAMPLERS = [GREEDY, sampler(temperature=0.9, top_p=0.95), sampler(temperature=1.3, frequency_penalty=0.4)]
PROMPT = [5, 9, 31, 5, 9, 31, 5]


def engine_of(model, **settings):
    return Engine(model, TOKENIZER, CONTEXT, **{"most_rows": 3, "chunk": 4, **settings})


def requests_of(rng, count, size=60):
    """Return requests of many kinds, some of whose prompts begin alike."""
    shared = [rng.randrange(size) for _ in range(12)]
    requests = []
    for number in range(count):
        own = [rng.randrange(size) for _ in range(rng.randint(1, 12))]
        begun = rng.choice(requests).prompt if number > 3 and rng.random() < 0.4 else shared[: rng.randint(0, 12)]
        prompt = [*begun, *own][:CONTEXT]
        limits = Limits(rng.randint(1, 12), CONTEXT, end=(rng.randrange(size),), stop=(("e",) if number % 3 else ()))
        requests.append(Request(prompt, limits, rng.choice(SAMPLERS), seed=number))
    return requests


def alone(model, request):
    """Return the answer that ``generate`` writes."""
    how = {"sampler": request.sampler, "seed": request.seed}
    return generate(model, [request.prompt], TOKENIZER, request.limits, **how)[0]


def same(one, other):
    return (one.ids, one.text, one.finish_reason) == (other.ids, other.text, other.finish_reason)


def finish(engine, most=1000):
    for _ in range(most):
        if not engine.advance():
            return
    raise AssertionError(f"{engine.rows} rows and {engine.waiting} requests are left")


@pytest.mark.parametrize("family", FAMILIES)
def test_every_answer_is_that_of_the_request_alone_whatever_comes_and_goes(family):
    model = smallest(family)
    rng = random.Random(3)
    engine = engine_of(model, kept_tokens=200)
    engine.prefixes.least = 3
    waiting, going, cancelled = requests_of(rng, 18), [], []
    for _ in range(1000):
        if waiting and rng.random() < 0.6:
            going.append((waiting[0], engine.add(waiting.pop(0))))
        if going and rng.random() < 0.05:
            cancelled.append(rng.choice(going))
            engine.cancel(cancelled[-1][1])
        if not engine.advance() and not waiting:
            break
    assert engine.rows == engine.waiting == engine.tokens == 0
    stopped = [own for _, own in cancelled if isinstance(own.error, RunError)]
    for request, own in going:
        if own in stopped:
            assert own.written == alone(model, request).ids[: len(own.written)]
        else:
            assert same(own.result(), alone(model, request))
    assert 0 < len(stopped) < len(going)
    if not model.reads_at_once:
        assert any(own.reused for _, own in going)


@pytest.mark.parametrize("family", ["gpt2", "gemma2", "deepseek_v2", "t5"])
def test_rows_that_begin_alike_share_pages_and_answer_as_alone(family):
    model = smallest(family)
    pool = PagePool(3, most=100)
    engine = engine_of(model, kept_tokens=60, pool=pool)
    engine.prefixes.least = 3
    requests = requests_of(random.Random(5), 14)
    answers = [engine.add(request) for request in requests]
    while engine.advance():
        assert pool.taken * 3 <= engine.tokens + engine.prefixes.tokens
    for request, own in zip(requests, answers, strict=True):
        assert same(own.result(), alone(model, request))
    gc.collect()
    assert pool.taken * 3 <= engine.prefixes.tokens
    if not model.reads_at_once:
        assert any(own.reused for own in answers)
        assert pool.taken


def test_a_pool_that_could_run_out_is_refused():
    with pytest.raises(UsageError, match="10 pages of 4 tokens"):
        engine_of(smallest("gpt2"), pool=PagePool(4, most=10))
    engine = engine_of(smallest("gpt2"), most_tokens=24, kept_tokens=0, pool=PagePool(16, most=2))
    with pytest.raises(UsageError, match="answer of up to 32 tokens"):
        engine.add(Request(PROMPT, Limits(12, CONTEXT)))


def test_a_step_that_fails_ends_the_row_that_it_fails_for(monkeypatch):
    model = smallest("llama")
    requests = [Request(PROMPT[: 3 + i], Limits(8, CONTEXT), SAMPLERS[i % 3], seed=i) for i in range(3)]
    expected = [alone(model, request) for request in requests]
    poison, step = expected[1].ids[3], model.step
    culprit = next(i for i, one in enumerate(expected) if poison in one.ids[:-1])

    def failing(tokens, session, lengths=None):
        if poison in tokens:
            raise RuntimeError("no memory is left")
        return step(tokens, session, lengths)

    monkeypatch.setattr(model, "step", failing)
    engine = engine_of(model)
    answers = [engine.add(request) for request in requests]
    finish(engine)
    for request, own, plain in zip(requests, answers, expected, strict=True):
        if poison in plain.ids[:-1] or poison in request.prompt[1:]:
            with pytest.raises(RuntimeError, match="no memory is left"):
                own.result()
        else:
            assert same(own.result(), plain)
    assert answers[culprit].error is not None
    monkeypatch.undo()
    again = engine.add(requests[culprit])
    finish(engine)
    assert same(again.result(), expected[culprit])


def test_a_row_whose_logits_are_no_numbers_ends_alone(monkeypatch):
    model = smallest("gpt2")
    requests = [Request(PROMPT[: 4 + i], Limits(6, CONTEXT), seed=i) for i in range(3)]
    expected, step, calls = [alone(model, request) for request in requests], model.step, []

    def damaged(tokens, session, lengths=None):
        logits = step(tokens, session, lengths)
        if len(logits) == 3:
            calls.append(1)
            logits[1] = float("nan")
        return logits

    monkeypatch.setattr(model, "step", damaged)
    engine = engine_of(model, chunk=100)
    answers = [engine.add(request) for request in requests]
    finish(engine)
    assert len(calls) == 1
    with pytest.raises(RunError, match="not numbers"):
        answers[1].result()
    assert same(answers[0].result(), expected[0])
    assert same(answers[2].result(), expected[2])


def test_a_form_that_cannot_go_on_and_a_listener_that_fails_end_their_own_row():
    model = smallest("gpt2")
    index = SpellingIndex(spellings(TOKENIZER))
    nothing = without([chr(letter) for letter in range(256)] + ["\ufffd"], index)
    limits = Limits(6, CONTEXT)

    def angry(written):
        raise ConnectionError("gone")

    engine = engine_of(model)
    formed = engine.add(Request(PROMPT, replace(limits, guides=(nothing,)), sampler(vocabulary=TOKENIZER.size)))
    left = engine.add(Request(PROMPT, limits, told=angry))
    plain = engine.add(Request(PROMPT, limits))
    finish(engine)
    assert isinstance(left.error, ConnectionError)
    assert len(left.written) == 1
    assert formed.done
    assert same(plain.result(), alone(model, plain.request))


def test_a_sampler_that_fails_ends_the_rows_that_have_it():
    model, beyond = smallest("gpt2"), sampler(temperature=1.0, logit_bias={10**6: 3.0})
    engine = engine_of(model)
    damaged = [engine.add(Request(PROMPT, Limits(4, CONTEXT), beyond, seed=i)) for i in range(2)]
    plain = engine.add(Request(PROMPT, Limits(4, CONTEXT)))
    finish(engine)
    assert all(own.error is not None for own in damaged)
    assert same(plain.result(), alone(model, plain.request))


def test_what_is_told_is_the_answer():
    model = smallest("llama")
    told = []
    request = Request(PROMPT, Limits(10, CONTEXT), SAMPLERS[1], scores=3, told=told.append)
    engine = engine_of(model)
    own = engine.add(request)
    finish(engine)
    assert [one.token for one in told] == own.result().ids
    assert "".join(one.text for one in told) == own.result().text
    assert [one.score for one in told] == own.scores
    ids = [*PROMPT, *own.result().ids]
    with torch.no_grad():
        exact = model.logits(torch.tensor([ids]))[0].log_softmax(-1)
    for place, score in enumerate(own.scores):
        row = exact[len(PROMPT) - 1 + place]
        assert score.log_probability == pytest.approx(float(row[score.token]), rel=1e-9)
        assert [id for id, _ in score.best] == row.topk(3).indices.tolist()


@pytest.mark.parametrize("family", ["llama", "lstm", "mistral"])
@pytest.mark.parametrize("chunk", [1, 3, 100])
def test_a_prompt_is_scored_in_chunks_as_at_once(family, chunk):
    model = smallest(family)
    engine = engine_of(model, chunk=chunk)
    own = engine.add(Request(PROMPT, Limits(0, CONTEXT), scores=2, prompt_scores=True))
    finish(engine)
    with torch.no_grad():
        exact = model.logits(torch.tensor([PROMPT]))[0].log_softmax(-1)
    assert own.prompt_scores[0].log_probability is None
    for place, score in enumerate(own.prompt_scores[1:]):
        assert score.token == PROMPT[place + 1]
        assert score.log_probability == pytest.approx(float(exact[place, score.token]), rel=1e-9)
        assert score.best[0][0] == int(exact[place].argmax())
    assert len(own.prompt_scores) == len(PROMPT)
    assert (own.result().ids, own.result().finish_reason) == ([], "length")


def test_a_long_prompt_delays_each_token_by_one_chunk():
    model, context = smallest("llama"), smallest("llama").spec.context
    engine = Engine(model, TOKENIZER, context, most_rows=8, chunk=2)
    short = [engine.add(Request(PROMPT[:2], Limits(12, context), seed=i)) for i in range(3)]
    for _ in range(3):
        engine.advance()
    before = [len(own.written) for own in short]
    long = engine.add(Request((PROMPT * 3)[:20], Limits(2, context)))
    late = engine.add(Request(PROMPT[:2], Limits(2, context)))
    rounds = 0
    while not long.written:
        engine.advance()
        rounds += 1
        assert [len(own.written) for own in short] == [min(12, count + rounds) for count in before]
    assert rounds > 8
    assert late.done


@pytest.mark.parametrize("deterministic", [False, True])
def test_six_thousand_tokens_delay_no_token_of_seven_streams_by_more_than_two_chunks(deterministic, monkeypatch):
    """Counted in tokens that are read between two tokens of a stream, so that no clock decides."""
    rules, chunk, context = load_family("llama"), 256, 6200
    model = randomised(rules.spec({**rules.TINY, "max_position_embeddings": context}).build(0).eval())
    read, waits, step, start = [0], [[] for _ in range(7)], model.step, model.start

    def counted(call):
        def counting(tokens, *given, **how):
            read[0] += tokens.numel() if tokens.shape[1] > 1 else 0
            return call(tokens, *given, **how)

        return counting

    monkeypatch.setattr(model, "step", counted(step))
    monkeypatch.setattr(model, "start", counted(start))
    engine = Engine(model, TOKENIZER, context, most_rows=8, chunk=chunk, deterministic=deterministic)
    for number, wait in enumerate(waits):
        told = lambda _, wait=wait: wait.append(read[0])  # noqa: E731
        engine.add(Request(PROMPT[: 3 + number % 4], Limits(60, context), seed=number, told=told))
    for _ in range(8):
        engine.advance()
    long = engine.add(Request([5 + i % 50 for i in range(6000)], Limits(3, context)))
    rounds = 0
    while not long.written:
        engine.advance()
        rounds += 1
    assert rounds == 24
    for wait in waits:
        between = [later - earlier for earlier, later in pairwise(wait)]
        assert len(wait) >= 8 - 1 + rounds
        assert max(between[8:]) <= chunk
    engine.cancel(long)
    engine.advance()
    assert engine.rows == 7


def test_a_large_request_waits_for_those_before_it_and_for_none_behind():
    model = smallest("gpt2")
    engine = engine_of(model, most_rows=4, most_tokens=32, kept_tokens=0, pool=PagePool(1))
    ask = lambda tokens, new: engine.add(Request([7] * tokens, Limits(new, CONTEXT)))  # noqa: E731
    asked = [ask(4, 8), ask(4, 4), ask(16, 8), *(ask(2, 2) for _ in range(6))]
    admitted = {}
    for number in range(40):
        engine.advance()
        assert list(engine._waiting) == asked[len(asked) - engine.waiting :]
        for own in asked[: len(asked) - engine.waiting]:
            admitted.setdefault(own, number)
    assert all(own.done for own in asked)
    assert admitted[asked[2]] == 7  # the first has written its eight tokens
    assert admitted[asked[3]] == 7


def bits(own):
    """Return an answer's tokens with their log probabilities, every bit."""
    return [(score.token, score.log_probability, score.best) for score in own.scores]


@pytest.mark.parametrize(
    "family", ["gpt2", "gemma2", "t5", "lstm", "deepseek_v2", "llama compiled", "mistral compiled"]
)
def test_no_bit_of_a_deterministic_answer_depends_on_its_company(family):
    family, _, kernel = family.partition(" ")
    model = stepping(smallest(family, torch.float32), kernel or "eager")
    requests = [replace(request, scores=3) for request in requests_of(random.Random(4), 14)]
    expected = []
    for request in requests:
        engine = engine_of(model, deterministic=True)
        expected.append(engine.add(request))
        finish(engine)
    rng = random.Random(9)
    engine = engine_of(model, kept_tokens=200, deterministic=True)
    engine.prefixes.least = 3
    going, waiting = [], list(enumerate(requests))
    while engine.advance() or waiting:
        if waiting and rng.random() < 0.7:
            number, request = waiting.pop(rng.randrange(len(waiting)))
            going.append((number, engine.add(request)))
    assert len(going) == len(requests)
    assert engine._apart is not getattr(model, "row_invariant", False)
    for number, own in going:
        assert bits(own) == bits(expected[number])
        assert same(own.result(), expected[number].result())
    if not model.reads_at_once and family != "lstm":  # a state goes on from whole chunks alone
        assert any(own.reused for _, own in going)


def test_a_deterministic_row_is_read_again_as_it_was_written(monkeypatch):
    model = smallest("llama", torch.float32)
    request = Request([*PROMPT, *PROMPT], Limits(8, CONTEXT), SAMPLERS[1], scores=2)
    engine = engine_of(model, deterministic=True)
    alone_ = engine.add(request)
    finish(engine)
    engine = engine_of(model, deterministic=True)
    own = engine.add(request)
    while len(own.written) < 4:
        engine.advance()
    engine._read_again([own, own], RuntimeError())
    engine._reading.pop()
    engine._batches.clear()
    finish(engine)
    assert bits(own) == bits(alone_)


def watched(model, monkeypatch):
    """Return the shapes of the calls that read or write, as they come."""
    calls, start, step = [], model.start, model.step

    def begin(source, capacity, lengths=None):
        calls.append(("start", tuple(source.shape), sum(lengths or [source.numel()])))
        return start(source, capacity, lengths)

    def write(tokens, session, lengths=None, **how):
        calls.append(("step", tuple(tokens.shape), sum(lengths or [tokens.numel()])))
        return step(tokens, session, lengths, **how)

    monkeypatch.setattr(model, "start", begin)
    monkeypatch.setattr(model, "step", write)
    return calls


@pytest.mark.parametrize("family", ["gpt2", "mistral", "lstm", "t5"])
def test_short_prompts_of_like_length_are_read_in_one_call(family, monkeypatch):
    model = smallest(family)
    requests = [Request([seed, *PROMPT][: 5 + seed % 4], Limits(3, CONTEXT), seed=seed) for seed in range(8)]
    long = Request([9] * 20, Limits(3, CONTEXT))
    expected = [alone(model, request) for request in (*requests, long)]
    calls = watched(model, monkeypatch)
    engine = engine_of(model, most_rows=9, chunk=32)
    answers = [engine.add(request) for request in (*requests[:5], long, *requests[5:])]
    answers.append(answers.pop(5))
    finish(engine)
    starts = [(shape, real) for name, shape, real in calls if name == "start"]
    assert all(same(own.result(), one) for own, one in zip(answers, expected, strict=True))
    assert len(starts) < 5
    for (rows, longest), real in starts:
        assert rows * longest <= 32
        assert real >= 0.75 * rows * longest


def test_prompts_that_go_on_from_a_kept_one_are_read_in_one_call(monkeypatch):
    model = smallest("llama")
    requests = [Request([*PROMPT, *PROMPT, number], Limits(3, CONTEXT), seed=number) for number in range(4)]
    expected = [alone(model, request) for request in requests]
    engine = engine_of(model, most_rows=4, chunk=100)
    engine.prefixes.least = 4
    calls = watched(model, monkeypatch)
    answers = [engine.add(request) for request in requests]
    finish(engine)
    assert all(same(own.result(), one) for own, one in zip(answers, expected, strict=True))
    assert [own.reused for own in answers] == [0, 14, 14, 14]
    assert [shape for _, shape, _ in calls[:3]] == [(1, 15), (3, 1), (4, 1)]


def test_a_row_that_leaves_is_replaced_by_the_last():
    assert compacted([0, 2, 3, 4]) == [0, 4, 2, 3]
    for size in range(7):
        for kept in range(2**size):
            rows = [row for row in range(size) if kept >> row & 1]
            order = compacted(rows)
            assert sorted(order) == rows
            assert all(order[row] == row for row in rows if row < len(rows))


def test_memory_is_bounded_by_what_answers_may_come_to():
    model = smallest("gpt2")
    engine = engine_of(model, most_rows=10, most_tokens=30, kept_tokens=0)
    answers = [engine.add(Request(PROMPT, Limits(5, CONTEXT), seed=i)) for i in range(6)]
    while engine.advance():
        assert engine.tokens <= 30
        assert engine.rows <= 2
    assert all(own.done for own in answers)
    with pytest.raises(UsageError, match="passes the engine's 10"):
        engine_of(model, most_tokens=10).add(Request(PROMPT, Limits(5, CONTEXT)))


def test_in_slots_every_row_has_the_memory_of_the_longest_and_in_pages_its_own():
    model, held = smallest("gpt2"), []
    for pool in (None, PagePool(1)):
        engine = engine_of(model, most_rows=9, most_tokens=48, kept_tokens=0, pool=pool)
        for size in (4, 4, 16, 4, 4):
            engine.add(Request([7] * size, Limits(4, CONTEXT)))
        engine.advance()
        held.append((engine.rows, engine.tokens))
        finish(engine)
    assert held == [(2, 2 * 8), (4, 8 + 8 + 20 + 8)]


def test_prompts_that_are_kept_are_those_used_last():
    model = smallest("llama")
    engine = engine_of(model, kept_tokens=16)
    engine.prefixes.least = 4
    for start in (1, 2, 1, 3):
        own = engine.add(Request([start, *PROMPT], Limits(2, CONTEXT)))
        finish(engine)
    assert engine.prefixes.tokens == 16
    reused = []
    for start in (1, 3, 2):
        own = engine.add(Request([start, *PROMPT], Limits(2, CONTEXT)))
        finish(engine)
        reused.append(own.reused)
    assert reused == [7, 7, 0]


@pytest.mark.parametrize(
    ("request_", "match"),
    [
        (Request([], Limits(3, CONTEXT)), "empty"),
        (Request([], Limits(0, CONTEXT)), "0 tokens"),
        (Request([1] * 25, Limits(3, CONTEXT)), "longer than"),
        (Request([1], Limits(-1, CONTEXT)), "max_new_tokens"),
        (Request([1], Limits(3, 8)), "context of 8"),
        (Request([1], Limits(3, CONTEXT), seed=-1), "seed"),
    ],
)
def test_what_cannot_be_answered_is_refused(request_, match):
    with pytest.raises(UsageError, match=match):
        engine_of(smallest("gpt2")).add(request_)


@pytest.mark.parametrize("setting", [{"most_rows": 0}, {"chunk": 0}, {"most_tokens": 0}])
def test_an_engine_without_room_is_refused(setting):
    with pytest.raises(UsageError, match="at least 1"):
        engine_of(smallest("gpt2"), **setting)


def test_a_source_is_read_at_once_and_not_scored():
    model = smallest("t5")
    assert model.reads_at_once
    assert not smallest("llama").reads_at_once
    with pytest.raises(UsageError, match="predicts none of it"):
        engine_of(model).add(Request(PROMPT, Limits(3, CONTEXT), prompt_scores=True))
