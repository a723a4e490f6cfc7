"""New hybrids of a recurrence and attention are as wide in every matrix as those of transformers."""

from collections import defaultdict

import pytest
import torch
import transformers

from orrery.checkpoints.rules import to_theirs
from orrery.families import initial_stds, load_family, rules_of
from orrery.models.initialise import initialise
from tests.parity.oracle import file_of

WIDER = {
    "recurrent_gemma": {"vocab_size": 500, "hidden_size": 96, "intermediate_size": 256, "lru_width": 128},
    "qwen3_next": {"linear_num_key_heads": 32, "linear_num_value_heads": 64},
}


def tensors(family):
    """Return theirs and ours by the name of the file."""
    rules = load_family(family)
    config = {**rules.TINY, **WIDER[family]}
    kind = getattr(transformers, rules.ARCHITECTURE)
    torch.manual_seed(0)
    theirs = file_of(kind(kind.config_class(**{"pad_token_id": None, **config})))
    model = rules.spec(config).build(0)
    initialise(model, len(model.stack.blocks), seed=3, named=initial_stds(rules, config))
    return theirs, to_theirs(dict(model.named_parameters()), rules_of(rules, config))


def kinds(tensors_given):
    """Return the numbers of each kind of tensor, over all layers."""
    parts = defaultdict(list)
    for name, tensor in tensors_given.items():
        parts[".".join(name.split(".")[-2:])].append(tensor.detach().flatten().double())
    return {kind: torch.cat(numbers) for kind, numbers in parts.items()}


def test_recurrent_gemma_is_drawn_alike():
    theirs, ours = (kinds(weights) for weights in tensors("recurrent_gemma"))
    assert theirs.keys() == ours.keys()
    for kind, wanted in theirs.items():
        assert float(ours[kind].std()) == pytest.approx(float(wanted.std()), rel=0.15, abs=1e-12), kind
        assert float(ours[kind].mean()) == pytest.approx(float(wanted.mean()), abs=0.3 * float(wanted.std()) + 1e-12)


def test_what_qwen3_next_forgets_is_drawn_alike():
    theirs, ours = tensors("qwen3_next")
    name = "model.layers.0.linear_attn"
    torch.testing.assert_close(ours[f"{name}.dt_bias"], theirs[f"{name}.dt_bias"], rtol=0, atol=1e-5)
    paces, wanted = (weights[f"{name}.A_log"].detach().exp() for weights in (ours, theirs))
    assert float(paces.min()) >= 0.01
    assert float(paces.max()) <= 16
    assert float(paces.mean()) == pytest.approx(float(wanted.mean()), rel=0.3)
    norms = [weights["model.layers.0.input_layernorm.weight"] for weights in (ours, theirs)]
    assert torch.equal(*norms)
