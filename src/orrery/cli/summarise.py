"""``orrery summarise``: each text said shorter."""

from typing import Annotated

from orrery.cli.beam_options import SUMMARIES, Summaries
from orrery.cli.beam_options import given as given_flags
from orrery.cli.places import MODEL
from orrery.cli.texts import NO_TEXT, READING, Reading, one_line, print_json, read, run


def summarise(
    model: Annotated[str, MODEL],
    /,
    *texts: str,
    reading: Reading = READING,
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
    given = read(texts, reading)
    from orrery.tasks.pipelines import pipeline

    pipe = pipeline(
        "summarization",
        model,
        device=device,
        dtype=dtype,
        batch_size=reading.batch_size,
        **given_flags(search),
        truncation=truncation,
    )
    found = run(lambda items, names: pipe(items, names=names), given, [one.fields[reading.column] for one in given])
    for one, answer in zip(given, found, strict=True):
        summary = "" if answer is None else answer["summary_text"]
        if reading.json:
            print_json({**one.fields, "summary": summary})
        else:
            print(one_line(summary) if answer is not None else NO_TEXT)
