"""The balance of experts against the term that transformers adds where ``output_router_logits`` is set."""

import pytest
import torch

from orrery.checkpoints.rules import to_ours
from orrery.objectives._balance import TERM
from orrery.objectives.causal import CausalLanguageModel
from tests.parity import oracle
from tests.parity.helper import pair, shapes_of
from tests.parity.test_mixtures import FAMILIES, TINY

MORE = {
    "granitemoe": {**TINY, "num_local_experts": 6},
    "phimoe": {**TINY, "num_local_experts": 6, "num_experts_per_tok": 2},
    "gpt_oss": {**TINY, "num_local_experts": 6, "head_dim": 8},
    "qwen3_moe": {**FAMILIES["qwen3_moe"], "num_hidden_layers": 3, "mlp_only_layers": [1], "norm_topk_prob": True},
}
CASES = [*FAMILIES.items(), *MORE.items()]
PADDED = [9, 5, 1]


def batch_of(padded: bool) -> dict[str, torch.Tensor]:
    ids = torch.randint(3, 90, (3, 9), generator=torch.Generator().manual_seed(4))
    lengths = torch.tensor(PADDED if padded else [9] * 3)
    return {"ids": ids, "targets": ids, "real": torch.arange(9) < lengths[:, None]}


@pytest.mark.parametrize("padded", [False, True], ids=["whole", "padded"])
@pytest.mark.parametrize(("kind", "config"), CASES, ids=[f"{n}-{kind}" for n, (kind, _) in enumerate(CASES)])
def test_the_term_and_its_gradient_are_the_references(kind, config, padded):
    both, batch = pair(kind, **config), batch_of(padded)
    mask = batch["real"].long() if padded else None
    theirs = both.reference(batch["ids"], attention_mask=mask, output_router_logits=True).aux_loss
    objective = CausalLanguageModel(balance=0.1)
    objective.bind(both.ours.spec, None)
    term = objective.loss(both.ours, batch)[TERM]
    assert term.weight == 0.1
    assert term.sum.item() == pytest.approx(theirs.item(), abs=1e-9)
    theirs.backward()
    term.sum.backward()
    expected = to_ours(oracle.gradients_of(both.theirs), both.rules, shapes_of(both.ours))
    for name, parameter in both.ours.named_parameters():
        gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        torch.testing.assert_close(gradient, expected[name], rtol=0, atol=1e-9, msg=lambda text, name=name: name + text)
    assert any(parameter.grad is not None and parameter.grad.abs().max() > 1e-4 for parameter in both.ours.parameters())


@pytest.mark.parametrize("kind", ["mixtral", "qwen3_moe", "olmoe"])
def test_the_whole_loss_is_the_references_with_the_coefficient_of_its_configuration(kind):
    """All targets are learnt, for the reference shifts its labels by itself."""
    both, batch = pair(kind, **FAMILIES[kind]), batch_of(False)
    coefficient = both.config["router_aux_loss_coef"]
    ids = batch["ids"]
    theirs = both.reference(ids, labels=ids, output_router_logits=True).loss
    targets = torch.cat([ids[:, 1:], torch.full((3, 1), -100)], 1)
    terms = CausalLanguageModel(balance=coefficient).loss(
        both.ours, {"ids": ids, "targets": targets, "real": batch["real"]}
    )
    ours = sum(term.weight * term.sum / term.count for term in terms.values())
    assert ours.item() == pytest.approx(theirs.item(), abs=1e-9)
