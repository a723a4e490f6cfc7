"""New T5s are as wide in every matrix as those of transformers."""

from collections import defaultdict

import pytest
import torch
import transformers

from orrery.checkpoints.rules import to_theirs
from orrery.families import initial_stds, load_family, rules_of
from orrery.models.initialise import initialise

CONFIG = {
    "vocab_size": 500, "d_model": 96, "d_kv": 16, "d_ff": 384, "num_layers": 3, "num_heads": 8,
    "relative_attention_num_buckets": 128, "relative_attention_max_distance": 512,
}  # fmt: skip


def ours(family, config):
    rules = load_family(family)
    model = rules.spec(config).build(0)
    initialise(model, len(model.stack.blocks), seed=3, named=initial_stds(rules, config))
    return to_theirs(dict(model.named_parameters()), rules_of(rules, config))


def widths(tensors):
    """Return the deviation of each kind of matrix, over all layers of both stacks."""
    by_kind = defaultdict(list)
    for name, tensor in tensors.items():
        if tensor.ndim == 2:
            by_kind[".".join(name.split(".")[-2:])].append(tensor.detach().flatten())
    return {kind: torch.cat(parts).std().item() for kind, parts in by_kind.items()}


@pytest.mark.parametrize("more", [{}, {"feed_forward_proj": "gated-gelu"}, {"initializer_factor": 0.3}])
def test_every_kind_of_matrix_is_as_wide(more):
    config = {**CONFIG, **more}
    torch.manual_seed(0)
    theirs = transformers.T5ForConditionalGeneration(transformers.T5Config(**config))
    wanted, ours_wide = widths(theirs.state_dict()), widths(ours("t5", config))
    shared = sorted(set(ours_wide) & set(wanted))
    assert len(shared) >= 8
    for kind in shared:
        assert ours_wide[kind] == pytest.approx(wanted[kind], rel=0.1), kind


@pytest.mark.parametrize(
    ("family", "tied", "logits"), [("t5", True, 1.0), ("t5", False, 1.0), ("mt5", True, 1.0), ("mt5", False, 1.0)]
)
def test_a_new_model_predicts_with_logits_about_as_wide_as_one(family, tied, logits):
    rules, config = load_family(family), {**CONFIG, "tie_word_embeddings": tied}
    model = rules.spec(config).build(0)
    initialise(model, len(model.stack.blocks), seed=3, named=initial_stds(rules, config))
    hidden = torch.nn.functional.normalize(torch.randn(200, 96), dim=-1) * 96**0.5
    assert model.head(hidden[None]).std().item() == pytest.approx(logits, rel=0.1)
