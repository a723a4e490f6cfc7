"""``orrery summarise``: each text said shorter."""

from typing import Annotated

from orrery.cli.asking import print_answers
from orrery.cli.numbers import COUNT, NUMBER
from orrery.cli.places import MODEL
from orrery.cli.texts import READING, Reading, read


def summarise(
    model: Annotated[str, MODEL],
    /,
    *texts: str,
    reading: Reading = READING,
    max_new_tokens: Annotated[int | None, COUNT] = None,
    min_new_tokens: Annotated[int | None, COUNT] = None,
    num_beams: Annotated[int | None, COUNT] = None,
    length_penalty: Annotated[float | None, NUMBER] = None,
    no_repeat_ngram_size: Annotated[int | None, COUNT] = None,
    truncation: bool = False,
    device: str = "auto",
    dtype: str = "auto",
) -> None:
    """Print the summary of each text, on a line; a line end in it is shown escaped.

    Args:
        model: A run, a checkpoint or a folder of an encoder-decoder that writes summaries.
        texts: Texts; without any, those of --file or of standard input.
        reading: Where texts come from.
        max_new_tokens: The most tokens of a summary; by default what the model's files say, else 256.
        min_new_tokens: The fewest tokens of a summary; by default what the model's files say, else none.
        num_beams: Hypotheses followed a text; by default what the model's files say, else 4.
        length_penalty: Of beams: above 0 favours long summaries, as in Hugging Face's files; by default what they say,
            else 1.
        no_repeat_ngram_size: The length of runs of tokens that come at most once; by default what the files say.
        truncation: Cut texts that are longer than the context.
        device: auto, cpu or cuda.
        dtype: auto, stored, float32, bfloat16, float16 or float64.
    """
    given = read(texts, reading)
    from orrery.tasks import pipeline

    pipe = pipeline(
        "summarization",
        model,
        device=device,
        dtype=dtype,
        batch_size=reading.batch_size,
        max_new_tokens=max_new_tokens,
        min_new_tokens=min_new_tokens,
        num_beams=num_beams,
        length_penalty=length_penalty,
        no_repeat_ngram_size=no_repeat_ngram_size,
        truncation=truncation,
    )
    print_answers(pipe, given, [one.fields[reading.column] for one in given], reading)
