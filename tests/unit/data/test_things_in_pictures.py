"""Pictures with masks and with boxes: COCO's and ADE20k's layouts, tables, what is made here, and what is wrong."""

import json

import numpy as np
import pytest
import torch

from orrery.cli import places
from orrery.data.pictures.addresses import as_address
from orrery.data.pictures.files import read_indices
from orrery.data.pictures.png import write_png
from orrery.data.pictures.preparing import for_size, preparation
from orrery.data.rows.masks import names_of, read_masked
from orrery.data.rows.things import Thing, inside
from orrery.data.sources import SOURCES, BatchRequest
from orrery.errors import DataError, UsageError

RNG = np.random.default_rng(0)


def png(array):
    return write_png(torch.from_numpy(np.ascontiguousarray(array.transpose(2, 0, 1))))


def picture(rows=8, columns=12):
    return RNG.integers(0, 256, (rows, columns, 3), dtype=np.uint8)


def read(kind, **settings):
    source = SOURCES.find(kind)
    return source.read(source.Settings.model_validate({"kind": kind, **settings}))


def request(shape=(3, 8, 12), size=4, **how):
    return BatchRequest("pictures", 1, size, 7, pictures=(for_size(*shape[1:], shape[0]), shape), **how)


@pytest.fixture
def ade(tmp_path):
    """Six pictures in ADE20k's layout; half of each mask is 1 above and 2 below, the rest 0."""
    for number in range(6):
        for part in ("images", "annotations"):
            (tmp_path / part / "training").mkdir(parents=True, exist_ok=True)
        (tmp_path / "images" / "training" / f"{number}.png").write_bytes(png(picture()))
        mask = np.zeros((8, 12, 1), np.uint8)
        mask[:4, :6], mask[4:, :6] = 1, 2
        (tmp_path / "annotations" / "training" / f"{number}.png").write_bytes(png(mask))
    (tmp_path / "objectInfo150.txt").write_text("Idx\tRatio\tName\n1\t0.1\twall, plain\n2\t0.1\tbuilding\n")
    return tmp_path


@pytest.fixture
def coco(tmp_path):
    """Three pictures in COCO's layout: of one thing, of none, and of two with a crowd."""
    (tmp_path / "annotations").mkdir()
    (tmp_path / "val2017").mkdir()
    images = [{"id": 10 + n, "file_name": f"{n}.png", "width": 12, "height": 8} for n in range(3)]
    for image in images:
        (tmp_path / "val2017" / image["file_name"]).write_bytes(png(picture()))
    boxes = [(10, 7, [1, 2, 3, 4], 0), (12, 9, [0, 0, 6, 4], 0), (12, 7, [6, 4, 6, 4], 0), (12, 7, [0, 0, 12, 8], 1)]
    annotations = [
        {"id": n, "image_id": image, "category_id": category, "bbox": box, "iscrowd": crowd}
        for n, (image, category, box, crowd) in enumerate(boxes)
    ]
    categories = [{"id": 7, "name": "cat"}, {"id": 9, "name": "dog"}]
    content = {"images": images, "annotations": annotations, "categories": categories}
    (tmp_path / "annotations" / "instances_val2017.json").write_text(json.dumps(content))
    return tmp_path / "annotations" / "instances_val2017.json"


def test_masks_lie_beside_their_pictures_as_ade20k_has_them(ade):
    source = read("masks", train=str(ade / "training"), val=str(ade / "training"))
    assert source.labels == {"other": 6 * 48, "wall": 6 * 24, "building": 6 * 24}
    batch = source.examples(request()).train.batch(0)
    assert batch["targets"].shape == (4, 8, 12)
    assert batch["targets"][0, 0, :7].tolist() == [1] * 6 + [0]
    assert (batch["targets"][:, 4:, :6] == 2).all()
    assert len(list(read("masks", train=str(ade / "training[:2]")).train)) == 2
    reduced = read("masks", train=str(ade / "training"), reduce_labels=True)
    assert reduced.labels == {"wall": 144, "building": 144}
    assert (reduced.examples(request()).train.batch(0)["targets"][:, :, 6:] == -100).all()
    assert names_of(str(ade)) == ("other", "wall", "building")


def test_masks_of_pascal_voc_are_those_that_are_there_or_that_a_part_lists(tmp_path):
    for folder in ("JPEGImages", "SegmentationClass", "ImageSets/Segmentation"):
        (tmp_path / folder).mkdir(parents=True)
    for number in range(4):
        (tmp_path / "JPEGImages" / f"{number}.jpg").write_bytes(png(picture()))
    for number in range(3):  # most pictures have none
        mask = np.full((8, 12, 1), number, np.uint8)
        (tmp_path / "SegmentationClass" / f"{number}.png").write_bytes(png(mask))
    (tmp_path / "ImageSets" / "Segmentation" / "val.txt").write_text("2\n0\n")
    assert [int(row.target.numbers()[0, 0]) for row in read_masked(str(tmp_path))] == [0, 1, 2]
    part = str(tmp_path / "val")
    assert [int(row.target.numbers()[0, 0]) for row in read_masked(part)] == [2, 0]
    assert places._data(part) == part  # a part that is listed is no path, and the command line takes it
    (tmp_path / "ImageSets" / "Segmentation" / "val.txt").write_text("3\n")
    with pytest.raises(DataError, match=r"3\.jpg has no mask"):
        list(read_masked(part))


def test_masks_follow_the_size_of_the_model_and_what_is_changed(ade):
    source = read("masks", train=str(ade / "training"), augment={"flip": True, "shift": 0.1})
    batch = source.examples(request((3, 16, 24))).train.batch(0)
    assert set(batch["targets"].unique().tolist()) == {0, 1, 2}
    assert batch["targets"].shape == (4, 16, 24)
    plain = read("masks", train=str(ade / "training")).examples(request((3, 16, 24))).train.batch(0)
    assert plain["targets"][0, 0].tolist() == [1] * 12 + [0] * 12


def test_a_table_and_what_is_made_here_hold_masks_too(tmp_path, monkeypatch):
    (tmp_path / "p.png").write_bytes(png(picture()))
    rows = [
        {"file_name": "p.png", "mask": as_address(np.full((8, 12, 1), n % 2, np.uint8)), "other": 1} for n in range(4)
    ]
    (tmp_path / "all.jsonl").write_text("\n".join(map(json.dumps, rows)))
    source = read("masks", train=str(tmp_path / "all.jsonl"))
    assert source.labels == {"LABEL_0": 192, "LABEL_1": 192}
    assert read("masks", train=str(tmp_path / "all.jsonl"), names=["sky", "sea"]).labels == {"sky": 192, "sea": 192}


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (
            lambda f: (f / "3.png").write_bytes(png(np.ones((8, 11, 1), np.uint8))),
            "has 8 x 11 pixels, its picture 8 x 12",
        ),
        (lambda f: (f / "3.png").write_bytes(png(np.full((8, 12, 1), 9, np.uint8))), "number 9, and there are 3 names"),
        (lambda f: (f / "3.png").write_bytes(png(np.ones((8, 12, 3), np.uint8))), "has colours"),
        (lambda f: (f / "3.png").unlink(), "has no mask"),
        (lambda f: (f / "3.png").write_bytes(b"nonsense"), "is no picture file"),
        (
            lambda f: [p.write_bytes(png(np.ones((8, 12, 1), np.uint8))) for p in f.iterdir()],
            "every pixel belongs to wall",
        ),
        (lambda f: [p.write_bytes(png(np.full((8, 12, 1), 255, np.uint8))) for p in f.iterdir()], "belongs to nothing"),
    ],
)
def test_masks_that_do_not_fit_are_refused_by_name(ade, spoil, says):
    spoil(ade / "annotations" / "training")
    with pytest.raises(DataError, match=says):
        read("masks", train=str(ade / "training")).examples(request())


def test_a_label_that_is_held_back_and_never_trained_on_is_refused(ade):
    (ade / "annotations" / "training" / "5.png").write_bytes(png(np.full((8, 12, 1), 77, np.uint8)))
    source = read("masks", train=str(ade / "training[:5]"), val=str(ade / "training[5:]"))
    with pytest.raises(DataError, match=r"5\.png has the label 77, which no training mask has"):
        source.examples(request())


def test_folders_without_masks_are_refused(tmp_path, ade):
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="holds no pictures with masks"):
        read("masks", train=str(tmp_path / "empty"))
    with pytest.raises(DataError, match="no such file or folder"):
        read("masks", train=str(tmp_path / "nowhere"))
    (tmp_path / "t.csv").write_text("file_name,text\na.png,b\n")
    with pytest.raises(DataError, match="hold the mask among file_name, text"):
        read("masks", train=str(tmp_path / "t.csv"))


def test_a_mask_with_a_palette_has_the_places_of_it(tmp_path):
    image = pytest.importorskip("PIL.Image", reason="Pillow, of the extra vision, is not installed")
    numbers = RNG.integers(0, 5, (4, 6), dtype=np.uint8)
    shown = image.fromarray(numbers, mode="P")
    shown.putpalette([200, 0, 0, 0, 200, 0, 0, 0, 200, 9, 9, 9, 5, 5, 5])
    shown.save(tmp_path / "m.png")
    assert torch.equal(read_indices((tmp_path / "m.png").read_bytes()), torch.from_numpy(numbers))


@pytest.mark.parametrize("kind", [bool, np.uint16])
def test_a_mask_of_another_depth_has_its_own_numbers(kind, tmp_path):
    image = pytest.importorskip("PIL.Image", reason="Pillow, of the extra vision, is not installed")
    numbers = RNG.integers(0, 2 if kind is bool else 256, (4, 6)).astype(kind)
    image.fromarray(numbers).save(tmp_path / "m.png")
    assert torch.equal(read_indices((tmp_path / "m.png").read_bytes()), torch.from_numpy(numbers.astype(np.uint8)))
    image.fromarray(np.full((4, 6), 1260, np.uint16)).save(tmp_path / "m.png")
    with pytest.raises(DataError, match="the mask has the number 1260, and the largest of a mask is 255"):
        read_indices((tmp_path / "m.png").read_bytes())


def test_images_of_one_id_and_categories_without_a_name_are_refused(coco):
    content = json.loads(coco.read_text())
    coco.write_text(json.dumps({**content, "images": [{**each, "id": 1} for each in content["images"]]}))
    with pytest.raises(DataError, match="two of its images have one id"):
        read("boxes", train=str(coco))
    coco.write_text(json.dumps({**content, "categories": [{"id": each["id"]} for each in content["categories"]]}))
    with pytest.raises(DataError, match=r"a box has the category .*, and categories names 0 others"):
        read("boxes", train=str(coco))


def test_boxes_are_read_as_coco_has_them(coco):
    source = read("boxes", train=str(coco))
    assert source.labels == {"cat": 2, "dog": 1}
    assert [row.target for row in source.train] == [
        (Thing("cat", (1.0, 2.0, 3.0, 4.0)),),
        (),
        (
            Thing("dog", (0.0, 0.0, 6.0, 4.0)),
            Thing("cat", (6.0, 4.0, 6.0, 4.0)),
            Thing("cat", (0.0, 0.0, 12.0, 8.0), True),
        ),
    ]
    batch = source.examples(request(labels=("cat", "dog"), size=3)).train.batch(0)
    order = batch["classes"].ne(-100).sum(1).argsort()
    assert batch["classes"][order].tolist() == [[-100, -100], [0, -100], [1, 0]]
    assert batch["boxes"][order][1, 0].tolist() == pytest.approx([2.5 / 12, 0.5, 0.25, 0.5])
    assert len(read("boxes", train=str(coco), pictures=str(coco.parent.parent / "val2017")).train) == 3


def test_boxes_move_with_their_pictures_and_what_is_gone_is_nothing(coco):
    source = read("boxes", train=str(coco), augment={"shift": 0.45})
    batches = source.examples(request(labels=("cat", "dog"), size=3)).train
    classes = torch.cat([batches.batch(step)["classes"] for step in range(40)])
    boxes = torch.cat([batches.batch(step)["boxes"] for step in range(40)])
    assert 0 < (classes != -100).sum() < 40 * 3
    assert (boxes[classes == -100] == 0).all()
    ends = torch.cat([boxes[..., :2] - boxes[..., 2:] / 2, boxes[..., :2] + boxes[..., 2:] / 2], -1)[classes != -100]
    assert float(ends.min()) > -1e-6
    assert float(ends.max()) < 1 + 1e-6


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"bbox": [10, 2, 5, 4]}, "lies outside of its picture of 8 rows and 12 columns"),
        ({"bbox": [-3, 2, 5, 4]}, "lies outside"),
        ({"bbox": [40, 40, 5, 4]}, "lies outside"),
        ({"bbox": [1, 2, 0, 4]}, "has no width or no height"),
        ({"bbox": [1, 2, -3, 4]}, "has no width or no height"),
        ({"bbox": [1, 2, 3]}, "is no left, top, width and height"),
        ({"bbox": ["a", 2, 3, 4]}, "is no left, top, width and height"),
        ({"bbox": [1, 2, float("inf"), 4]}, "is no left, top, width and height"),
        ({"bbox": None}, "is no left, top, width and height"),
        ({"category_id": 88}, "has the category 88"),
        ({"image_id": 99}, "an annotation of the picture 99"),
    ],
)
def test_boxes_that_are_none_are_refused_by_name(coco, change, says):
    content = json.loads(coco.read_text())
    content["annotations"][0] |= change
    coco.write_text(json.dumps(content))
    with pytest.raises(DataError, match=says):
        read("boxes", train=str(coco)).examples(request())


def test_files_without_boxes_or_pictures_are_refused(coco):
    content = json.loads(coco.read_text())
    for key in ("images", "annotations"):
        coco.write_text(json.dumps({**content, key: []}))
        with pytest.raises(DataError, match=f"has no {key}"):
            read("boxes", train=str(coco))
    for held, says in (("[1]", "holds no annotations"), ("{", "is no JSON")):
        coco.write_text(held)
        with pytest.raises(DataError, match=says):
            read("boxes", train=str(coco))
    crowds = [{**each, "iscrowd": 1} for each in content["annotations"]]
    coco.write_text(json.dumps({**content, "annotations": crowds}))
    with pytest.raises(DataError, match="no picture has a box"):
        read("boxes", train=str(coco))
    coco.write_text(json.dumps(content))
    (coco.parent.parent / "val2017" / "0.png").unlink()
    with pytest.raises(DataError, match=r"its picture 0\.png is not in"):
        read("boxes", train=str(coco))
    with pytest.raises(DataError, match="is not in elsewhere"):
        read("boxes", train=str(coco), pictures="elsewhere")


def test_an_unknown_label_and_a_bad_table_are_refused(tmp_path, coco):
    rows = [{"file_name": "val2017/0.png", "boxes": [{"label": "cow", "box": [1, 1, 2, 2]}]}]
    table = coco.parent.parent / "t.jsonl"
    table.write_text(json.dumps(rows[0]))
    with pytest.raises(DataError, match="the label 'cow' occurs in no training row"):
        read("boxes", train=str(coco), val=str(table))
    assert read("boxes", train=str(table)).labels == {"cow": 1}
    for held, says in (
        ("nonsense", "are no JSON"),
        ('{"a": 1}', "are no list"),
        ([{"box": [1, 1, 2, 2]}], "are no list"),
    ):
        table.write_text(json.dumps({"file_name": "val2017/0.png", "boxes": held}))
        with pytest.raises(DataError, match=says):
            read("boxes", train=str(table))
    table.write_text(json.dumps({"file_name": "val2017/0.png", "text": "a"}))
    with pytest.raises(DataError, match="hold the boxes among file_name, text"):
        read("boxes", train=str(table))


def test_a_box_that_is_rounded_a_little_too_far_is_cut():
    box = inside("here", Thing("a", (-0.5, 0.0, 6.5, 8.6)), 8, 12)
    assert box == pytest.approx((0.25, 0.5, 0.5, 1.0))


def test_pictures_that_are_cropped_have_no_boxes(coco):
    cropping = preparation({"image_processor_type": "CLIPImageProcessor", "size": {"shortest_edge": 8},
                            "crop_size": {"height": 8, "width": 12}})  # fmt: skip
    with pytest.raises(UsageError, match="are cropped, and boxes would not be whole"):
        read("boxes", train=str(coco)).examples(BatchRequest("pictures", 1, 2, 7, pictures=(cropping, (3, 8, 12))))
