"""``orrery tree``: what greedy decoding, beams and samples followed behind a text, and what was dropped."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from orrery.cli.beam_options import WAYS, Ways, given
from orrery.cli.console import printable
from orrery.cli.numbers import COUNT, DRAWN, SEED
from orrery.cli.places import MODEL
from orrery.cli.texts import print_json
from orrery.cli.writing_options import CHOOSING, SamplingOptions

if TYPE_CHECKING:
    from orrery.language_model.tree import DecodingTree


def tree(
    model: Annotated[str, MODEL],
    prompt: str,
    /,
    *,
    max_new_tokens: Annotated[int, COUNT] = 4,
    beams: Ways = WAYS,
    samples: Annotated[int, DRAWN] = 0,
    drawing: SamplingOptions = CHOOSING,
    json: bool = False,
    picture: Path | None = None,
    overwrite: bool = False,
    truncate: Literal["left"] | None = None,
    seed: Annotated[int, SEED] = 1337,
    device: str = "auto",
    dtype: str = "auto",
) -> None:
    """Print the decoding tree behind a text, with the cost of each token and of the way to it in nats.

    A cost is -log p. Beams follow the cheapest ways at each depth and drop the others, which are marked.

    Args:
        model: A run, a checkpoint or a folder of a model that writes.
        prompt: The text that the tree grows behind; of an encoder-decoder the source.
        max_new_tokens: The depth of the tree.
        beams: Which ways the beam search follows at each depth.
        samples: Answers drawn besides.
        drawing: How samples are drawn.
        json: Print the tree as JSON.
        picture: An SVG file for the picture of the tree.
        overwrite: Replace the file of --picture.
        truncate: left cuts the beginning of a prompt that does not fit the context.
        seed: Of the draws.
        device: auto, cpu or cuda.
        dtype: auto, stored, float32, bfloat16, float16 or float64.
    """
    from orrery.checkpoints.outputs import OutputFile

    file = None if picture is None else OutputFile.shown("svg", picture, inputs=[model], overwrite=overwrite)
    from orrery.language_model.load import load

    tree_of_text = load(model, device, dtype).tree(
        prompt,
        max_new_tokens=max_new_tokens,
        **given(beams),
        samples=samples,
        seed=seed,
        truncate=truncate,
        **drawing.settings(0.8),
    )
    if file is not None:
        file.write(tree_of_text.figure())
    if json:
        print_json(tree_of_text.plain())
    else:
        _print(tree_of_text)


def _print(tree: "DecodingTree") -> None:
    for line in tree.lines():
        print(printable(line))
