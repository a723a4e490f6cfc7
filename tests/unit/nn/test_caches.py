"""The deep caches: sliding, one for each mask, and latent. Cached decoding equals full forwards, in little memory."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from orrery.errors import UsageError
from orrery.families import load_family
from orrery.laws.evidence import deviation
from orrery.laws.models import random_ids, tiny
from orrery.nn.block import Block
from orrery.nn.cache.kinds import cache_for, growing, static
from orrery.nn.cache.rows import EVERY_MASK, RowCache
from orrery.nn.cache.sliding import SlidingStore
from orrery.nn.cache.slots import SlotStore
from orrery.nn.masks import PLAIN_CAUSAL, PLAIN_FULL, Causal, Window

CAPACITY, VOCABULARY = 40, 61


def model_of(*masks, window):
    """Return a Llama with one layer for each named mask: "causal" or "window"."""
    llama = load_family("llama")
    spec = llama.spec(llama.TINY)
    residuals = spec.stack.blocks[0].residuals
    attention = residuals["attention"].branch
    blocks = [
        Block.Spec(residuals={**residuals, "attention": replace(residuals["attention"], branch=branch)})
        for branch in (replace(attention, mask=mask) for mask in masks)
    ]
    rules = {"causal": Causal(), "window": Causal() & Window(length=window)}
    rules = {name: rules[name] for name in dict.fromkeys(masks)}
    model = replace(spec, stack=replace(spec.stack, blocks=tuple(blocks), masks=rules)).build(0).double().eval()
    rng = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(0.3 * torch.randn(parameter.shape, generator=rng, dtype=torch.float64))
    return model


class Told:
    """A session and what its rows were told; every answer is compared with a full forward of its row alone."""

    def __init__(self, model, rows, cache=None):
        ids, lengths = rectangle(rows)
        logits, self.session = model.start(ids, CAPACITY, lengths, cache=cache)
        self.model, self.rows = model, [list(row) for row in rows]
        self.compare(logits[:, None], [1] * len(rows))

    def step(self, rows):
        ids, lengths = rectangle(rows)
        logits = self.model.step(ids, self.session, lengths)
        self.rows = [have + list(more) for have, more in zip(self.rows, rows, strict=True)]
        self.compare(logits, [len(more) for more in rows])

    def select(self, rows):
        self.session = self.session.select(rows)
        self.rows = [list(self.rows[row]) for row in rows]

    def join(self, other):
        self.session = self.session.join(other.session)
        self.rows += other.rows

    def compare(self, logits, counts):
        assert list(self.session.lengths) == [len(row) for row in self.rows]
        for row, row_logits, count in zip(self.rows, logits, counts, strict=True):
            expected = self.model.logits(torch.tensor([row]))[0]
            assert deviation(row_logits[:count], expected[len(row) - count :]) < 1e-9


def rectangle(rows):
    ids = torch.zeros(len(rows), max(map(len, rows)), dtype=torch.long)
    for row, tokens in zip(ids, rows, strict=True):
        row[: len(tokens)] = torch.tensor(tokens, dtype=torch.long)
    return ids, torch.tensor([len(row) for row in rows])


def cut(tokens, *sizes):
    return [[tokens.pop() for _ in range(size)] for size in sizes]


KINDS = {"window": ("window", "window"), "both": ("window", "causal", "window")}


@pytest.mark.parametrize("masks", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("window", [1, 2, 3, 6, 13])
@torch.no_grad()
def test_ragged_rows_and_steps_shorter_and_longer_than_the_window(masks, window):
    tokens = random_ids(128).tolist()
    told = Told(model_of(*masks, window=window), cut(tokens, 7, 1, 4))
    assert set(told.session.cache.stores) == set(masks)
    for sizes in ((1, 3, 2), (0, 5, 1), (2, 0, 4), (5, 5, 5), (1, 1, 1), (0, 0, 3), (4, 1, 0)):
        told.step(cut(tokens, *sizes))


@pytest.mark.parametrize("masks", KINDS.values(), ids=KINDS)
@torch.no_grad()
def test_rows_are_selected_reordered_repeated_and_joined(masks):
    tokens, model = random_ids(128, seed=2).tolist(), model_of(*masks, window=4)
    told = Told(model, cut(tokens, 6, 3))
    told.select([1, 0, 1])
    told.step(cut(tokens, 2, 1, 5))
    told.join(Told(model, cut(tokens, 9)))
    told.step(cut(tokens, 1, 1, 0, 2))
    told.select([3, 1])
    told.join(Told(model, cut(tokens, 1, 2)))
    for _ in range(6):
        told.step(cut(tokens, 1, 1, 1, 1))


tokens_of = st.lists(st.integers(0, VOCABULARY - 1), max_size=5)


@given(data=st.data())
@torch.no_grad()
def test_any_session_with_a_window_equals_full_forwards(data):
    window = data.draw(st.integers(1, 8))
    model = model_of(*data.draw(st.sampled_from(list(KINDS.values()))), window=window)
    prompts = st.lists(st.lists(st.integers(0, VOCABULARY - 1), min_size=1, max_size=9), min_size=1, max_size=3)
    told = Told(model, data.draw(prompts))
    for operation in data.draw(st.lists(st.sampled_from(["step", "step", "select", "join"]), max_size=5)):
        if operation == "step":
            rows = [data.draw(tokens_of) for _ in told.rows]
            if any(rows):
                told.step(rows)
        elif operation == "select":
            told.select(data.draw(st.lists(st.integers(0, len(told.rows) - 1), min_size=1, max_size=4)))
        elif len(told.rows) < 5:
            told.join(Told(model, data.draw(prompts)))


@pytest.mark.parametrize("length", [3, 6, 12])
@torch.no_grad()
def test_padding_on_the_left_of_the_first_call_takes_no_slot(length):
    model, ids = model_of("window", "causal", window=4), random_ids(2, length + 1)
    real = torch.arange(length) >= torch.tensor([[0], [length - 2]])
    cache = cache_for(model.stack.masks, 2, CAPACITY)
    for part, keep in ((ids[:, :length], real), (ids[:, length:], None)):
        x, ctx = model.prepare(part, real=keep, cache=cache)
        logits = model.head(model.stack(x, ctx))
    assert cache.lengths_B.tolist() == [length + 1, 3]
    assert deviation(logits[1, 0], model.logits(ids[1:, -3:])[0, -1]) < 1e-9
    assert deviation(logits[0, 0], model.logits(ids[:1])[0, -1]) < 1e-9


@torch.no_grad()
def test_rows_of_one_length_need_no_matrix_as_they_begin_and_for_one_new_token():
    model, ids = tiny("llama").double(), random_ids(2, 12)

    def bound(cache, tokens, real=None):
        x, ctx = model.prepare(tokens, real=real, cache=cache)
        mask = ctx.masks["causal"]
        assert (
            deviation(model.head(model.stack(x, ctx))[0], model.logits(ids[:1, : cache.lengths[0]])[0, -x.shape[1] :])
            < 1e-9
        )
        return mask

    cache = growing(2, CAPACITY)
    assert bound(cache, ids[:, :6]) == PLAIN_CAUSAL
    assert bound(cache, ids[:, 6:7]) == PLAIN_FULL
    assert bound(cache, ids[:, 7:9]).dense is not None, "of two, the first must not see the second"
    cache.truncate([5, 5])
    assert bound(cache, ids[:, 5:6]).dense is None
    cache.truncate([6, 3])
    assert bound(cache, ids[:, 6:7]).dense is not None, "the shorter row shows empty slots"
    real = torch.tensor([[True], [False]])
    assert bound(growing(2, CAPACITY), ids[:, :1], real).dense is not None
    cache.truncate([0, 0])
    assert bound(cache, ids[:, :9]) == PLAIN_CAUSAL, "the rows begin again"
    real = torch.tensor([[True] * 4, [True] * 3 + [False]])
    assert bound(growing(2, CAPACITY), ids[:, :4], real).dense is not None, "padding must not be seen"
    fixed = static(2, CAPACITY)
    bound(fixed, ids[:, :6])
    assert bound(fixed, ids[:, 6:7]).dense is not None, "all slots are shown, and most are empty"


@torch.no_grad()
def test_a_sliding_cache_stays_at_the_window_for_any_number_of_tokens():
    model, window, rows = model_of("window", "window", window=5), 5, 3
    heads, channels = 2, 4
    expected = 2 * rows * (window + 1) * 2 * heads * channels * 8  # layers, rows, slots and a spare, k and v
    for prompt in (1, 4, 5, 6, 30):
        _, session = model.start(random_ids(rows, prompt), 1000)
        for size in (1, 1, 7, 3, 20):
            assert session.bytes() == expected
            model.step(random_ids(rows, size), session)
        store = session.cache.stores["window"]
        assert {x.shape[2] for x in (*store.keys.values(), *store.values.values())} == {window + 1}
        assert store.positions_BS.shape[1] == window + 1


@torch.no_grad()
def test_only_the_global_layers_of_a_mixed_stack_grow():
    model = model_of("window", "causal", "window", window=5)
    _, session = model.start(random_ids(1, 8), 1000)
    stores = session.cache.stores
    assert isinstance(stores["window"], SlidingStore)
    assert isinstance(stores["causal"], SlotStore)
    local, everything = stores["window"].bytes(), stores["causal"].bytes()
    for _ in range(20):
        model.step(random_ids(1, 10), session)
    assert stores["window"].bytes() == local
    assert stores["causal"].bytes() > 3 * everything


@pytest.mark.parametrize("masks", [("window", "causal"), ("causal", "window")])
@torch.no_grad()
def test_what_the_window_has_forgotten_cannot_be_seen_again(masks):
    model, tokens = model_of(*masks, window=4), random_ids(64).tolist()
    told = Told(model, cut(tokens, 3, 6))
    before = told.session.bytes()
    with pytest.raises(UsageError, match="sliding cache of 4 tokens cannot go back"):
        told.session.truncate(torch.tensor([2, 5]))
    assert (told.session.lengths, told.session.bytes()) == ((3, 6), before)
    told.step(cut(tokens, 1, 1))  # nothing was lost by asking
    told.session = told.session.truncate([2, 9])  # the first row is still whole, the second is not cut
    told.rows[0] = told.rows[0][:2]
    for _ in range(4):
        told.step(cut(tokens, 1, 2))


@torch.no_grad()
def test_a_window_that_the_capacity_does_not_pass_is_a_growing_cache_that_can_be_cut():
    model, tokens = model_of("window", "causal", window=CAPACITY), random_ids(64).tolist()
    told = Told(model, cut(tokens, 6))
    assert told.session.cache.kind == "growing"
    told.session = told.session.truncate([2])
    told.rows[0] = told.rows[0][:2]
    told.step(cut(tokens, 5))


@torch.no_grad()
def test_a_row_beyond_the_capacity_is_refused_and_changes_nothing():
    for masks, window in ((("window",), 4), (("window", "causal"), 4), (("causal",), 4)):
        model = model_of(*masks, window=window)
        told = Told(model, [[1, 2, 3]], cache_for(model.stack.masks, 1, 6))
        with pytest.raises(UsageError, match="row of 7 tokens does not fit a cache of 6"):
            model.step(random_ids(1, 4), told.session)
        told.step([[4, 5, 6]])


def sliding(window):
    return RowCache(1, 8, {EVERY_MASK: SlidingStore(1, 8, window)})


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (growing(1, 9), "one is growing and holds 8 tokens, the other growing, 9"),
        (static(1, 8), "the other static, 8"),
        (sliding(4), "the other sliding"),
        (RowCache(1, 8, {"a": SlotStore(1, 8)}), "the other a: growing"),
    ],
)
def test_caches_of_different_kinds_are_not_joined(other, message):
    with pytest.raises(UsageError, match=message):
        growing(1, 8).join(other)
    with pytest.raises(UsageError, match="cannot be joined"):
        other.join(growing(1, 8))


def test_windows_of_different_lengths_are_not_joined():
    with pytest.raises(UsageError, match=r"sliding \(3\).*sliding \(4\)"):
        sliding(3).join(sliding(4))
    with pytest.raises(UsageError, match="cannot be joined"):
        RowCache(1, 8, {"a": SlotStore(1, 8)}).join(RowCache(1, 8, {"b": SlotStore(1, 8)}))


@torch.no_grad()
def test_rows_joined_to_much_longer_ones_keep_their_own_lengths():
    tokens, model = random_ids(128, seed=3).tolist(), model_of("causal", window=1)
    short = Told(model, cut(tokens, 2), growing(1, 1000))
    long = Told(model, cut(tokens, 1), growing(1, 1000))
    long.session = model.start(random_ids(1, 200, seed=4), 1000, cache=growing(1, 1000))[1]
    long.rows = random_ids(1, 200, seed=4).tolist()
    short.join(long)
    short.step(cut(tokens, 1, 3))


@pytest.mark.parametrize("family", ["deepseek_v2", "deepseek_v3"])
@torch.no_grad()
def test_a_latent_cache_holds_the_latent_and_one_rotated_key_a_layer(family):
    """Bytes a token: (latent + rotated) x 8 x layers, by the growth of a static cache; full heads would take more."""
    model, config = tiny(family), load_family(family).TINY
    small, large = (model.start(random_ids(3, 4), n, cache=static(3, n))[1].bytes() for n in (10, 30))
    per_token = (config["kv_lora_rank"] + config["qk_rope_head_dim"]) * 8 * config["num_hidden_layers"]
    assert (large - small) / (3 * 20) == per_token
    head = config["qk_nope_head_dim"] + config["qk_rope_head_dim"] + config["v_head_dim"]
    assert per_token < config["num_attention_heads"] * head * 8 * config["num_hidden_layers"]


def test_the_smallest_cache_is_chosen_by_the_masks():
    window = Causal() & Window(length=4)
    assert cache_for({"a": Causal()}, 1, 9).kind == "growing"
    assert cache_for({"a": window}, 1, 4).kind == "growing"
    assert cache_for({"a": window}, 1, 5).kind == "a: sliding (4)"
    assert cache_for({"a": window, "b": Causal()}, 1, 9).kind == "a: sliding (4), b: growing"


def test_keys_of_a_window_are_not_known_to_be_past_alone():
    """Its slots go round, so that a mask must say which of them a query may see."""
    assert not RowCache(1, 8, {"a": SlidingStore(1, 8, 3)}).shows_only_past("a")
