"""What is learned of each pixel and of things with boxes: heads, losses, matching, against transformers and torch."""

from types import SimpleNamespace

import pytest
import torch
from torch.nn import functional as F

from orrery.errors import UsageError
from orrery.families import load_family, spec_of
from orrery.metrics import METRICS
from orrery.models.heads import HEADS
from orrery.nn.boxes import corners, giou
from orrery.nn.picture_heads import BoxHead, PixelHead
from orrery.nn.positions.grid import PatchGrid
from orrery.objectives import OBJECTIVES
from orrery.runs.begin import with_heads

CONFIG = {**load_family("vit").TINY, "architectures": ["ViTModel"]}
LABELS = {"a": 4, "b": 2, "c": 3}


def model_of(kind, **more):
    """Return a ViT of noise in float64 with a head of a kind for three labels."""
    torch.manual_seed(3)
    head = HEADS.find(kind)
    spec = spec_of(load_family("vit"), CONFIG)
    settings = head.Settings(kind=kind, labels=3, names=tuple(LABELS))
    model = with_heads(spec, {kind: settings}).build().double().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


def test_a_pixel_head_gives_each_pixel_of_a_patch_its_own_scores():
    grid = PatchGrid(rows=2, columns=3)
    head = PixelHead.Spec(labels=5, grid=grid, patch=(4, 3)).build(7).double()
    x = torch.randn(2, 7, 7, dtype=torch.float64)
    found = head(x)
    assert found.shape == (2, 5, 8, 9)
    for row, column in ((0, 0), (1, 2), (0, 1)):
        patch = head.labels(x[:, 1 + row * 3 + column]).reshape(2, 5, 4, 3)
        assert torch.allclose(found[:, :, row * 4 : row * 4 + 4, column * 3 : column * 3 + 3], patch, atol=1e-12)


def test_a_box_head_begins_at_its_patches():
    head = BoxHead.Spec(labels=2, grid=PatchGrid(rows=2, columns=4)).build(6)
    torch.nn.init.zeros_(head.box.weight)
    torch.nn.init.zeros_(head.box.bias)
    found = head(torch.randn(1, 9, 6))
    assert found.shape == (1, 8, 2 + 1 + 4)
    assert torch.allclose(found[0, 0, 3:], torch.tensor([1 / 8, 1 / 4, 0.5, 0.9]))
    assert torch.allclose(found[0, 7, 3:], torch.tensor([7 / 8, 3 / 4, 0.5, 0.9]))


def test_the_overlap_with_its_hull_is_that_of_transformers():
    loss = pytest.importorskip("transformers.loss.loss_for_object_detection")
    torch.manual_seed(0)
    one, other = (torch.rand(9, 4, dtype=torch.float64) for _ in range(2))
    one[0] = other[0]
    theirs = loss.generalized_box_iou(corners(one), corners(other))
    assert torch.allclose(giou(corners(one)[:, None], corners(other)[None]), theirs, atol=1e-12)
    assert giou(corners(one[:1]), corners(other[:1])).item() == pytest.approx(1)
    nothing = torch.zeros(1, 4)
    assert torch.isfinite(giou(nothing, nothing)).all()


def pictures_with_things(rows=6, most=4):
    """Return a batch: things drawn at random, of one picture none, of one more than there are patches."""
    torch.manual_seed(1)
    classes = torch.randint(3, (rows, 12))
    counts = torch.randint(1, most, (rows,))
    counts[0], counts[1] = 0, 12
    classes = classes.masked_fill(torch.arange(12) >= counts[:, None], -100)
    boxes = torch.cat([torch.rand(rows, 12, 2) * 0.6 + 0.2, torch.rand(rows, 12, 2) * 0.3 + 0.05], -1).double()
    return {"images": torch.randn(rows, 3, 12, 12).double(), "boxes": boxes, "classes": classes}


@pytest.mark.parametrize("settings", [{}, {"nothing": 0.4, "place": 1.5, "overlap": 3.0}])
def test_the_loss_of_things_is_that_of_transformers(settings):
    reference = pytest.importorskip("transformers.loss.loss_for_object_detection")
    model, batch = model_of("boxes"), pictures_with_things()
    objective = OBJECTIVES.find("detection")(**settings)
    objective.bind(model.spec, None)
    assert objective.queries == 9
    terms, counts = objective.loss(model, batch), objective.counts(batch)
    ours = sum(term.weight * term.sum / counts[name] for name, term in terms.items())
    place, overlap = objective.weights
    config = SimpleNamespace(
        class_cost=1, bbox_cost=place, giou_cost=overlap, num_labels=3, eos_coefficient=objective.nothing,
        auxiliary_loss=False, bbox_loss_coefficient=place, giou_loss_coefficient=overlap,
    )  # fmt: skip
    said = model(batch, ("boxes",))["boxes"]
    real = [own != -100 for own in batch["classes"]]
    labels = [
        {"class_labels": own[kept], "boxes": boxes[kept]}
        for own, boxes, kept in zip(batch["classes"], batch["boxes"], real, strict=True)
    ]
    torch.set_default_dtype(torch.float64)  # of the weights of the labels, which the reference makes
    try:
        theirs, parts, _ = reference.ForObjectDetectionLoss(said[..., :-4], labels, "cpu", said[..., -4:], config)
    finally:
        torch.set_default_dtype(torch.float32)
    assert ours.item() == pytest.approx(theirs.item(), rel=1e-9)
    assert (terms["place"].sum / counts["place"]).item() == pytest.approx(parts["loss_bbox"].item(), rel=1e-9)


def test_the_terms_of_pieces_add_up():
    model, batch = model_of("boxes"), pictures_with_things()
    objective = OBJECTIVES.find("detection")()
    objective.bind(model.spec, None)
    whole = objective.loss(model, batch)
    for name in whole:
        parts = [objective.loss(model, {k: v[n : n + 1] for k, v in batch.items()})[name].sum for n in range(6)]
        assert sum(parts).item() == pytest.approx(whole[name].sum.item(), rel=1e-9)
    counts = [objective.counts({k: v[n : n + 1] for k, v in batch.items()}) for n in range(6)]
    assert {name: sum(each[name] for each in counts) for name in whole} == objective.counts(batch)


def test_values_that_are_no_numbers_reach_the_loss_and_are_told_there():
    model, batch = model_of("boxes"), pictures_with_things()
    objective = OBJECTIVES.find("detection")()
    objective.bind(model.spec, None)
    terms = objective.loss(model, {**batch, "images": batch["images"] * float("nan")})
    assert not torch.isfinite(terms["label"].sum)


def test_the_loss_of_pixels_is_the_cross_entropy_of_those_that_are_asked():
    model = model_of("pixel")
    targets = torch.randint(-1, 3, (4, 12, 12))
    targets[targets < 0] = -100
    batch = {"images": torch.randn(4, 3, 12, 12).double(), "targets": targets.to(torch.int16)}
    objective = OBJECTIVES.find("segmentation")()
    objective.needed_head(LABELS)
    objective.bind(model.spec, None)
    (term,) = objective.loss(model, batch).values()
    logits = model(batch, ("pixel",))["pixel"]
    assert (term.sum / term.count).item() == pytest.approx(F.cross_entropy(logits, targets).item(), rel=1e-9)
    assert objective.counts(batch) == {"pixel": int((targets != -100).sum())}
    larger = {**batch, "targets": targets.repeat_interleave(2, 1).repeat_interleave(2, 2)}
    (term,) = objective.loss(model, larger).values()
    enlarged = F.interpolate(logits, (24, 24), mode="bilinear", align_corners=False)
    assert (term.sum / term.count).item() == pytest.approx(
        F.cross_entropy(enlarged, larger["targets"]).item(), rel=1e-9
    )
    metric = METRICS.find("mean_iou")()
    metric.bind(model.spec, None)
    said, asked = logits.argmax(1), targets != -100
    each = [((said == n) & (targets == n)).sum() / (((said == n) | (targets == n)) & asked).sum() for n in range(3)]
    halves = [metric.measure(model, {k: v[part] for k, v in batch.items()}, {}) for part in (slice(0, 2), slice(2, 4))]
    assert metric.value(sum(halves), None) == pytest.approx(float(sum(each) / 3), rel=1e-6)


def test_models_without_patches_and_without_the_head_are_refused():
    bert = spec_of(load_family("bert"), load_family("bert").TINY)
    for kind in ("pixel", "boxes"):
        head = HEADS.find(kind)
        with pytest.raises(UsageError, match=f"a head of kind {kind} stands on the patches"):
            with_heads(bert, {kind: head.Settings(kind=kind, labels=2)})
        with pytest.raises(UsageError, match="stands on the patches"):
            head.spec(head.Settings(kind=kind))
        with pytest.raises(UsageError, match="has no number of labels"):
            with_heads(spec_of(load_family("vit"), CONFIG), {kind: head.Settings(kind=kind)})
    for name, says in (("detection", "no head boxes for boxes"), ("segmentation", "trains the head pixel")):
        with pytest.raises(UsageError, match=says):
            OBJECTIVES.find(name)().bind(bert, None)
