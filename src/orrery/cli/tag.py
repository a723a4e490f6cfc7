"""``orrery tag``: the entities of each text."""

from typing import Annotated, Literal

from orrery.cli.asking import ask
from orrery.cli.numbers import COUNT_OR_NONE
from orrery.cli.places import MODEL
from orrery.cli.texts import READING, TextReading, read


def tag(
    model: Annotated[str, MODEL],
    /,
    *texts: str,
    reading: TextReading = READING,
    group: Literal["none", "simple", "first", "average", "max"] = "simple",
    stride: Annotated[int | None, COUNT_OR_NONE] = None,
    everything: bool = False,
    truncation: bool = False,
    device: str = "auto",
    dtype: str = "auto",
) -> None:
    """Print the entities of each text: label, probability, where it stands, and its words; a line an entity.

    Several texts have a line before theirs that says which it is.

    Args:
        model: A run, a checkpoint or a folder of a model with a head for tags.
        texts: Texts; without any, those of --file or of standard input.
        reading: Where texts come from.
        group: How tokens become entities: none leaves them alone; first, average and max keep words whole.
        stride: Read texts that are longer than the context in windows that share so many tokens.
        everything: Show tokens outside of entities too.
        truncation: Cut texts that are longer than the context.
        device: auto, cpu or cuda.
        dtype: auto, stored, float32, bfloat16, float16 or float64.
    """
    ask(
        "tagging",
        model,
        device,
        dtype,
        read(texts, reading),
        None,
        reading,
        aggregation_strategy=group,
        stride=stride,
        truncation=truncation,
        ignore_labels=() if everything else ("O",),
    )
