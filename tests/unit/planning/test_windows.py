"""Attention through a window costs what the window shows: no plan counts keys that no query sees."""

import pytest
import torch

from orrery.families import load_family, names
from orrery.nn.masks import Causal, Full, LocalWindow, SameDocument, TokenPositions, Window
from orrery.page.views.planner import attention_channels
from orrery.planning.layouts.work import work_of
from orrery.planning.plan import plan
from orrery.planning.step_cost import step_cost
from orrery.planning.windows import beyond, windowed
from orrery.training.operations import mean_keys, training_operations_per_token

LONG = 64
WINDOWS = {
    "mistral": {"sliding_window": 8},
    "mixtral": {"sliding_window": 8},
    "phi3": {"sliding_window": 8},
    "starcoder2": {"sliding_window": 8},
    "qwen2": {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1},
    "qwen3": {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 0},
    "gemma2": {"sliding_window": 8},
    "gemma3_text": {"sliding_window": 8},
    "gpt_oss": {"sliding_window": 8},
    "gpt_neo": {"window_size": 8},
    "modernbert": {"local_attention": 8},
    "smollm3": {"use_sliding_window": True, "sliding_window": 8},
}
"""Families with windows, and keys that make one of eight tokens."""
PLACES = {"max_position_embeddings": LONG, "n_positions": LONG}


def spec_of(family, **more):
    rules = load_family(family)
    places = {key: value for key, value in PLACES.items() if key in rules.TINY}
    return rules.spec({**rules.TINY, **places, **more})


@pytest.mark.parametrize("length", [1, 7, 8, 9, 32, LONG])
@pytest.mark.parametrize("family", WINDOWS)
def test_a_plan_counts_the_keys_that_a_window_shows(family, length):
    spec = spec_of(family, **WINDOWS[family])
    layers = list(windowed(spec))
    assert layers
    assert {layer.keys for layer in layers} <= {7, 8, 9}
    made = plan(spec, rows=2, length=length, dtype="float32")
    hidden = sum(layer.channels * (length - min(length, layer.keys)) for layer in layers)
    whole = step_cost(spec, 2, length, torch.float32)
    wanted = whole.forward.tokens - 4 * 2 * length * hidden
    sinks = 4 * 2 * length * attention_channels(spec) if family == "gpt_oss" else 0  # one more column each
    assert wanted == 4 * 2 * length * (attention_channels(spec) * length - hidden) + sinks
    assert made.cost.forward.tokens == wanted
    assert made.cost.training.tokens == 3 * wanted
    assert made.cost.forward.weights == whole.forward.weights
    assert made.cost.training.weights == whole.training.weights
    assert made.cost.kept == whole.kept
    assert (made.cost == whole) is (length <= min(layer.keys for layer in layers))


@pytest.mark.parametrize("family", ["mistral", "starcoder2"])
def test_what_each_token_costs_does_not_grow_beyond_the_window(family):
    spec = spec_of(family, **WINDOWS[family])
    each = [plan(spec, length=length).cost.forward.tokens / length for length in (8, 16, 32, LONG)]
    assert len(set(each)) == 1
    again = [plan(spec, length=length) for length in (16, LONG)]
    ratios = [one.recomputed.training.tokens / one.cost.forward.tokens for one in again]
    assert ratios[0] == pytest.approx(ratios[1])


@pytest.mark.parametrize("family", names())
def test_without_a_window_nothing_is_left_out(family):
    rules = load_family(family)
    spec = rules.spec(rules.TINY)
    shortest = min((layer.keys for layer in windowed(spec)), default=None)
    assert beyond(spec, 3, 1) == 0
    assert (beyond(spec, 3, 10_000) == 0) is (shortest is None)


@pytest.mark.parametrize(
    "mask",
    [Window(length=5), Causal() & Window(length=3), LocalWindow(distance=2), LocalWindow(distance=0),
     Full() & LocalWindow(distance=4), Causal() & Window(length=9) & Window(length=4), Window(length=1)],
)  # fmt: skip
def test_the_most_keys_of_a_mask_are_those_of_a_long_row(mask):
    places = TokenPositions(torch.arange(40))
    query, key = TokenPositions(places.positions[:, None]), TokenPositions(places.positions[None])
    seen = mask.allows(query, key) & (Causal().allows(query, key) if not isinstance(mask, LocalWindow) else True)
    if "LocalWindow" in repr(mask):
        seen = mask.allows(query, key)
    assert int(seen.sum(1).max()) == mask.most_keys


def test_masks_without_a_window_bound_nothing():
    for mask in (Causal(), Full(), SameDocument(), Causal() & SameDocument()):
        assert mask.most_keys is None


@pytest.mark.parametrize("window", [None, 1, 3, 16, 50, 64, 1000])
def test_the_mean_of_what_a_causal_query_sees(window):
    exact = sum(min(place, window or LONG) for place in range(1, LONG + 1)) / LONG
    assert mean_keys(window, LONG) == pytest.approx(exact, abs=0.5)
    layers = training_operations_per_token(1000, [window] * 3, 16, LONG)
    assert layers == 6000 + 12 * 16 * 3 * mean_keys(window, LONG)
    if window is None:
        assert layers == 6000 + 6 * 3 * 16 * LONG


@pytest.mark.parametrize("family", ["mistral", "mixtral", "gemma2", "starcoder2", "qwen2", "phi3"])
def test_a_layout_counts_the_same(family):
    spec = spec_of(family, **WINDOWS[family])
    work = work_of(spec, family)
    for length in (4, 8, 32, LONG):
        keys = [min(layer.keys, length) for layer in windowed(spec)]
        whole = (work.layers - len(keys)) * length
        assert work.keys(length) == pytest.approx((whole + sum(keys)) / work.layers)
        halves = whole / 2 + sum(mean_keys(layer.keys, length) for layer in windowed(spec))
        assert work.keys(length, 0.5) == pytest.approx(halves / work.layers)
    plain = work_of(spec_of("llama"), "llama")
    assert plain.keys(LONG, 0.5) == LONG / 2
