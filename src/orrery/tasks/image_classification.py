"""One label of several for a picture: ``[{"label": ..., "score": ...}]``."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from orrery.nn.heads import SequenceHead
from orrery.schema.numbers import Positive
from orrery.scores import classification
from orrery.tasks._task import register
from orrery.tasks.finetuning._counting import most_frequent
from orrery.tasks.finetuning._one_label import likeliest, one_label
from orrery.tasks.finetuning.findings import Findings, Mistake, label_names
from orrery.tasks.pipelines._heads import Scores, head_of, labels_of, wide
from orrery.tasks.pipelines._make import pipeline
from orrery.tasks.pipelines._of_pictures import LearnedOfPictures
from orrery.tasks.pipelines._picture_rows import PictureRow, ask_pictures
from orrery.tasks.pipelines._pipeline import PipelineSettings

if TYPE_CHECKING:
    from orrery.data.rows.pictures import LabelledPicture
    from orrery.language_model.model import LanguageModel
    from orrery.scores.resampled import Resampled

BATCH = 64
"""Pictures answered at once."""


class ImageClassificationSettings(PipelineSettings):
    """``top_k`` labels a picture, all where it is null; ``function_to_apply`` beside what the head's problem asks."""

    top_k: Positive | None = 5
    function_to_apply: Literal["softmax", "sigmoid", "none", "default"] | None = None


@register
class ImageClassification(LearnedOfPictures):
    """One label of several for each picture.

    It learns a head over the row of patches. A picture is a path, a ``data:`` address in base64, an array or a picture
    of Pillow's. As in transformers a picture has a list for its answer, the likeliest label first.
    """

    kind = "image_classification"
    route = "/v1/tasks/image-classification"
    said = "labels"
    source = "pictures"
    objective = "classification"
    head = "sequence"
    Settings = ImageClassificationSettings

    @classmethod
    def findings(cls, lm: "LanguageModel", source: Any, length: int, done: Any = None) -> Findings:
        """Return accuracy, F1 and calibration, the confusions and the worst mistakes; floors of simple methods."""
        rows, names = source.held_back, label_names(lm, "sequence")
        found = probabilities(lm, rows, names, done)
        gold = [row.target for row in rows]
        said = likeliest(found, names)
        return one_label(
            found,
            gold,
            names,
            lambda n: Mistake(rows[n].where, gold[n], said[n], max(found[n]), rows[n].pixels()),
            examples=f"{len(rows):,} pictures held back",
            floors=floors(lm, source.train, rows, gold),
        )

    def ask(self, rows: Sequence[PictureRow], settings: ImageClassificationSettings) -> Sequence[Scores]:
        """Return the logits of each picture."""
        name, _ = head_of(self.lm, SequenceHead.Spec, "sequence", settings.head, self.task)
        return [wide(said) for said in ask_pictures(self.lm, rows, name)]

    def answer(
        self, item: Any, rows: Sequence[Any], found: Sequence[Scores], settings: ImageClassificationSettings
    ) -> list[dict[str, Any]]:
        """Return the likeliest labels."""
        _, spec = head_of(self.lm, SequenceHead.Spec, "sequence", settings.head, self.task)
        return labels_of(found[0], spec, settings.function_to_apply)[: settings.top_k]

    @classmethod
    def fits(cls, lm: "LanguageModel") -> bool:
        """Say whether the model reads pictures and has a head for rows."""
        from orrery.language_model.pictures import reads_pictures

        heads = lm.model.spec.heads.values()
        return reads_pictures(lm.stored) is not None and any(isinstance(head, SequenceHead.Spec) for head in heads)

    def lines(self, item: Any, answer: Any) -> Iterator[str]:
        """Return a line with the labels, their probabilities, and the picture's name."""
        shown = "  ".join(f"{label['label']} {label['score']:.4f}" for label in answer)
        yield f"{shown}  {item if isinstance(item, str) else ''}".rstrip()


def probabilities(
    lm: "LanguageModel", rows: "Sequence[LabelledPicture]", names: Sequence[str], done: Any = None
) -> list[list[float]]:
    """Return what the model gives each label, in the order of ``names``."""
    ask = pipeline("image-classification", lm, batch_size=BATCH)
    answers = ask([shown(row) for row in rows], top_k=None, done=done)
    tables = [{each["label"]: each["score"] for each in answer} for answer in answers]
    return [[table[name] for name in names] for table in tables]


def shown(row: "LabelledPicture") -> Any:
    """Return a row as the pipeline takes it: bytes ``[rows, columns, channels]``."""
    return row.pixels().permute(1, 2, 0)


def floors(
    lm: "LanguageModel", train: "Sequence[LabelledPicture]", rows: "Sequence[LabelledPicture]", gold: Sequence[str]
) -> "list[tuple[str, Resampled]]":
    """Return the accuracy of the most frequent label and of the nearest mean of the pixels of a label."""
    labels = [row.target for row in train]
    nearest = _nearest_means(_pixels(lm, train), labels, _pixels(lm, rows))
    return [
        ("the most frequent label", classification.accuracy([most_frequent(labels)] * len(gold), gold)),
        ("the label whose mean picture is nearest", classification.accuracy(nearest, gold)),
    ]


def _pixels(lm: "LanguageModel", rows: "Iterable[LabelledPicture]") -> Any:
    """Return the pictures as the model's size has them, as rows of numbers."""
    import torch

    from orrery.data.pictures.preparing import fitted
    from orrery.language_model.pictures import preparation_of, reads_pictures

    read = reads_pictures(lm.stored)
    assert read is not None
    prepared = preparation_of(lm.stored, read)
    return torch.stack([fitted(row.pixels(), prepared, read.shape).flatten() for row in rows]).float()


def _nearest_means(train: Any, labels: Sequence[str], rows: Any) -> list[str]:
    """Return for each row the label whose mean is nearest in squared distance."""
    import torch

    names = sorted(set(labels))
    numbers = torch.tensor([names.index(label) for label in labels])
    means = torch.stack([train[numbers == number].mean(0) for number in range(len(names))])
    return [names[number] for number in torch.cdist(rows, means).argmin(1).tolist()]
