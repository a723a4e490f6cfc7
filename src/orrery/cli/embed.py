"""``orrery embed``: a vector for each text."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from orrery.cli.places import MODEL
from orrery.cli.texts import READING, Reading, print_json, read, run
from orrery.errors import DataError, UsageError

if TYPE_CHECKING:
    from orrery.checkpoints.outputs import OutputFile


def embed(
    model: Annotated[str, MODEL],
    /,
    *texts: str,
    reading: Reading = READING,
    output: Path | None = None,
    normalise: bool = False,
    truncation: bool = False,
    overwrite: bool = False,
    device: str = "auto",
    dtype: str = "auto",
) -> None:
    """Write a vector for each text: the mean of the model's final hidden states over all its tokens.

    Without --output each is printed as a JSON object a line. A row without a text has no vector: null in JSON, not a
    number in an array.

    Args:
        model: A run, a checkpoint or a folder of any model of texts.
        texts: Texts; without any, those of --file or of standard input.
        reading: Where texts come from.
        output: A file .npy for one array of all vectors, or .jsonl for a line a text.
        normalise: Divide each vector by its length, so that products are cosines.
        truncation: Cut texts that are longer than the context.
        overwrite: Replace the file of --output.
        device: auto, cpu or cuda.
        dtype: auto, stored, float32, bfloat16, float16 or float64.
    """
    if output is not None and output.suffix not in (".npy", ".jsonl"):
        raise UsageError(f"{output} ends neither in .npy nor in .jsonl", "choose one of them")
    from orrery.checkpoints.outputs import OutputFile

    target = None if output is None else OutputFile(output, inputs=[model, reading.file], overwrite=overwrite)
    given = read(texts, reading)
    from orrery.pipelines import pipeline
    from orrery.pipelines.feature_extraction import mean_vector

    pipe = pipeline("feature-extraction", model, device=device, dtype=dtype, batch_size=reading.batch_size)
    settings: dict[str, Any] = {"return_tensors": True, "truncation": truncation}
    found = run(
        lambda items, names: pipe(items, names=names, **settings), given, [one.fields[reading.column] for one in given]
    )
    vectors = [None if x_1LD is None else mean_vector(x_1LD[0], normalise=normalise).tolist() for x_1LD in found]
    records = [{**one.fields, "vector": vector} for one, vector in zip(given, vectors, strict=True)]
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
