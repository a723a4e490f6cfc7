"""Boxes in the layouts of tools: Pascal VOC, YOLO, LabelMe, CVAT, Roboflow and the library `datasets`."""

import json

import pytest
import torch

from orrery.data.pictures.png import write_png
from orrery.data.rows.boxes import read_boxed
from orrery.errors import DataError

CAT, DOG = ("cat", (2.0, 1.0, 4.0, 3.0), False), ("dog", (6.0, 4.0, 6.0, 4.0), False)


def pictures(folder, *names):
    folder.mkdir(parents=True, exist_ok=True)
    for number, name in enumerate(names):
        (folder / name).write_bytes(write_png(torch.full((3, 8, 12), number + 1, dtype=torch.uint8)))


def written(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")


def found(source, **how):
    rows = read_boxed(str(source), **how)
    return [
        [(each.label, tuple(round(side, 6) for side in each.box), each.crowd) for each in row.target] for row in rows
    ]


def voc(root, pictures_in="JPEGImages"):
    pictures(root / pictures_in, "a.png", "b.png", "c.png")
    things = "".join(
        f"<object><name>{name}</name><difficult>{hard}</difficult><bndbox><xmin>{x}</xmin><ymin>{y}</ymin>"
        f"<xmax>{right}</xmax><ymax>{below}</ymax></bndbox></object>"
        for name, hard, x, y, right, below in (("cat", 0, 3, 2, 6, 4), ("dog", 0, 7, 5, 12, 8), ("cow", 1, 1, 1, 2, 2))
    )
    for name, inner in (("a", things), ("b", ""), ("c", things)):
        size = "<size><width>12</width><height>8</height><depth>3</depth></size>"
        text = f"<annotation><filename>{name}.png</filename>{size}{inner}</annotation>"
        written(root / ("Annotations" if pictures_in == "JPEGImages" else pictures_in) / f"{name}.xml", text)


def test_pascal_voc_and_its_parts(tmp_path):
    voc(tmp_path / "VOC")
    right = [CAT, DOG, ("cow", (0.0, 0.0, 2.0, 2.0), True)]
    assert found(tmp_path / "VOC") == [right, [], right]
    written(tmp_path / "VOC/ImageSets/Main/train.txt", "c\n")
    written(tmp_path / "VOC/ImageSets/Main/val.txt", "b\n")
    written(tmp_path / "VOC/ImageSets/Main/cat_train.txt", "c  1\n")
    assert (found(tmp_path / "VOC/train"), found(tmp_path / "VOC/val")) == ([right], [[]])
    with pytest.raises(DataError, match="holds the parts of a data set: train, val"):
        found(tmp_path / "VOC")
    voc(tmp_path / "flat", "pictures")
    assert found(tmp_path / "flat/pictures") == [right, [], right]


YOLO = "0 0.333333333 0.3125 0.333333333 0.375\n1 0.75 0.75 0.5 0.5\n"
OUTLINES = "0 0.166666667 0.125 0.5 0.125 0.5 0.5 0.3 0.5 0.166666667 0.3\n1 0.5 0.5 1 0.5 1 1 0.5 1\n"


@pytest.mark.parametrize("lines", [YOLO, OUTLINES])
@pytest.mark.parametrize(("images", "labels"), [("images/train", "labels/train"), ("train/images", "train/labels")])
def test_yolo_with_its_labels_beside(tmp_path, lines, images, labels):
    pictures(tmp_path / images, "a.png", "b.png")
    written(tmp_path / labels / "a.txt", lines)
    written(tmp_path / "data.yaml", f"path: .\ntrain: {images}\nnames:\n  0: cat\n  1: dog\n")
    for source in (tmp_path / images, tmp_path / "train"):
        assert found(source) == [[CAT, DOG], []]
    written(tmp_path / "data.yaml", "nc: 2\nnames: [cat, dog]\n")
    assert found(tmp_path / "train") == [[CAT, DOG], []]
    with pytest.raises(DataError, match="says where the parts lie"):
        found(tmp_path / "data.yaml")
    (tmp_path / "data.yaml").unlink()
    with pytest.raises(DataError, match="names the classes"):
        found(tmp_path / "train")
    written(tmp_path / "classes.txt", "cat\n")
    with pytest.raises(DataError, match=r"a\.txt:2: the class 1, and 1 have names"):
        found(tmp_path / "train")
    assert found(tmp_path / "train", skip_bad=1) == [[]]


def test_labelme_cvat_roboflow_and_a_table(tmp_path):
    pictures(tmp_path / "me", "a.png")
    shapes = [
        {"label": "cat", "shape_type": "rectangle", "points": [[6, 4], [2, 1]]},
        {"label": "dog", "shape_type": "polygon", "points": [[6, 8], [12, 8], [9, 4]]},
        {"label": "tail", "shape_type": "line", "points": [[6, 8], [12, 8]]},
    ]
    written(tmp_path / "me/a.json", {"version": "5.0.1", "shapes": shapes, "imagePath": "a.png", "imageData": None})
    assert found(tmp_path / "me") == [[CAT, DOG]]
    boxes = '<box label="cat" xtl="2" ytl="1" xbr="6" ybr="4"/><box label="dog" xtl="6" ytl="4" xbr="12" ybr="8"/>'
    pictures(tmp_path / "cvat/images", "a.png")
    image = f'<image id="0" name="a.png" width="12" height="8">{boxes}</image>'
    written(tmp_path / "cvat/annotations.xml", f"<annotations><version>1.1</version>{image}</annotations>")
    assert found(tmp_path / "cvat/annotations.xml") == [[CAT, DOG]]
    sides = [[list(box) for _, box, _ in (CAT, DOG)], ["cat", "dog"]]
    coco = [{"id": n, "image_id": 0, "category_id": n, "bbox": box} for n, box in enumerate(sides[0])]
    names = [{"id": n, "name": name} for n, name in enumerate(sides[1])]
    images = [{"id": 0, "file_name": "a.png"}]
    written(tmp_path / "me/_annotations.coco.json", {"images": images, "annotations": coco, "categories": names})
    (tmp_path / "me/a.json").unlink()
    assert found(tmp_path / "me") == [[CAT, DOG]]
    for objects in (
        {"bbox": sides[0], "categories": sides[1]},
        {"id": [1, 2], "area": [12, 24], "bbox": sides[0], "category": sides[1]},
        [{"bbox": box, "category": name} for box, name in zip(*sides, strict=True)],
    ):
        written(tmp_path / "me/metadata.jsonl", {"file_name": "a.png", "objects": objects})
        assert found(tmp_path / "me") == [[CAT, DOG]]
    written(tmp_path / "me/metadata.jsonl", {"file_name": "a.png", "objects": {"bbox": sides[0], "category": ["cat"]}})
    with pytest.raises(DataError, match=r"metadata\.jsonl:1: its boxes are no list"):
        found(tmp_path / "me")


def test_yolos_lines_are_boxes_or_outlines_alone_and_names_have_no_mark_of_their_file(tmp_path):
    pictures(tmp_path / "images", "a.png")
    written(tmp_path / "labels/a.txt", f"\ufeff{YOLO}")
    written(tmp_path / "classes.txt", "\ufeffcat\ndog\n")
    assert found(tmp_path) == [[CAT, DOG]]
    # A detector writes how sure it was behind the box; read as an outline that was another box.
    for line in ("0 0.5 0.5 0.2 0.2 0.93", "0 0.1 0.1 0.5 0.5 0.2 0.9 0.3"):
        written(tmp_path / "labels/a.txt", line)
        with pytest.raises(DataError, match=r"a\.txt:1: \d numbers are no box and no outline"):
            found(tmp_path)
    for file in ("labels/a.txt", "classes.txt"):
        (tmp_path / file).write_bytes("0 .5 .5 .2 .2 # \xe4".encode("latin-1"))
        with pytest.raises(DataError, match="is not UTF-8"):
            found(tmp_path)


def test_cvats_polygons_and_turned_boxes_are_things_and_other_shapes_are_named(tmp_path):
    pictures(tmp_path, "a.png")
    shapes = (
        '<box label="cat" xtl="2.5" ytl="0.5" xbr="5.5" ybr="4.5" rotation="90"/><tag label="day"/>'
        '<polygon label="dog" points="6.0,8.0;12.0,8.0;9.0,4.0"/><polyline label="tail" points="0,0;1,1"/>'
    )
    text = '<annotations><image name="a.png">{}</image></annotations>'
    written(tmp_path / "x.xml", text.format(shapes))
    assert found(tmp_path / "x.xml") == [[CAT, DOG]]
    for shape, told in (("mask", "a shape called mask"), ("box", "a box from"), ("polygon", "no outline")):
        written(tmp_path / "x.xml", text.format(f'<{shape} label="cat"/>'))
        with pytest.raises(DataError, match=told):
            found(tmp_path / "x.xml")


@pytest.mark.parametrize("shapes", [["x"], None, [{"label": 3, "shape_type": "rectangle", "points": [[1, 1], [5, 5]]}],
    [{"label": "x", "shape_type": "circle", "points": [["a", 1], [5, 5]]}]])  # fmt: skip
def test_odd_shapes_of_labelme_are_refused_by_their_file(tmp_path, shapes):
    pictures(tmp_path, "a.png")
    written(tmp_path / "a.json", {"shapes": [], "imagePath": "a.png"})
    written(tmp_path / "b.json", {"shapes": shapes, "imagePath": "a.png"})
    with pytest.raises(DataError, match=r"b\.json: (no|a box)"):
        found(tmp_path)
