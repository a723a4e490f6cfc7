"""The formulas that the page's planner computes with count what the rehearsed step of `orrery plan` counts."""

import pytest
import torch

from orrery.families import load_family
from orrery.page.views.planner import attention_by_window, attention_channels
from orrery.planning.plan import plan
from orrery.planning.step_cost import step_cost
from orrery.training.operations import multiplied_parameters
from unit.planning.test_windows import LONG, WINDOWS, spec_of


@pytest.mark.parametrize("family", ["gpt2", "llama", "bert", "t5", "bart", "deepseek_v3", "mixtral", "gemma2"])
def test_weights_and_pairs_of_tokens_are_the_operations_of_a_pass(family):
    rules, length = load_family(family), 12
    spec = rules.spec(rules.TINY)
    forward = step_cost(spec, 1, length, torch.float32).forward
    assert forward.weights == 2 * multiplied_parameters(spec.build()) * length
    assert forward.tokens == 4 * attention_channels(spec) * length**2


@pytest.mark.parametrize("length", [1, 7, 8, 9, LONG])
@pytest.mark.parametrize("family", [name for name in WINDOWS if name != "gpt_oss"])  # it has a column more: the sink
def test_the_keys_that_a_window_shows_are_those_of_a_plan(family, length):
    spec = spec_of(family, **WINDOWS[family])
    groups = attention_by_window(spec)
    assert {keys for keys in groups if keys is not None} <= {7, 8, 9}
    assert sum(groups.values()) == attention_channels(spec)
    pairs = sum(channels * min(length, keys or length) for keys, channels in groups.items())
    assert plan(spec, rows=3, length=length, dtype="float32").cost.forward.tokens == 4 * 3 * length * pairs


@pytest.mark.parametrize("family", ["gpt2", "llama", "bert", "t5", "deepseek_v3"])
def test_without_a_window_all_channels_see_every_key(family):
    rules = load_family(family)
    spec = rules.spec(rules.TINY)
    assert attention_by_window(spec) == {None: attention_channels(spec)}
