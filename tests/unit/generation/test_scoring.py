import pytest
import torch

from orrery.generation.scoring import log_probabilities, score
from tiny_models import TOKENIZER, tiny


def test_the_probabilities_of_all_next_tokens_sum_to_one():
    rows = torch.tensor([[4, 9, id] for id in range(TOKENIZER.size)])
    with torch.no_grad():
        log_p = log_probabilities(tiny("llama").logits(rows), rows)
    assert float(log_p[:, -1].exp().sum()) == pytest.approx(1, abs=1e-9)


def test_the_total_is_the_chain_rule_and_matches_the_loss():
    model = tiny("gpt2")
    ids = [5, 9, 200, 31]
    scored = score(model.logits, ids, str, before=[0])
    row = torch.tensor([[0, *ids]])
    loss = torch.nn.functional.cross_entropy(model.logits(row)[0, :-1], row[0, 1:], reduction="sum")
    assert scored.total == pytest.approx(-float(loss.detach()), abs=1e-9)
    assert scored.total == pytest.approx(sum(scored.log_probabilities))
    assert scored.tokens == ["5", "9", "200", "31"]


def test_without_a_start_the_first_token_has_no_probability():
    model = tiny("gpt2")
    scored = score(model.logits, [5, 9, 200], str)
    assert scored.log_probabilities[0] is None
    assert len(scored.log_probabilities) == 3
    assert score(model.logits, [], str, before=[0]).total == 0
