"""``orrery tag``: the entities of each text."""

from typing import Annotated, Literal

from orrery.cli.numbers import COUNT_OR_NONE
from orrery.cli.places import MODEL
from orrery.cli.texts import READING, Reading, one_line, print_json, read, run


def tag(
    model: Annotated[str, MODEL],
    /,
    *texts: str,
    reading: Reading = READING,
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
    given = read(texts, reading)
    from orrery.tasks import pipeline

    pipe = pipeline(
        "token-classification",
        model,
        device=device,
        dtype=dtype,
        batch_size=reading.batch_size,
        aggregation_strategy=group,
        stride=stride,
        truncation=truncation,
        ignore_labels=() if everything else ("O",),
    )
    found = run(lambda items, names: pipe(items, names=names), given, [one.fields[reading.column] for one in given])
    for one, answer in zip(given, found, strict=True):
        entities = answer or []
        if reading.json:
            print_json({**one.fields, "entities": entities})
            continue
        text = one.fields[reading.column]
        if len(given) > 1:
            print(f"# {one_line(text)}")
        for entity in entities:
            label = entity.get("entity_group", entity.get("entity"))
            words = one_line(text[entity["start"] : entity["end"]])
            print(f"{one_line(label)}  {entity['score']:.4f}  {entity['start']}-{entity['end']}  {words}")
