"""How far back a gradient reaches, against the gradients of the embedding table."""

import pytest
import torch

from orrery.errors import UsageError
from orrery.families import load_family
from orrery.inspection.gradient_distance import gradient_by_distance
from tiny_models import randomised

FAMILIES = ("elman_rnn", "lstm", "gru", "llama")


def model(family: str):
    rules = load_family(family)
    return randomised(rules.spec({**rules.TINY, "tie_word_embeddings": False}).build(0).double().eval())


@pytest.mark.parametrize("family", FAMILIES)
def test_it_is_the_gradient_of_each_words_row(family: str) -> None:
    decoder = model(family)
    ids = torch.randperm(61, generator=torch.Generator().manual_seed(1))[None, :9]
    loss = torch.nn.functional.cross_entropy(decoder.logits(ids[:, :-1])[:, -1], ids[:, -1])
    (rows,) = torch.autograd.grad(loss, decoder.embed.token.weight)
    expected = rows[ids[0, :-1]].norm(dim=-1).flip(0).tolist()
    assert gradient_by_distance(decoder, ids) == pytest.approx(expected, rel=1e-9)


def test_rows_do_not_touch_each_other() -> None:
    decoder = model("lstm")
    ids = torch.randint(61, (3, 7), generator=torch.Generator().manual_seed(2))
    alone = torch.tensor([gradient_by_distance(decoder, row[None]) for row in ids], dtype=torch.float64)
    assert gradient_by_distance(decoder, ids) == pytest.approx(alone.mean(0).tolist(), rel=1e-9)


def test_what_cannot_be_measured_is_refused() -> None:
    with pytest.raises(UsageError, match="predicts none"):
        gradient_by_distance(model("gru"), torch.zeros(1, 1, dtype=torch.long))
    with pytest.raises(UsageError, match="training mode"):
        gradient_by_distance(model("gru").train(), torch.zeros(1, 3, dtype=torch.long))


def test_it_works_where_gradients_are_switched_off() -> None:
    with torch.no_grad():
        assert len(gradient_by_distance(model("gru"), torch.zeros(1, 3, dtype=torch.long))) == 2
