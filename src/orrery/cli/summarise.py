"""``orrery summarise``: each text said shorter."""

from typing import Annotated

from orrery.cli.asking import ask
from orrery.cli.beam_options import SUMMARIES, Summaries, given
from orrery.cli.places import MODEL
from orrery.cli.texts import READING, TextReading, read


def summarise(
    model: Annotated[str, MODEL],
    /,
    *texts: str,
    reading: TextReading = READING,
    search: Summaries = SUMMARIES,
    truncation: bool = False,
    device: str = "auto",
    dtype: str = "auto",
) -> None:
    """Print the summary of each text, on a line; a line end in it is shown escaped.

    Args:
        model: A run, a checkpoint or a folder of an encoder-decoder that writes summaries.
        texts: Texts; without any, those of --file or of standard input.
        reading: Where texts come from.
        search: How summaries are searched for.
        truncation: Cut texts that are longer than the context.
        device: auto, cpu or cuda.
        dtype: auto, stored, float32, bfloat16, float16 or float64.
    """
    own = given(search)
    ask("summarisation", model, device, dtype, read(texts, reading), None, reading, truncation=truncation, **own)
