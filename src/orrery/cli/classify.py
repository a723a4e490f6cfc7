"""``orrery classify``: the class of each text or picture."""

from typing import Annotated, Any

from orrery.cli.asking import ask
from orrery.cli.numbers import COUNT
from orrery.cli.places import MODEL
from orrery.cli.texts import READING, TextReading, is_picture, read


def classify(
    model: Annotated[str, MODEL],
    /,
    *texts: str,
    reading: TextReading = READING,
    pair: str | None = None,
    top_k: Annotated[int, COUNT] = 1,
    labels: str | None = None,
    multi_label: bool = False,
    truncation: bool = False,
    device: str = "auto",
    dtype: str = "auto",
) -> None:
    """Print the label of each text or picture and its probability, on a line.

    With --labels a model says which of these fits, without having been trained on them: one of entailment of a text,
    one of pictures and texts (CLIP) of a picture.

    Args:
        model: A run, a checkpoint or a folder of a model with a head for classes.
        texts: Texts, or files of pictures for a model that reads them; without any, those of --file or of standard
            input.
        reading: Where texts come from.
        pair: The column of a second text, which is read beside the first.
        top_k: How many labels a text gets.
        labels: Labels with commas between them, for a model of entailment, or of pictures and texts.
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
    seen = bool(texts) and all(map(is_picture, texts))
    if multi_label and seen:
        raise UsageError("--multi-label is of texts: a model compares a picture with all labels", "leave it out")
    given = read(texts, reading, None if pair is None else (reading.column, pair))
    inputs: list[Any] | None = None
    if pair is not None:
        inputs = [{"text": one.fields[reading.column], "text_pair": one.fields[pair]} for one in given]
    own: dict[str, Any] = {"top_k": top_k, "truncation": truncation}
    if labels is None:
        ask("classification", model, device, dtype, given, inputs, reading, **own)
    else:
        own |= {"candidate_labels": labels}
        task = "zero-shot-image-classification" if seen else "zero-shot-classification"
        ask(task, model, device, dtype, given, inputs, reading, **own, **({} if seen else {"multi_label": multi_label}))
