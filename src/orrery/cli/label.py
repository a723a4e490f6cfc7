"""``orrery label``: the likeliest of thousands of labels of each text."""

from typing import Annotated

from orrery.cli.asking import ask
from orrery.cli.numbers import COUNT
from orrery.cli.places import MODEL
from orrery.cli.texts import READING, TextReading, read


def label(
    model: Annotated[str, MODEL],
    /,
    *texts: str,
    reading: TextReading = READING,
    top_k: Annotated[int, COUNT] = 5,
    clusters: Annotated[int, COUNT] = 10,
    device: str = "auto",
    dtype: str = "auto",
) -> None:
    """Print the likeliest of thousands of labels for each text, with their scores: a line a text.

    A score is that of the cluster times that of the label in it, and no probability.

    Args:
        model: A run, a checkpoint or a folder of a model that orrery finetune many-labels has trained.
        texts: Texts; without any, those of --file or of standard input.
        reading: Where texts come from.
        top_k: How many labels a text gets.
        clusters: How many clusters of labels are searched, the likeliest first.
        device: auto, cpu or cuda.
        dtype: auto, stored, float32, bfloat16, float16 or float64.
    """
    ask("many-labels", model, device, dtype, read(texts, reading), None, reading, top_k=top_k, clusters=clusters)
