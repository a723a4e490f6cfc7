"""The sparse autoencoder: its sums and gradients by hand, its file, and a known dictionary found again."""

import json

import pytest
import torch

from orrery.checkpoints.tensors import TensorFile, write_tensors
from orrery.errors import ModelFileError, UsageError
from orrery.inspection.research.dictionary_learning import keep_length, learn_dictionary, losses, quality
from orrery.inspection.research.sparse_autoencoder import L1, SparseAutoencoder, TopKSparsity


def random(sparsity, width: int = 5, features: int = 9, key: str = "") -> SparseAutoencoder:
    rng = torch.Generator().manual_seed(0)
    model = SparseAutoencoder(width, features, sparsity, key).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=rng, dtype=torch.float64))
        model.decoder_FD.div_(model.decoder_FD.norm(dim=-1, keepdim=True))
    return model


X = torch.randn(7, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@torch.no_grad()
def by_hand(model: SparseAutoencoder, x, active):
    """Features and what they say, one number after another; ``active`` says which features of a row count."""
    features = torch.zeros(len(x), model.features, dtype=torch.float64)
    said = model.bias_D.detach().repeat(len(x), 1)
    for row in range(len(x)):
        for feature in range(model.features):
            before = float(model.encoder_bias_F[feature])
            for channel in range(x.shape[1]):
                centred = float(x[row, channel]) - float(model.bias_D[channel])
                before += float(model.encoder_FD[feature, channel]) * centred
            features[row, feature] = max(before, 0.0)
        for feature in range(model.features):
            if not active(features[row], feature):
                features[row, feature] = 0.0
            for channel in range(x.shape[1]):
                said[row, channel] += float(features[row, feature]) * float(model.decoder_FD[feature, channel])
    return features, said


@pytest.mark.parametrize(
    ("sparsity", "active"),
    [
        (L1(0.3), lambda features, feature: True),
        (TopKSparsity(2), lambda features, feature: int((features > features[feature]).sum()) < 2),
        (TopKSparsity(100), lambda features, feature: True),
    ],
)
def test_the_sums_are_those_by_hand(sparsity, active) -> None:
    model = random(sparsity)
    features, said = by_hand(model, X, active)
    torch.testing.assert_close(model.encode(X), features, rtol=0, atol=1e-12)
    torch.testing.assert_close(model(X), said, rtol=0, atol=1e-12)
    assert torch.equal(model(X.view(7, 1, 5)), model(X).view(7, 1, 5))
    torch.testing.assert_close(model(X[2]), model(X)[2], rtol=0, atol=1e-12)
    error, penalty, _ = losses(model, X)
    assert float(error.detach()) == pytest.approx(float((X - said).square().sum()) / 7, abs=1e-12)
    weight = sparsity.coefficient if isinstance(sparsity, L1) else 0.0
    assert float(penalty.detach()) == pytest.approx(weight * float(features.sum()) / 7, abs=1e-12)


@pytest.mark.parametrize("sparsity", [L1(0.3), TopKSparsity(2)])
def test_the_gradients_are_those_by_hand(sparsity) -> None:
    model = random(sparsity)
    error, penalty, features = losses(model, X)
    (error + penalty).backward()
    with torch.no_grad():
        f, rest = features.detach(), model(X) - X
        coefficient = sparsity.coefficient if isinstance(sparsity, L1) else 0.0
        # dL/dx' = 2 (x' - x) / N; through an active feature: W_dec of it, and the penalty.
        towards = (2 * rest @ model.decoder_FD.T + coefficient) / 7 * (f > 0)
        expected = {
            "decoder_FD": 2 * f.T @ rest / 7,
            "encoder_FD": towards.T @ (X - model.bias_D),
            "encoder_bias_F": towards.sum(0),
            "bias_D": 2 * rest.sum(0) / 7 - towards.sum(0) @ model.encoder_FD,
        }
    for name, gradient in expected.items():
        torch.testing.assert_close(getattr(model, name).grad, gradient, rtol=0, atol=1e-12)
    keep_length(model)
    unit, left = model.decoder_FD.detach(), model.decoder_FD.grad
    assert (left * unit).sum(-1).abs().max() < 1e-12
    along = expected["decoder_FD"] - left
    torch.testing.assert_close((along * unit).sum(-1).square(), along.square().sum(-1), rtol=1e-9, atol=1e-12)
    assert (expected["decoder_FD"] * unit).sum(-1).abs().max() > 1e-2  # there was something to take out


def sparse_values(seed: int, directions: int = 32, width: int = 16, active: int = 3):
    """Sums of three of 32 random directions in 16 channels, and the directions."""
    rng = torch.Generator().manual_seed(seed)
    true_FD = torch.randn(directions, width, generator=rng)
    true_FD /= true_FD.norm(dim=-1, keepdim=True)
    chosen_NF = torch.rand(6000, directions, generator=rng).argsort(-1) < active
    amount_NF = chosen_NF * (1.5 + 3 * torch.rand(6000, directions, generator=rng))
    return true_FD, (amount_NF @ true_FD + torch.randn(width, generator=rng)).view(120, 50, width)


def mean_max_cosine(true_FD, found_FD) -> float:
    """How near the nearest found direction is to each true one (Sharkey et al. 2022)."""
    return float((true_FD @ found_FD.T).amax(1).mean())


@pytest.mark.parametrize(("sparsity", "explained"), [(L1(2.0), 0.65), (TopKSparsity(3), 0.85)])
def test_it_finds_a_known_dictionary(sparsity, explained: float) -> None:
    """Three seeds gave 0.978 to 0.992 at 48 features; random directions give 0.55."""
    true_FD, values = sparse_values(0)
    learned = learn_dictionary(values, 48, sparsity, steps=1200, key="x")
    directions = learned.autoencoder.decoder_FD.detach()
    random_FD = torch.randn(48, 16, generator=torch.Generator().manual_seed(9))
    assert mean_max_cosine(true_FD, random_FD / random_FD.norm(dim=-1, keepdim=True)) < 0.7
    assert mean_max_cosine(true_FD, directions) > 0.95
    torch.testing.assert_close(directions.norm(dim=-1), torch.ones(48))
    held = values[learned.held_out_B]
    assert learned.held_out_B.sum() == 12
    assert learned.quality.explained_variance > explained
    assert 2 < learned.quality.l0 < 8
    assert learned.curve[-1].error < 0.5 * learned.curve[0].error
    again = quality(learned.autoencoder, held, rows=17)
    assert again.explained_variance == pytest.approx(learned.quality.explained_variance, abs=1e-6)
    assert torch.equal(again.density_F, learned.quality.density_F)


def test_the_quality_is_that_of_its_definition() -> None:
    model = random(L1())
    measured = quality(model, X, rows=3)
    features, said = by_hand(model, X, lambda features, feature: True)
    mean = X.mean(0)
    expected = 1 - (X - said).square().sum() / (X - mean).square().sum()
    assert measured.explained_variance == pytest.approx(float(expected), abs=1e-12)
    assert measured.l0 == pytest.approx(float((features > 0).double().sum(-1).mean()))
    assert measured.density_F.tolist() == pytest.approx((features > 0).double().mean(0).tolist())
    with torch.no_grad():
        model.encoder_bias_F[4] = -1e3
        model.encoder_bias_F[7] = -1e3
    assert quality(model, X).dead == 2 + int((features[:, [0, 1, 2, 3, 5, 6, 8]] == 0).all(0).sum())


def test_units_are_those_of_the_value() -> None:
    """A value a thousand times as great, elsewhere, has the same directions, and features a thousand times as great."""
    _, values = sparse_values(1)
    one = learn_dictionary(values.double(), 40, TopKSparsity(3), steps=60)
    other = learn_dictionary(1000 * values.double() + 5, 40, TopKSparsity(3), steps=60)
    torch.testing.assert_close(one.autoencoder.decoder_FD, other.autoencoder.decoder_FD, rtol=0, atol=1e-6)
    features = one.autoencoder.encode(values[0].double())
    torch.testing.assert_close(
        1000 * features, other.autoencoder.encode(1000 * values[0].double() + 5), rtol=1e-5, atol=1e-3
    )


def test_directions_that_nothing_uses_are_taken_anew() -> None:
    _, values = sparse_values(2)
    told: list[int] = []
    learned = learn_dictionary(
        values, 512, TopKSparsity(1), steps=40, size=8, done=lambda step, steps: told.append(step)
    )
    assert learned.resampled > 0
    assert told == list(range(1, 41))
    assert torch.isfinite(learned.autoencoder.decoder_FD).all()


@pytest.mark.parametrize("sparsity", [L1(0.25), TopKSparsity(3)])
def test_a_file_gives_it_back(tmp_path, sparsity) -> None:
    model = random(sparsity, key="blocks.1.resid_post")
    path = tmp_path / "dictionary.safetensors"
    model.save(path)
    loaded = SparseAutoencoder.load(path)
    assert (loaded.key, loaded.sparsity) == ("blocks.1.resid_post", sparsity)
    assert torch.equal(loaded(X), model(X))
    with pytest.raises(UsageError, match="exists already"):
        model.save(path)
    model.save(path, overwrite=True)


def test_another_file_is_refused(tmp_path) -> None:
    model, path = random(TopKSparsity(3)), tmp_path / "dictionary.safetensors"
    with pytest.raises(ModelFileError, match="missing"):
        SparseAutoencoder.load(path)
    write_tensors(path, model.state_dict())
    with pytest.raises(ModelFileError, match="holds no sparse autoencoder"):
        SparseAutoencoder.load(path)
    model.save(path, overwrite=True)
    told = TensorFile(path).metadata["sparse_autoencoder"]
    for wrong in ({"kind": "pickle"}, {"kind": "top_k", "k": 0}, {"kind": "top_k", "k": "3"}, {"kind": "l1", "k": 3}):
        plain = json.dumps({**json.loads(told), "sparsity": wrong})
        write_tensors(path, model.state_dict(), {"sparse_autoencoder": plain})
        with pytest.raises(ModelFileError, match="holds no sparse autoencoder"):
            SparseAutoencoder.load(path)
    write_tensors(path, {**model.state_dict(), "bias_D": torch.zeros(2)}, {"sparse_autoencoder": told})
    with pytest.raises(ModelFileError, match="size mismatch"):
        SparseAutoencoder.load(path)


def test_what_cannot_be_learned_is_refused() -> None:
    values = sparse_values(0)[1]
    with pytest.raises(UsageError, match="leaves 0"):
        learn_dictionary(values[:2], 8, TopKSparsity(2), held_out=1.0)
    with pytest.raises(UsageError, match="variance of 0"):
        learn_dictionary(torch.ones(4, 3, 5), 8, TopKSparsity(2), held_out=0.5)
    with pytest.raises(UsageError, match="variance of nan"):
        learn_dictionary(values[:4] * float("nan"), 8, TopKSparsity(2), held_out=0.5)
    with pytest.raises(UsageError, match="0 features"):
        SparseAutoencoder(5, 0, TopKSparsity(2))
    with pytest.raises(UsageError, match="k = 0"):
        TopKSparsity(0)
    with pytest.raises(UsageError, match="coefficient = -1"):
        L1(-1.0)
    with pytest.raises(UsageError, match="no feature 9"):
        random(TopKSparsity(2)).direction(9)
