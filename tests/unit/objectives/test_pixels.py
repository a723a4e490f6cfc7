"""Objectives that draw pictures: what is hidden, what the encoder reads of it, and the error, against other ways."""

from types import SimpleNamespace

import pytest
import torch

from orrery.checkpoints.tensors import read_tensors
from orrery.data.batches.token_windows import PureSource
from orrery.errors import UsageError
from orrery.families import load_family, spec_of
from orrery.models.model import HIDDEN
from orrery.models.patch_decoder import PatchDecoder, patches_of, pictures_of, stack_of
from orrery.objectives import OBJECTIVES
from orrery.training.contract import finished_batch
from orrery.training.evaluate import Validation
from orrery.training.loop import Parts
from orrery.tuning import describe
from training_toy import toy_recipe, toy_run

pytestmark = pytest.mark.usefixtures("without_gradients")
CONFIG = {**load_family("vit").TINY, "architectures": ["ViTModel"], "num_channels": 2}


@pytest.fixture
def without_gradients():
    """Compute values alone."""
    with torch.no_grad():
        yield


def made(name, **settings):
    """Return an objective with a model of noise in float64, and a batch of 5 pictures of 3 by 3 patches."""
    torch.manual_seed(3)
    spec = spec_of(load_family("vit"), CONFIG)
    model = spec.build().double().eval()
    objective = OBJECTIVES.find(name)(width=16, **settings)
    objective.bind(spec, None)
    for part in objective.modules(model).values():
        part.double()
    for parameter in (*model.parameters(), *objective.decoder.parameters()):
        torch.nn.init.normal_(parameter, std=0.3)
    images = torch.randn(5, 2, 12, 12, dtype=torch.float64)
    batch = finished_batch(objective, {"images": images}, torch.Generator().manual_seed(1), spec.inputs)
    return objective, model, batch


def test_patches_are_those_that_the_projection_meets():
    embed = spec_of(load_family("vit"), CONFIG).embed
    images = torch.randn(3, 2, 12, 12, dtype=torch.float64)
    patches = patches_of(images, embed)
    assert patches.shape == (3, 9, 4 * 4 * 2)
    project = embed.build(8).double().project
    weight = project.weight.permute(0, 2, 3, 1).flatten(1)  # rows, columns, channels
    assert torch.allclose(patches @ weight.T + project.bias, project(images).flatten(2).mT, atol=1e-12)
    assert torch.equal(pictures_of(patches, embed), images)


@pytest.mark.parametrize("normalise", [True, False])
def test_the_error_is_that_of_transformers_on_the_same_drawing(normalise):
    transformers = pytest.importorskip("transformers")
    config = transformers.ViTMAEConfig(
        image_size=12, patch_size=4, num_channels=2, hidden_size=24, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=32, decoder_hidden_size=16, decoder_num_hidden_layers=1, decoder_num_attention_heads=2,
        decoder_intermediate_size=32, norm_pix_loss=normalise,
    )  # fmt: skip
    reference = transformers.ViTMAEForPreTraining(config).double()
    objective, model, batch = made("masked_patches", hidden=0.6, normalise=normalise)
    (term,) = objective.loss(model, batch).values()
    drawn = objective.decoder(model(batch, (HIDDEN,))[HIDDEN], batch["kept"])
    hidden = torch.ones(5, 10).scatter(1, batch["kept"], 0.0)[:, 1:]
    del reference.vit, reference.decoder  # what is drawn comes from here
    nothing = dict.fromkeys(("last_hidden_state", "ids_restore", "hidden_states", "attentions"))
    reference.vit = lambda *_, **__: SimpleNamespace(mask=hidden, **nothing)
    reference.decoder = lambda *_, **__: SimpleNamespace(logits=drawn)
    theirs = reference(batch["images"]).loss
    assert term.sum / term.count == pytest.approx(float(theirs), rel=1e-12)
    assert int(term.count) == int(hidden.sum()) == next(iter(objective.counts(batch).values()))


def test_what_is_left_out_is_as_if_it_were_not_there():
    _, model, batch = made("masked_patches", hidden=0.5)
    kept = batch["kept"]
    assert kept.shape == (5, 1 + 4)
    assert (kept[:, 0] == 0).all()
    assert (kept.diff(dim=1) > 0).all()
    read = model(batch, (HIDDEN,))[HIDDEN]
    real = torch.zeros(5, 10, dtype=torch.bool).scatter(1, kept, True)
    whole = {"images": batch["images"], "real": real, "positions": torch.arange(10).expand(5, 10)}
    other = model(whole, (HIDDEN,))[HIDDEN]  # the others stand there, and nobody looks at them
    assert torch.allclose(read, other.gather(1, kept[..., None].expand(-1, -1, 24)), atol=1e-12)
    changed = batch["images"].clone()
    hidden = (~real[:, 1:]).unflatten(1, (3, 3)).repeat_interleave(4, 1).repeat_interleave(4, 2)
    changed.masked_scatter_(hidden[:, None].expand_as(changed), torch.randn(changed.numel(), dtype=torch.float64))
    assert torch.equal(model({**batch, "images": changed}, (HIDDEN,))[HIDDEN], read)


def test_places_outside_of_a_row_are_refused():
    _, model, batch = made("masked_patches")
    with pytest.raises(UsageError, match="in rows of 10"):
        model({**batch, "kept": batch["kept"] + 9}, (HIDDEN,))


def test_hidden_patches_are_drawn_anew_and_one_is_always_seen():
    objective, _, batch = made("masked_patches", hidden=0.99)
    assert batch["kept"].shape == (5, 2)
    again = [objective.prepare(batch, torch.Generator().manual_seed(seed))["kept"] for seed in (1, 1, 2)]
    assert torch.equal(again[0], again[1])
    assert not torch.equal(again[1], again[2])
    assert objective.tokens_of(batch, {}) == 10
    assert objective.seen(1) == 1
    few, _, batch = made("masked_patches", hidden=0.01)
    assert batch["kept"].shape == (5, 9)
    assert few.counts(batch) == {"pixels": 5}


def test_a_vector_tells_the_decoder_what_stands_at_its_place():
    torch.manual_seed(0)
    decoder = PatchDecoder(spec_of(load_family("vit"), CONFIG), 16, 1, 2).double()
    x, places = torch.randn(2, 3, 24, dtype=torch.float64), torch.tensor([[0, 4, 7], [0, 1, 9]])
    order = torch.tensor([0, 2, 1])
    assert torch.allclose(decoder(x, places), decoder(x[:, order], places[:, order]), atol=1e-12)
    assert not torch.allclose(decoder(x, places), decoder(x[:, order], places), atol=1e-3)
    with pytest.raises(UsageError, match="a width that the heads divide"):
        stack_of(10, 16, 1, 3)


def test_an_autoencoder_draws_from_its_narrow_middle_alone():
    objective, model, batch = made("autoencoder", code=3)
    (term,) = objective.loss(model, batch).values()
    assert next(iter(objective.counts(batch).values())) == int(term.count) == 45
    code = objective.middle(model(batch, (HIDDEN,))[HIDDEN][:, :1])
    assert code.shape == (5, 1, 3)
    drawn = pictures_of(objective.decoder(code, torch.zeros(5, 1, dtype=torch.long)), objective.embed)
    assert term.sum / term.count == pytest.approx(float((drawn - batch["images"]).square().mean()), rel=1e-12)
    assert objective.makes == ()


@pytest.mark.parametrize("name", ["masked_patches", "autoencoder"])
def test_models_of_texts_cannot_learn_to_draw(name):
    spec = spec_of(load_family("bert"), load_family("bert").TINY)
    with pytest.raises(UsageError, match="needs an encoder of patches"):
        OBJECTIVES.find(name)().bind(spec, None)


class Pictures(PureSource):
    """Pictures of noise, the same for each step."""

    def batch(self, step):
        return {"images": torch.randn(4, 2, 12, 12, generator=torch.Generator().manual_seed(step))}


@pytest.mark.parametrize("name", ["masked_patches", "autoencoder"])
def test_stopped_and_resumed_is_the_uninterrupted_run(name, tmp_path):
    def parts():
        torch.manual_seed(2)
        spec = spec_of(load_family("vit"), CONFIG)
        objective, model = OBJECTIVES.find(name)(width=16), spec.build()
        objective.bind(spec, None)
        own = objective.modules(model)
        held_back = Validation(Pictures(), 1, objective.evaluated(), inputs=spec.inputs)
        return Parts(model, objective, Pictures(), held_back, describe, modules=own, inputs=spec.inputs)

    with torch.enable_grad():
        constant = {"training__schedule": {"kind": "constant"}, "checkpoints__every": 2}
        toy_run(tmp_path / "whole", toy_recipe(**constant, training__steps=4), parts())
        for steps in (2, 4):
            toy_run(tmp_path / "parts", toy_recipe(**constant, training__steps=steps), parts(), resume=True)
    newest = [max((tmp_path / run / "checkpoints").glob("step-*")) for run in ("whole", "parts")]
    files = [sorted(folder.glob("*.safetensors")) for folder in newest]
    assert [file.name for file in files[0]] == [file.name for file in files[1]]
    assert len(files[0]) > 2
    for whole, resumed in zip(*files, strict=True):
        one, other = read_tensors(whole), read_tensors(resumed)
        assert one.keys() == other.keys()
        assert all(torch.equal(one[key], other[key]) for key in one)
