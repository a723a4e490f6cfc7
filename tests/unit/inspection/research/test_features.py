"""Features: where they are active, what they raise, and steering along them."""

import pytest
import torch

from orrery.errors import UsageError
from orrery.inspection.interventions.intervention import Intervention
from orrery.inspection.research.activations import collect
from orrery.inspection.research.features import loss_recovered, raised_tokens, steering, top_activations, without
from orrery.inspection.research.sparse_autoencoder import L1, SparseAutoencoder, TopKSparsity
from orrery.inspection.trace import trace
from tiny_models import tiny

KEY = "blocks.1.resid_post"
IDS = torch.randint(0, 290, (6, 9), generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def model():
    return tiny("gpt2")


RELU = L1()


def dictionary(sparsity=RELU, key: str = KEY, features: int = 20) -> SparseAutoencoder:
    rng = torch.Generator().manual_seed(3)
    made = SparseAutoencoder(32, features, sparsity, key).double()
    with torch.no_grad():
        made.decoder_FD.copy_(torch.randn(features, 32, generator=rng, dtype=torch.float64))
        made.decoder_FD.div_(made.decoder_FD.norm(dim=-1, keepdim=True))
        made.encoder_FD.copy_(made.decoder_FD)
    return made


def test_the_places_are_those_where_it_is_most_active(model) -> None:
    autoencoder, values = dictionary(TopKSparsity(8)), collect(model, IDS, [KEY])[KEY]
    activations = top_activations(autoencoder, values, 5, k=5)
    active = autoencoder.encode(values)[..., 5].detach()
    best = [value for value in active.flatten().sort(descending=True).values[:5].tolist() if value > 0]
    assert best
    assert [one.value for one in activations] == pytest.approx(best, abs=1e-12)
    assert all(float(active[one.text, one.position]) == pytest.approx(one.value, abs=1e-12) for one in activations)
    everywhere = top_activations(autoencoder, values, 5, k=1000)
    assert len(everywhere) == int((active > 0).sum()) < active.numel()


def test_what_a_feature_raises_is_what_the_head_makes_of_it(model) -> None:
    autoencoder = dictionary()
    ids, raised = raised_tokens(model, autoencoder, k=3)
    for feature in (0, 7):
        direction = autoencoder.direction(feature)
        norm = model.stack.final
        read = (direction - direction.mean()) / (direction.var(correction=0) + norm.eps).sqrt() * norm.weight
        logits = model.head.vocabulary.weight @ read
        assert ids[feature].tolist() == logits.topk(3).indices.tolist()
        torch.testing.assert_close(raised[feature], logits.topk(3).values, rtol=0, atol=1e-9)


def test_steering_moves_the_logits_into_the_direction(model) -> None:
    """The stream after the last block goes through the norm and the head alone, so that both sides can be computed."""
    autoencoder = dictionary()
    feature, ids = 7, IDS[:1]
    inside = trace(model, ids)
    best = int(raised_tokens(model, autoencoder, k=1)[0][feature])
    logits = []
    for strength in (0.0, 1.0, 4.0, 16.0, 64.0):
        edit = steering(autoencoder, feature, strength)
        steered = inside.edit([edit]).run()
        expected = inside[KEY] + strength * autoencoder.direction(feature)
        torch.testing.assert_close(steered[KEY], expected, rtol=0, atol=1e-12)
        torch.testing.assert_close(steered.logits, model.head(model.stack.final(expected)), rtol=0, atol=1e-9)
        logits.append((steered.logits - steered.logits.mean(-1, keepdim=True))[0, -1, best].item())
    assert logits[0] == pytest.approx((inside.logits - inside.logits.mean(-1, keepdim=True))[0, -1, best].item())
    assert logits == sorted(logits)
    assert logits[-1] > logits[0] + 0.5
    # What the direction raises most is what lies between steering far along it and far against it.
    below = inside.edit([steering(autoencoder, feature, -64.0)]).run().logits
    assert int((steered.logits - below)[0, -1].argmax()) == best


def test_steering_is_data_and_reaches_the_named_tokens_alone(model) -> None:
    edit = steering(dictionary(), 2, 3.0, position=(1, 4))
    assert Intervention.of(edit.plain()) == edit
    inside = trace(model, IDS[:2])
    moved = (inside.edit([edit]).run()[KEY] - inside[KEY]).norm(dim=-1)
    assert moved[:, [1, 4]].sub(3.0).abs().max() < 1e-12
    assert moved.sum() == pytest.approx(12.0)


def test_taking_a_feature_out_leaves_the_rest(model) -> None:
    autoencoder = dictionary(TopKSparsity(4))
    inside = trace(model, IDS)
    edited = trace(model, IDS, edit={KEY: without(autoencoder, 5)})
    active = autoencoder.encode(inside[KEY])[..., 5:6]
    expected = inside[KEY] - active * autoencoder.direction(5)
    torch.testing.assert_close(edited[KEY], expected, rtol=0, atol=1e-12)
    assert 0 < int((active > 0).sum()) < active.numel()


def test_the_loss_that_is_recovered_is_that_of_the_value_put_in(model) -> None:
    autoencoder = dictionary(TopKSparsity(3))
    recovered = loss_recovered(model, autoencoder, IDS, rows=4)
    values = collect(model, IDS, [KEY])[KEY]

    def loss(x) -> float:
        logits = model.head(model.stack.final(x))[:, :-1].flatten(0, 1)
        return torch.nn.functional.cross_entropy(logits, IDS[:, 1:].flatten()).item()

    assert recovered.clean == pytest.approx(loss(values), abs=1e-9)
    assert recovered.said == pytest.approx(loss(autoencoder(values)), abs=1e-9)
    assert recovered.mean == pytest.approx(loss(values.mean((0, 1)).expand_as(values)), abs=1e-9)
    assert recovered.share == pytest.approx((recovered.mean - recovered.said) / (recovered.mean - recovered.clean))


def test_a_dictionary_that_says_everything_recovers_everything(model) -> None:
    whole = SparseAutoencoder(32, 64, L1(), KEY).double()
    with torch.no_grad():
        unit = torch.eye(32, dtype=torch.float64)
        whole.decoder_FD.copy_(torch.cat([unit, -unit]))
        whole.encoder_FD.copy_(whole.decoder_FD)
    assert loss_recovered(model, whole, IDS).share == pytest.approx(1.0, abs=1e-9)


def test_what_is_not_there_is_refused(model) -> None:
    with pytest.raises(UsageError, match="no feature 20"):
        top_activations(dictionary(), torch.zeros(1, 2, 32, dtype=torch.float64), 20)
    for call in (lambda one: steering(one, 2, 1.0), lambda one: loss_recovered(model, one, IDS)):
        with pytest.raises(UsageError, match="does not know the key"):
            call(dictionary(key=""))
    with pytest.raises(UsageError, match="nothing is called"):
        loss_recovered(model, dictionary(key="blocks.9.resid_post"), IDS)
