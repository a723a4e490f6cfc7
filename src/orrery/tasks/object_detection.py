"""Things in a picture with the boxes around them: ``[{"score": ..., "label": ..., "box": {"xmin": ...}}]``."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field

from orrery.schema.numbers import Share
from orrery.scores.detection import THRESHOLDS, Found, Right, average_precision, overlaps
from orrery.tasks._task import register
from orrery.tasks.finetuning._painting import beside, colours, with_boxes
from orrery.tasks.finetuning.findings import Findings, Mistake
from orrery.tasks.pipelines._boxes import ask_boxes, finds_things, names_of_things
from orrery.tasks.pipelines._make import pipeline
from orrery.tasks.pipelines._of_pictures import LearnedOfPictures
from orrery.tasks.pipelines._picture_rows import PictureRow, picture_row, sized_picture
from orrery.tasks.pipelines._pipeline import PipelineSettings

if TYPE_CHECKING:
    from orrery.data.rows.pictures import LabelledPicture
    from orrery.language_model.model import LanguageModel

BATCH = 32
"""Pictures answered at once."""
LEAST = 0.01
"""How sure a box must be to count for average precision, which asks for all."""
DRAWN = 0.5
"""How sure a box must be to be drawn in a report."""
SHOWN = 25
"""Pictures that a report shows."""


class ObjectDetectionSettings(PipelineSettings):
    """``threshold`` is how sure the model must be of a thing."""

    threshold: Share = Field(0.5, description="How sure the model must be of a thing to name it.")


@register
class ObjectDetection(LearnedOfPictures):
    """The things in a picture, each with its box.

    It learns a head over every patch, or YOLOS' own over its detection tokens. A picture is a path, a ``data:`` address
    in base64, an array or a picture of Pillow's. Each query names its likeliest label but for that of nothing; those
    below ``threshold`` are left out. As in transformers a box has whole pixels of the picture's own size; here the
    surest thing is the first.
    """

    kind = "object_detection"
    route = "/v1/tasks/object-detection"
    said = "things"
    source = "boxes"
    objective = "detection"
    head = "boxes"
    Settings = ObjectDetectionSettings

    @classmethod
    def findings(cls, lm: "LanguageModel", source: Any, length: int, done: Any = None) -> Findings:
        """Return COCO's average precisions, that at 0.5 first, the labels one by one, and pictures with their boxes."""
        rows = source.held_back
        said = detected(lm, rows, done)
        right = [[Right(thing.label, thing.box, thing.crowd) for thing in row.target] for row in rows]
        return Findings(
            scores=(
                average_precision(said, right, (0.5,), "AP50"),
                average_precision(said, right, (0.75,), "AP75"),
                average_precision(said, right, THRESHOLDS, "AP"),
            ),
            examples=f"{len(rows):,} pictures held back, {sum(map(len, right)):,} things",
            mistakes=mistakes(rows, said, right, names_of_things(lm, None, "object-detection")),
            by_label=by_label(said, right),
        )

    def ask(self, rows: Sequence[PictureRow], settings: ObjectDetectionSettings) -> Sequence[Any]:
        """Return the scores of the labels and the box of each query."""
        return ask_boxes(self.lm, rows, settings.head, self.task)

    def answer(
        self, item: Any, rows: Sequence[Any], found: Sequence[Any], settings: ObjectDetectionSettings
    ) -> list[dict[str, Any]]:
        """Return the things, the surest first."""
        names = names_of_things(self.lm, settings.head, self.task)
        things = things_of(found[0], names, sized_picture(item), settings.threshold)
        return [{"score": each.score, "label": each.label, "box": _ends(each.box)} for each in things]

    @classmethod
    def fits(cls, lm: "LanguageModel") -> bool:
        """Say whether the model has a head for boxes."""
        return finds_things(lm)

    def lines(self, item: Any, answer: Any) -> Iterator[str]:
        """Return a line for each thing: its label, how sure it is, its box and the picture's name."""
        name = item if isinstance(item, str) else ""
        for each in answer:
            place = " ".join(str(each["box"][end]) for end in ("xmin", "ymin", "xmax", "ymax"))
            yield f"{each['label']} {each['score']:.4f}  {place}  {name}".rstrip()
        if not answer:
            yield f"nothing  {name}".rstrip()


def things_of(said: Any, names: Sequence[str], size: tuple[int, int], threshold: float) -> list[Found]:
    """Return what the queries of a picture say, in pixels of its size, the surest first."""
    from orrery.nn.boxes import corners

    shares, labels = said[..., :-4].float().softmax(-1)[..., :-1].max(-1)
    rows, columns = size
    ends = corners(said[..., -4:].float()) * said.new_tensor([columns, rows, columns, rows]).float()
    found = []
    for number in shares.argsort(descending=True, stable=True).tolist():
        if float(shares[number]) > threshold:
            left, top, right, bottom = ends[number].tolist()
            box = (left, top, right - left, bottom - top)
            found.append(Found(names[int(labels[number])], box, float(shares[number])))
    return found


def detected(lm: "LanguageModel", rows: "Sequence[LabelledPicture]", done: Any = None) -> list[list[Found]]:
    """Return the boxes that a model says of pictures, with the digits that an answer leaves out."""
    import torch

    ask: Any = pipeline("object-detection", lm, batch_size=BATCH)
    kept: list[list[Found]] = []
    names = names_of_things(lm, None, "object-detection")
    for first in range(0, len(rows), BATCH):
        some = rows[first : first + BATCH]
        asked = [picture_row(lm, row.pixels().permute(1, 2, 0)) for row in some]
        sizes = [(each.shape[1], each.shape[2]) for each in (row.pixels() for row in some)]
        with torch.no_grad():
            said = ask.ask(asked, ask.chosen({}))
        kept += [things_of(one, names, size, LEAST) for one, size in zip(said, sizes, strict=True)]
        if done is not None:
            done(len(kept), len(rows))
    return kept


def by_label(
    said: Sequence[Sequence[Found]], right: Sequence[Sequence[Right]]
) -> list[tuple[str, float, float, float, int]]:
    """Return precision, recall and F1 of the boxes that would be drawn, at an overlap of 0.5, of each label."""
    sure = [[each for each in own if each.score >= DRAWN] for own in said]
    found = []
    for label in sorted({each.label for own in right for each in own}):
        ours = [[each for each in own if each.label == label] for own in sure]
        theirs = [[each for each in own if each.label == label and not each.crowd] for own in right]
        hits = sum(_hits(*pair) for pair in zip(ours, theirs, strict=True))
        boxes, things = (sum(map(len, side)) for side in (ours, theirs))
        scores = (hits / max(1, boxes), hits / max(1, things), 2 * hits / max(1, boxes + things))
        found.append((label, *scores, things))
    return found


def _hits(ours: Sequence[Found], theirs: Sequence[Right]) -> int:
    """Return how many boxes are right, each taken once, the surest first."""
    import numpy as np

    if not ours or not theirs:
        return 0
    table = overlaps(
        np.array([each.box for each in ours]), np.array([each.box for each in theirs]), np.zeros(len(theirs), bool)
    )
    hits = 0
    for row in table:
        place = int(row.argmax())
        if row[place] >= DRAWN:
            hits += 1
            table[:, place] = 0
    return hits


def mistakes(
    rows: "Sequence[LabelledPicture]",
    said: Sequence[Sequence[Found]],
    right: Sequence[Sequence[Right]],
    names: Sequence[str],
) -> list[Mistake]:
    """Return the pictures with the most wrong and missing things, each with the right boxes and with those said."""
    sure = [[each for each in own if each.score >= DRAWN] for own in said]
    wrong = []
    for ours, theirs in zip(sure, right, strict=True):
        labels = {each.label for each in ours} | {each.label for each in theirs}
        hits = sum(
            _hits([o for o in ours if o.label == label], [t for t in theirs if t.label == label]) for label in labels
        )
        wrong.append(len(ours) + len(theirs) - 2 * hits)
    found = []
    for n in sorted((n for n in range(len(rows)) if wrong[n]), key=lambda n: -wrong[n])[:SHOWN]:
        pixels = rows[n].pixels()
        shown = beside(*(with_boxes(pixels, [_outline(each, names) for each in side]) for side in (right[n], sure[n])))
        gold, told = (", ".join(sorted(each.label for each in side)) for side in (right[n], sure[n]))
        found.append(Mistake(f"{rows[n].where}: right, said", gold, told, None, shown))
    return found


def _outline(
    thing: Found | Right, names: Sequence[str]
) -> tuple[tuple[float, float, float, float], tuple[int, int, int]]:
    left, top, width, height = thing.box
    red, green, blue = colours(len(names) + 1)[1 + list(names).index(thing.label)].tolist()
    return (left, top, left + width, top + height), (red, green, blue)


def _ends(box: tuple[float, float, float, float]) -> dict[str, int]:
    """Return a box as transformers has it."""
    left, top, width, height = box
    ends = {"xmin": left, "ymin": top, "xmax": left + width, "ymax": top + height}
    return {name: int(value) for name, value in ends.items()}
