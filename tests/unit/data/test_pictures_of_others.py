"""Pictures with labels, boxes, masks and captions in the layouts that sets are published in."""

import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from orrery.cli.places import _data as checked_source
from orrery.data.pictures.png import write_png
from orrery.data.rows.boxes import read_boxed
from orrery.data.rows.captions import read_captioned
from orrery.data.rows.masks import read_masked
from orrery.data.rows.pictures import read_pictures
from orrery.errors import DataError

PNG = write_png(torch.zeros(1, 30, 40, dtype=torch.uint8))
MASK = np.arange(1200, dtype=np.uint8).reshape(30, 40) % 3


def put(place: Path, content: Any = PNG) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    content = content if isinstance(content, bytes | str) else json.dumps(content)
    place.write_bytes(content.encode() if isinstance(content, str) else content)


def targets(read: Callable[..., Any], source: Path | str) -> list[Any]:
    return [row.target for row in read(checked_source(str(source)))]


def refused(read: Callable[..., Any], source: Path, what: str, hint: str = "") -> None:
    with pytest.raises(DataError, match=what) as caught:
        list(read(str(source)))
    assert hint in caught.value.hint


def test_a_table_finds_its_files_in_the_folder_beside_it(tmp_path: Path) -> None:
    for place in ("train/a.png", "train/b.png", "test/c.png"):
        put(tmp_path / place)
    put(tmp_path / "train.csv", "id,breed\na,cat\nb,dog\n")
    found = list(read_pictures(str(tmp_path / "train.csv"), columns=("id", "breed")))
    assert [(row.target, row.given) for row in found] == [
        ("cat", tmp_path / "train/a.png"), ("dog", tmp_path / "train/b.png"),
    ]  # fmt: skip
    put(tmp_path / "bare.csv", "train/a.png,cat\ntrain/b.png,dog\n")
    found = list(read_pictures(str(tmp_path / "bare.csv"), columns=("1", "2")))
    assert [row.target for row in found] == ["cat", "dog"]
    refused(read_pictures, tmp_path / "train.csv", "no column is known to hold the file", "--data.picture")
    refused(read_pictures, tmp_path / "train", "no folder for each label", "train.csv")


def test_labels_of_folders_are_no_parts_and_no_lists(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for place in ("coco/val2017/a.png", "coco/train2017/b.png", "set/train/a.png", "nested/x/cat/a.png"):
        put(tmp_path / place)
    put(tmp_path / "coco/annotations/instances_val2017.json", "{}")
    refused(read_pictures, tmp_path / "coco", r"parts of a data set \(train2017, val2017\)", "train2017")
    put(tmp_path / "set/metadata.csv", "file_name,label\ntrain/a.png,cat\n")
    assert targets(read_pictures, tmp_path / "set") == ["cat"]
    put(tmp_path / "set/metadata.csv", "file_name,text\ntrain/a.png,cat\n")
    refused(read_pictures, tmp_path / "set", "no column is known to hold the label")
    put(tmp_path / "many.jsonl", {"image": "set/train/a.png", "labels": ["cat", "dog"]})
    refused(read_pictures, tmp_path / "many.jsonl", "a picture has one label")
    put(tmp_path / "nested/x/dog/b.png")
    assert targets(read_pictures, tmp_path / "nested") == ["x", "x"]
    assert "its folders cat, dog" in caplog.text
    put(tmp_path / "digits.csv", "label,pixel0,pixel1\n1,0,255\n")
    refused(read_pictures, tmp_path / "digits.csv", "the pixels are numbers", "IDX")
    put(tmp_path / "scans/a/x.tif", "x")
    refused(read_pictures, tmp_path / "scans", r"\.tif files are not read", "mogrify")
    put(tmp_path / "far.csv", "image,label\nhttps://e.com/a.png,cat\n")
    refused(read_pictures, tmp_path / "far.csv", "nothing is fetched")


def archived(place: Path, *files: tuple[str, bytes]) -> None:
    place.parent.mkdir(exist_ok=True)
    with tarfile.open(place, "w") as archive:
        for name, content in files:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def test_samples_of_webdataset_are_rows(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    other = write_png(torch.ones(1, 30, 40, dtype=torch.uint8))
    first = (("s/1.png", PNG), ("s/1.cls", b"0"), ("s/1.txt", b"a cat\n"), ("s/1.npy", b"x"))
    archived(tmp_path / "w/train-0.tar", *first, ("s/2.PNG", other), ("s/2.json", b'{"label": "dog", "caption": "b"}'))
    archived(tmp_path / "w/train-1.tar", ("s/3.jpg", PNG), ("s/3.cls", b"1"), ("s/3.txt", b"two"))
    assert targets(read_pictures, tmp_path / "w/train-0.tar") == ["0", "dog"]
    assert targets(read_pictures, tmp_path / "w") == ["0", "dog", "1"]
    found = list(read_pictures(str(tmp_path / "w")))
    assert torch.equal(found[1].pixels(), torch.ones(1, 30, 40, dtype=torch.uint8))
    assert targets(read_captioned, tmp_path / "w/train-1.tar") == [("two",)]
    assert "the .npy of its samples is not read" in caplog.text
    archived(tmp_path / "w/val-0.tar", ("1.png", PNG), ("1.cls", b"1"))
    refused(read_pictures, tmp_path / "w", "holds the parts of a data set")
    archived(tmp_path / "backup.tar", ("docs/a.txt", b"text"))
    refused(read_pictures, tmp_path / "backup.tar", "first files, docs/a, are no sample", "tar xf")
    with (tmp_path / "w/train-0.tar").open("r+b") as file:
        file.truncate(1500)
    refused(read_pictures, tmp_path / "w/train-0.tar", "no archive, or a damaged one")


def coco(image: dict[str, Any], **more: Any) -> dict[str, Any]:
    box = {"id": 1, "image_id": 7, "category_id": 1, "bbox": [1, 2, 3, 4]}
    return {"images": [{"id": 7, **image}], "annotations": [box], "categories": [{"id": 1, "name": "cat"}], **more}


def test_boxes_of_lvis_and_of_a_row_each(tmp_path: Path) -> None:
    put(tmp_path / "train2017/7.png")
    put(
        tmp_path / "annotations/lvis.json",
        coco({"coco_url": "http://e.com/train2017/7.png", "height": 30, "width": 40}),
    )
    (found,) = read_boxed(str(tmp_path / "annotations/lvis.json"))
    assert (found.given, found.target[0].box) == (tmp_path / "train2017/7.png", (1, 2, 3, 4))
    put(tmp_path / "train2017/_annotations.csv", "filename,width,height,class,xmin,ymin,xmax,ymax\n"
        "7.png,40,30,cat,1,2,10,12\n7.png,40,30,dog,3,3,10,12\n")  # fmt: skip
    (things,) = targets(read_boxed, tmp_path / "train2017/_annotations.csv")
    assert [(each.label, each.box) for each in things] == [("cat", (1, 2, 9, 10)), ("dog", (3, 3, 7, 9))]
    put(tmp_path / "a.json", coco({"file_name": "train2017/7.png", "height": 40, "width": 30}))
    refused(read_boxed, tmp_path / "a.json", "its file has 30 rows and 40 columns, its annotations are of 40 and 30")


def test_boxes_of_open_images_are_shares_with_names_beside(tmp_path: Path) -> None:
    put(tmp_path / "train/i0.png")
    put(tmp_path / "train-annotations-bbox.csv", "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsGroupOf\n"
        "i0,xclick,/m/01,1,0.25,0.5,0.1,0.9,0\ni0,xclick,/m/02,1,0,1,0,1,1\n")  # fmt: skip
    (things,) = targets(read_boxed, tmp_path / "train-annotations-bbox.csv")
    assert [each.label for each in things] == ["/m/01", "/m/02"]
    put(tmp_path / "class-descriptions-boxable.csv", "/m/01,Cat\n/m/02,Dog\n")
    (things,) = targets(read_boxed, tmp_path / "train-annotations-bbox.csv")
    assert [(each.label, each.crowd) for each in things] == [("Cat", False), ("Dog", True)]
    assert things[0].box == pytest.approx((10, 3, 10, 24))


def test_categories_of_one_name_are_told_apart_where_both_have_boxes(tmp_path: Path) -> None:
    put(tmp_path / "7.png")
    named = [{"id": 0, "name": "cat"}, {"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}]
    content = coco({"file_name": "7.png"}, categories=named)
    put(tmp_path / "a.json", content)  # Roboflow names the whole set as its first category, which has no box
    assert [[each.label for each in things] for things in targets(read_boxed, tmp_path / "a.json")] == [["cat"]]
    content["annotations"].append({**content["annotations"][0], "category_id": 0})
    put(tmp_path / "a.json", content)
    assert [each.label for each in targets(read_boxed, tmp_path / "a.json")[0]] == ["cat (1)", "cat (0)"]
    put(tmp_path / "a.json", {**content, "categories": [*named, {"id": 2, "name": "cow"}]})
    refused(read_boxed, tmp_path / "a.json", "two of its categories have one id")


def test_yolo_takes_cvats_names_and_no_two_parts_as_one(tmp_path: Path) -> None:
    for part in ("train", "val"):
        put(tmp_path / f"images/{part}/a.png")
        put(tmp_path / f"labels/{part}/a.txt", "0 0.5 0.5 0.2 0.2\n")
    put(tmp_path / "obj.names", "cat\n")
    assert targets(read_boxed, tmp_path / "train")[0][0].label == "cat"
    refused(read_boxed, tmp_path, "holds the parts train, val", "train")


@pytest.mark.parametrize(
    ("file", "content", "says"),
    [
        ("a.json", [{"id": 1, "data": {"image": "a.png"}, "annotations": []}], "as Label Studio has them"),
        ("a.json", {"a.png12": {"filename": "a.png", "regions": []}}, "as the VGG Image Annotator has them"),
        ("a.json", {"task_type": "Open-Ended", "questions": []}, "questions about pictures"),
        ("a.json", {"images": [{"filename": "a.png", "sentences": []}]}, "as Karpathy's"),
        ("ds/ann/a.png.json", {"objects": []}, "as Supervisely has them"),
        ("label_2/0.txt", "Car 0.00 0", "as KITTI has them"),
        ("annotations/instances_val2017.json", {}, "annotations of COCO's"),
    ],
)
def test_boxes_of_other_tools_are_named(file: str, content: Any, says: str, tmp_path: Path) -> None:
    put(tmp_path / file, content)
    refused(read_boxed, tmp_path / file if file == "a.json" else tmp_path, says)


@pytest.mark.parametrize(
    ("picture", "mask", "part"),
    [
        ("img_dir/train/a.png", "ann_dir/train/a.png", "train"),
        ("images/train/a.png", "masks/train/a.png", "train"),
        ("leftImg8bit/val/x/x_1_leftImg8bit.png", "gtFine/val/x/x_1_gtFine_labelTrainIds.png", "val"),
        ("images/a.png", "labels/a.png", ""),
    ],
)
def test_masks_lie_in_the_folders_of_mmsegmentation_and_cityscapes(
    picture: str, mask: str, part: str, tmp_path: Path
) -> None:
    put(tmp_path / picture)
    put(tmp_path / mask, write_png(torch.from_numpy(MASK)[None]))
    (found,) = targets(read_masked, tmp_path / part)
    assert np.array_equal(found.numbers().numpy(), MASK)
    (tmp_path / mask).unlink()
    refused(
        read_masked, tmp_path / part, "has no mask", "cityscapesscripts" if "leftImg8bit" in picture else "a mask has"
    )


def test_masks_that_a_parquet_file_holds_and_parts_that_are_two(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    import pyarrow
    import pyarrow.parquet

    cells = [{"bytes": PNG, "path": None}], [{"bytes": write_png(torch.from_numpy(MASK)[None]), "path": None}]
    table = pyarrow.table({"pixel_values": cells[0], "label": cells[1]})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    (found,) = targets(read_masked, tmp_path / "a.parquet")
    assert np.array_equal(found.numbers().numpy(), MASK)
    for part in ("training", "validation"):
        put(tmp_path / f"ade/images/{part}/a.png")
        put(tmp_path / f"ade/annotations/{part}/a.png")
    refused(read_masked, tmp_path / "ade", "holds the parts training, validation", "training")


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("Flickr8k.token.txt", "a.png#0\tone , dog\na.png#1\ttwo\nb.png#0\tthree\n"),
        ("captions.txt", 'image,caption\na.png,"one , dog"\na.png,two\nb.png,three\n'),
        ("results.csv", "image_name| comment_number| comment\na.png| 0| one , dog\na.png| 1| two\nb.png| 0| three\n"),
        ("blip.json", [{"image": "a.png", "caption": ["one , dog", "two"]}, {"image": "b.png", "caption": "three"}]),
    ],
)
def test_captions_of_flickr_are_read_with_the_pictures_beside_them(file: str, content: Any, tmp_path: Path) -> None:
    put(tmp_path / "Images/a.png")
    put(tmp_path / "Images/b.png")
    put(tmp_path / file, content)
    assert targets(read_captioned, tmp_path / file) == [("one , dog", "two"), ("three",)]
