"""Pictures that are made here, ranges and few of a label, and augmentation that moves what a picture shows with it."""

import json

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from orrery.data.corpora import read_placed_rows
from orrery.data.generated import _drawing, find
from orrery.data.generated.scenes import Scenes, caption
from orrery.data.generated.things import Things
from orrery.data.pictures.addresses import as_address, content_of
from orrery.data.pictures.augmenting import Augmentation, moved, moved_boxes, moved_labels
from orrery.data.pictures.files import read_pixels
from orrery.data.pictures.preparing import for_size
from orrery.data.rows.pictures import read_pictures
from orrery.data.sources import SOURCES, BatchRequest
from orrery.errors import DataError, UsageError


@pytest.fixture(scope="module", autouse=True)
def fewer():
    """Make a few pictures, not thousands."""
    patch = pytest.MonkeyPatch()
    patch.setattr("orrery.data.generated.scenes.COUNTS", {"train": 30, "val": 6})
    patch.setattr("orrery.data.generated.things.COUNTS", {"train": 42, "val": 14})
    from orrery.data.generated import _set

    _set._records.cache_clear()
    yield
    patch.undo()
    _set._records.cache_clear()


def read(kind="pictures", **settings):
    source = SOURCES.find(kind)
    return source.read(source.Settings.model_validate({"kind": kind, **settings}))


def request(size=4, shape=(3, 48, 48)):
    return BatchRequest("pictures", 1, size, 7, pictures=(for_size(*shape[1:], shape[0]), shape))


def test_a_scene_says_the_same_in_each_of_its_columns():
    for _, row in read_placed_rows("scenes"):
        boxes = json.loads(row["boxes"])
        mask = read_pixels(content_of(row["mask"]))[0].numpy()
        names = list(_drawing.THINGS)
        assert [each["label"] for each in boxes] == [
            part.split()[-1] for part in row["caption"].replace(" and ", ", ").split(", ")
        ]
        for label, (left, top, width, height) in ((each["label"], each["box"]) for each in boxes):
            own = (mask == 1 + names.index(label))[top : top + height, left : left + width]
            edges = (own[0], own[-1], own[:, 0], own[:, -1])
            assert all(edge.any() for edge in edges)  # the box is tight
        assert set(np.unique(mask)) == {0, *(1 + names.index(each["label"]) for each in boxes)}


def test_sets_are_the_same_each_time_and_their_parts_differ():
    for made in (Scenes(), Things()):
        first, again, other = (list(made.records(part)) for part in ("train", "train", "val"))
        assert first == again
        assert not {row["picture"] for row in first} & {row["picture"] for row in other}
    assert find("things/val").name == "things/val"
    assert {row["label"] for row in Things().records("train")} == set(_drawing.THINGS)


def test_a_caption_names_things_in_their_order():
    things = [_drawing.Drawn(name, "red", 0, 0, np.ones((1, 1))) for name in ("one", "circle", "two")]
    assert caption(things) == "a red one, a red circle and a red two"
    assert caption(things[:2]) == "a red one and a red circle"


def test_an_address_holds_its_picture():
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    found = read_pixels(content_of(as_address(pixels)))
    assert np.array_equal(found.numpy().transpose(1, 2, 0), pixels)
    with pytest.raises(DataError, match="is no picture in base64"):
        content_of("data:text/plain,hello")
    with pytest.raises(DataError, match="row 3 is no base64"):
        content_of("data:image/png;base64,!!!!", "row 3")


def test_a_range_is_some_rows_by_their_numbers():
    whole = [row.key for row in read_pictures("things")]
    assert [row.key for row in read_pictures("things[:10]")] == whole[:10]
    assert [row.key for row in read_pictures("things[10:]")] == whole[10:]
    assert [row.key for row in read_pictures("things/train[3:5]")] == whole[3:5]


def test_a_file_whose_name_looks_like_a_range_goes_before(tmp_path):
    folder = tmp_path / "a[1:2]"
    (folder / "x").mkdir(parents=True)
    (folder / "x" / "p.png").write_bytes(content_of(as_address(np.zeros((2, 2, 1), np.uint8))))
    assert [row.target for row in read_pictures(str(folder))] == ["x"]


def test_few_of_each_label_are_kept_by_another_choice_others():
    one, again, other = (
        read(train="things", few={"each": 2, "choice": choice}, val="things/val") for choice in (0, 0, 1)
    )
    assert set(one.labels.values()) == {2}
    assert len(one.labels) == 14
    assert [row.key for row in one.train] == [row.key for row in again.train]
    assert [row.key for row in one.train] != [row.key for row in other.train]
    assert len(one.held_back) == 14
    with pytest.raises(DataError, match="the label 'zero' has 3 pictures to train on, and 9 of each"):
        read(train="things", few={"each": 9})


def test_pictures_without_labels_are_read_wherever_they_lie(tmp_path):
    source = read("unlabelled_pictures", train="things", split={"every": 6})
    batch = source.examples(request()).train.batch(0)
    assert list(batch) == ["images"]
    assert batch["images"].shape == (4, 3, 48, 48)
    assert len(source.held_back) == 7
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    (deep / "p.png").write_bytes(content_of(as_address(np.full((2, 2, 1), 9, np.uint8))))
    (found,) = read("unlabelled_pictures", train=str(tmp_path)).train
    assert found.pixels().unique().tolist() == [9]
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(DataError, match="holds no picture"):
        read("unlabelled_pictures", train=str(empty))
    with pytest.raises(UsageError, match="reads tokens, the data are pictures"):
        source.examples(BatchRequest("pictures", 1, 4, 7))


class Fixed:
    """Draws what it was told to: a share of the way between the bounds."""

    def __init__(self, share):
        self.share = share

    def uniform(self, low, high, count):
        return np.full(count, low + (high - low) * self.share)

    def random(self, count):
        return np.full(count, 0.0)


def drawn_square(rows=40, columns=60, box=(12, 8, 20, 10)):
    """Return a picture with one bright rectangle, its labels, and its box as shares of the sides."""
    left, top, width, height = box
    labels = torch.zeros(1, rows, columns, dtype=torch.long)
    labels[:, top : top + height, left : left + width] = 7
    shares = torch.tensor([[[(left + width / 2) / columns, (top + height / 2) / rows, width / columns, height / rows]]])
    return (labels * 30).to(torch.uint8)[:, None], labels, shares


@pytest.mark.parametrize(
    ("settings", "share"),
    [
        ({"flip": True}, 0.5),
        ({"shift": 0.1}, 1.0),
        ({"scale": 0.2}, 1.0),
        ({"rotate": 90}, 1.0),
        ({"rotate": 90, "flip": True, "shift": 0.05}, 1.0),
        ({"crop": 0.4}, 1.0),
        ({"crop": 0.3, "flip": True}, 0.2),
    ],
)
def test_boxes_and_labels_of_pixels_move_with_their_picture(settings, share):
    pixels, labels, boxes = drawn_square(40, 40) if "rotate" in settings else drawn_square()
    maps = Augmentation(**settings).maps(1, *pixels.shape[2:], Fixed(share))
    shown = moved(pixels, maps)[0, 0] > 105
    assert (shown == (moved_labels(labels, maps)[0] == 7)).float().mean() > 0.999
    rows, columns = shown.any(1).nonzero()[:, 0], shown.any(0).nonzero()[:, 0]
    (found,), seen = moved_boxes(boxes, maps)
    x, y, width, height = (found[0] * torch.tensor([shown.shape[1], shown.shape[0]] * 2)).tolist()
    for told, pixel in (
        (x - width / 2, columns[0]),
        (x + width / 2, columns[-1] + 1),
        (y - height / 2, rows[0]),
        (y + height / 2, rows[-1] + 1),
    ):
        assert abs(told - float(pixel)) <= 1
    assert 0.3 < float(seen) <= 1.0001


def test_the_label_of_a_place_between_pixels_is_the_one_with_the_largest_share():
    draws = np.random.default_rng(5)
    labels = torch.from_numpy(draws.integers(-1, 4, (3, 9, 11))).to(torch.int16)
    maps = Augmentation(rotate=40, scale=0.3, shear=20, shift=0.2, flip=True).maps(3, 9, 11, draws).double()
    places = F.affine_grid(maps, [3, 1, 9, 11], align_corners=False)
    shares = torch.cat(
        [
            F.grid_sample((labels == n)[:, None].double(), places, padding_mode="border", align_corners=False)
            for n in range(-1, 4)
        ],
        dim=1,
    )
    found = moved_labels(labels, maps)
    assert found.dtype == labels.dtype
    assert (found.long() + 1 == shares.argmax(1)).all()
    assert (moved_labels(labels, torch.eye(2, 3).expand(3, 2, 3)) == labels).all()


def test_a_turned_box_holds_its_corners_and_what_is_cut_off_is_told():
    _, _, boxes = drawn_square(40, 40)
    maps = Augmentation(rotate=30).maps(1, 40, 40, Fixed(1.0))
    found, seen = moved_boxes(boxes, maps)
    assert (found[..., 2:] > boxes[..., 2:]).all()
    assert float(seen) == pytest.approx(1, abs=1e-5)
    away = torch.tensor([[[1.0, 0, 1.0], [0, 1.0, 0]]])  # half of the picture to the left
    found, seen = moved_boxes(torch.tensor([[[0.5, 0.5, 0.4, 0.4], [0.1, 0.5, 0.2, 0.2]]]), away)
    assert seen.tolist()[0] == pytest.approx([0.5, 0.0])
    assert found[0, 0].tolist() == pytest.approx([0.1, 0.5, 0.2, 0.4])


def test_a_crop_keeps_the_rest_of_the_picture_larger():
    pixels = torch.arange(100, dtype=torch.uint8).reshape(1, 1, 10, 10)
    maps = Augmentation(crop=0.75).maps(1, 10, 10, Fixed(1.0))  # a quarter is kept, at the lower right
    assert maps[0].tolist() == [pytest.approx([0.5, 0, 0.5]), pytest.approx([0, 0.5, 0.5])]
    assert moved(pixels, maps).min() >= 40
