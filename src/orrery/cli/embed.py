"""``orrery embed``: a vector for each text."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from orrery.cli.places import MODEL
from orrery.cli.texts import READING, TextReading, print_json, read, run
from orrery.errors import DataError, UsageError

if TYPE_CHECKING:
    from orrery.checkpoints.outputs import OutputFile


def embed(
    model: Annotated[str, MODEL],
    /,
    *texts: str,
    reading: TextReading = READING,
    output: Path | None = None,
    prompt: str | None = None,
    normalise: bool | None = None,
    truncation: bool | None = None,
    overwrite: bool = False,
    device: str = "auto",
    dtype: str = "auto",
) -> None:
    """Write a vector for each text: as a folder of sentence-transformers says, else the mean over all its tokens.

    Without --output each is printed as a JSON object a line. A row without a text has no vector: null in JSON, not a
    number in an array.

    Args:
        model: A run, a checkpoint or a folder of any model of texts.
        texts: Texts; without any, those of --file or of standard input.
        reading: Where texts come from.
        output: A file .npy for one array of all vectors, or .jsonl for a line a text.
        prompt: The name of one of the folder's prompts, such as query; or a text to put in front, which ends in a blank
            or a colon.
        normalise: Divide each vector by its length, so that products are cosines; by default as the folder says.
        truncation: Cut texts that are longer than the context, or than the rows that the folder names, as is done by
            default where it names any.
        overwrite: Replace the file of --output.
        device: auto, cpu or cuda.
        dtype: auto, stored, float32, bfloat16, float16 or float64.
    """
    if output is not None and output.suffix not in (".npy", ".jsonl"):
        raise UsageError(f"{output} ends neither in .npy nor in .jsonl", "choose one of them")
    from orrery.checkpoints.outputs import OutputFile

    target = None if output is None else OutputFile(output, inputs=[model, reading.file], overwrite=overwrite)
    given = read(texts, reading)
    from orrery.language_model.load import load
    from orrery.tasks import pipeline

    settings: dict[str, Any] = {"prompt": prompt, "normalise": normalise, "truncation": truncation}
    pipe = pipeline("embedding", load(model, device, dtype), batch_size=reading.batch_size, **settings)
    vectors_of = run(pipe.several, given, [one.fields[reading.column] for one in given])
    if cut := sum(one is not None and one.cut > 0 for one in vectors_of):
        print(f"{cut:,} texts lost their end: they are longer than a row", file=sys.stderr)
    vectors = [pipe.told(one) for one in vectors_of]
    records = [{**one.fields, pipe.said: vector} for one, vector in zip(given, vectors, strict=True)]
    if target is None:
        for record in records:
            print_json(record)
        return
    width = next((len(vector) for vector in vectors if vector is not None), 0)
    if not width and target.given.suffix == ".npy":
        raise DataError("no row has a text, so an array would have no columns", "give it at least one text")
    _write(target, records, width)
    print(f"{target.given}: {len(vectors) - vectors.count(None):,} vectors of {width:,} numbers")


def _write(target: "OutputFile", records: list[dict[str, Any]], width: int) -> None:
    """Write vectors as one array, row n that of text n, or as lines with their texts."""
    import json

    import numpy as np

    if target.given.suffix == ".jsonl":
        target.write("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records))
        return
    with target.aside() as fresh, open(fresh, "wb") as stream:
        none = [float("nan")] * width
        np.save(stream, np.array([record["vector"] or none for record in records], np.float32))
