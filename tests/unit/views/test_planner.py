"""The formulas that the page's planner computes with count what the rehearsed step of `orrery plan` counts."""

import pytest
import torch

from orrery.accounting.flops import multiplied_parameters
from orrery.accounting.step_cost import step_cost
from orrery.families import load_family
from orrery.views.planner import attention_channels


@pytest.mark.parametrize("family", ["gpt2", "llama", "bert", "t5", "bart", "deepseek_v3", "mixtral", "gemma2"])
def test_weights_and_pairs_of_tokens_are_the_operations_of_a_pass(family):
    rules, length = load_family(family), 12
    spec = rules.spec(rules.TINY)
    forward = step_cost(spec, 1, length, torch.float32).forward
    assert forward.weights == 2 * multiplied_parameters(spec.build()) * length
    assert forward.tokens == 4 * attention_channels(spec) * length**2
