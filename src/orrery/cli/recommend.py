"""``orrery recommend``: the items that come next in a history."""

from typing import Annotated, Any

from orrery.cli.asking import tell
from orrery.cli.numbers import COUNT, ONE_OR_MORE
from orrery.cli.places import DATA, MODEL
from orrery.cli.texts import READING, InputText, TextReading, read


def recommend(
    model: Annotated[str, MODEL],
    /,
    *,
    history: Annotated[tuple[str, ...], ONE_OR_MORE] = (),
    reading: TextReading = READING,
    top_k: Annotated[int, COUNT] = 10,
    seen: bool = False,
    skip_unknown: bool = False,
    items: Annotated[str | None, DATA] = None,
    encoder: Annotated[str | None, MODEL] = None,
    device: str = "auto",
    dtype: str = "auto",
) -> None:
    """Print the items that come next in a history, with their probabilities, the likeliest first.

    With --items new items are ranked too: where their texts put them among the items that the model knows.

    Args:
        model: A run, a checkpoint or a folder of a model that orrery finetune next-item has trained.
        history: The items of one history, the newest last; without any, a history a line of --file or of standard
            input, its items between commas.
        reading: Where histories come from.
        top_k: How many items are recommended.
        seen: Recommend items of the history too.
        skip_unknown: Pass over items of a history that the model does not know.
        items: A file with a text for each item, new ones and those that the model knows.
        encoder: A model that makes the vectors of these texts; by default words are counted.
        device: auto, cpu or cuda.
        dtype: auto, stored, float32, bfloat16, float16 or float64.
    """
    from orrery.errors import UsageError

    if encoder is not None and items is None:
        raise UsageError("--encoder reads the texts of --items, and there are none", "name --items FILE too")
    if history and reading.file is not None:
        raise UsageError("give either --history or --file, not both", "leave one of them out")
    joined = ", ".join(history)
    given = [InputText("history", {reading.column: joined})] if history else read((), reading)
    from orrery.language_model.load import load
    from orrery.tasks.next_item import NextItem

    settings: dict[str, Any] = {"top_k": top_k, "seen": seen, "skip_unknown": skip_unknown}
    pipe = NextItem(load(model, device, dtype, say=lambda line: None), "next-item", reading.batch_size, **settings)
    if items is not None:
        from orrery.data.readers.item_texts import read_item_texts

        pipe.with_new(read_item_texts(items), None if encoder is None else load(encoder, device, dtype))
    tell(pipe, given, [list(history)] if history else None, reading)
