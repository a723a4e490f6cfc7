"""``orrery see``: the inside of a model over a text, as a page in the browser or as one file."""

import json
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlencode

from cyclopts import Parameter

from orrery.cli.numbers import COUNT_OR_NONE
from orrery.cli.places import EVIDENCE, MODEL

if TYPE_CHECKING:
    from orrery.language_model.model import LanguageModel


def see(
    model: Annotated[str, MODEL],
    text: str,
    /,
    *,
    target: str | None = None,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    overwrite: bool = False,
    laws: Annotated[Path | None, EVIDENCE] = None,
    port: Annotated[int, COUNT_OR_NONE] = 0,
    device: str = "auto",
    dtype: str = "auto",
) -> int:
    """Look inside a model while it reads a text: attention, streams, logits, each with the checks that it satisfies.

    Without --output a page is served to this machine until Ctrl-C. With it everything stands in one HTML file, which
    needs nothing but a browser.

    Args:
        model: A run, a checkpoint, a Hugging Face folder, a GGUF file, or hf:org/name@revision.
        text: What the model reads; of an encoder-decoder the source; of a model of images a PNG file.
        target: What an encoder-decoder has written so far.
        output: The HTML file.
        overwrite: Replace the file.
        laws: What orrery verify --json wrote, for the screen Trust; by default laws.json of the run.
        port: Where the page is served; 0 takes a free port.
        device: auto, cpu or cuda.
        dtype: auto, stored, float32, bfloat16, float16 or float64.
    """
    from orrery.checkpoints.outputs import OutputFile
    from orrery.language_model.load import load

    if laws is not None:
        from orrery.page.views._laws import read_report

        read_report(laws)  # before the model is read: a file that is none is told at once
    loaded = partial(load, model, device, dtype)
    if output is None:
        return _serve(loaded, text, target, port, laws)
    file = OutputFile.shown("html", output, inputs=[model], overwrite=overwrite)
    from orrery.page.see import given_of
    from orrery.page.see import see as page_of

    lm = loaded()
    _say_memory(lm, given_of(lm, text, target))
    file.write(page_of(lm, text, target, laws=laws).html())
    print(f"wrote {output}")
    return 0


def _serve(loaded: Callable[[], "LanguageModel"], text: str, target: str | None, port: int, laws: Path | None) -> int:
    """Serve the page until a signal."""
    from orrery.cli.serve import check_packages

    check_packages()
    from orrery.serving.run import address_of, listen, run
    from orrery.serving.settings import ServerSettings

    settings = ServerSettings(port=port, laws=laws)
    with listen(settings) as listener:  # before the model is read: a port that is taken is told at once
        from orrery.page.see import given_of
        from orrery.serving.served import Served

        served = Served(loaded(), settings)
        given = given_of(served.lm, text, target)
        _say_memory(served.lm, given)
        if "image" in given:
            given["image"] = served.passes.keep_image(Path(text))
        served.passes.open(given)  # a text that cannot be read is told here, not in the page
        place = f"{address_of(listener)}/#{urlencode({'screen': json.dumps('inside'), 'given': json.dumps(given)})}"
        return run(served, listener, lambda line: print(f"open {place}", flush=True))


def _say_memory(lm: "LanguageModel", given: Mapping[str, Any]) -> None:
    """Say what looking into a text takes, before it runs."""
    from orrery.inspection.memory import readable
    from orrery.page.views._inside import memory_of

    message = f"looking inside takes up to {readable(memory_of(lm, given).total)} beside the weights"
    print(message, file=sys.stderr, flush=True)  # what a program reads is the address alone
