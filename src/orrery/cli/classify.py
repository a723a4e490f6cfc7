"""``orrery classify``: the class of each text."""

from typing import Annotated, Any

from orrery.cli.numbers import COUNT
from orrery.cli.places import MODEL
from orrery.cli.texts import NO_TEXT, READING, Reading, one_line, print_json, read, run


def classify(
    model: Annotated[str, MODEL],
    /,
    *texts: str,
    reading: Reading = READING,
    pair: str | None = None,
    top_k: Annotated[int, COUNT] = 1,
    labels: str | None = None,
    multi_label: bool = False,
    truncation: bool = False,
    device: str = "auto",
    dtype: str = "auto",
) -> None:
    """Print the label of each text and its probability: a line a text.

    With --labels a model of entailment says which of these fits, without having been trained on them.

    Args:
        model: A run, a checkpoint or a folder of a model with a head for classes.
        texts: Texts; without any, those of --file or of standard input.
        reading: Where texts come from.
        pair: The column of a second text, which is read beside the first.
        top_k: How many labels a text gets.
        labels: Labels with commas between them, for a model of entailment.
        multi_label: With --labels: several may be true of a text.
        truncation: Cut texts that are longer than the context.
        device: auto, cpu or cuda.
        dtype: auto, stored, float32, bfloat16, float16 or float64.
    """
    from orrery.errors import UsageError

    if pair is not None and (texts or labels is not None):
        raise UsageError("--pair names a column of --file, and labels of entailment need none", "leave --pair away")
    if multi_label and labels is None:
        raise UsageError("--multi-label counts with --labels alone", "name the labels")
    given = read(texts, reading, None if pair is None else (reading.column, pair))
    from orrery.tasks import pipeline

    task = "text-classification" if labels is None else "zero-shot-classification"
    pipe = pipeline(task, model, device=device, dtype=dtype, batch_size=reading.batch_size, truncation=truncation)
    own: dict[str, Any] = {"top_k": top_k}
    if labels is not None:
        own = {"candidate_labels": labels, "multi_label": multi_label}
    inputs: list[Any] = [one.fields[reading.column] for one in given]
    if pair is not None:
        inputs = [{"text": one.fields[reading.column], "text_pair": one.fields[pair]} for one in given]
    found = run(lambda items, names: pipe(items, names=names, **own), given, inputs)
    for one, answer in zip(given, found, strict=True):
        scored = [] if answer is None else answer if labels is None else _scored(answer)[:top_k]
        if reading.json:
            print_json({**one.fields, "labels": scored})
        else:
            shown = "  ".join(f"{one_line(label['label'])} {label['score']:.4f}" for label in scored) or NO_TEXT
            print(f"{shown}  {one_line(one.fields[reading.column])}")


def _scored(answer: Any) -> list[dict[str, Any]]:
    """Return the labels of entailment as those of classes are given."""
    pairs = zip(answer["labels"], answer["scores"], strict=True)
    return [{"label": label, "score": score} for label, score in pairs]
