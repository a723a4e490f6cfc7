"""``orrery see``: the inside of a model over a text, as a page in the browser or as one file."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlencode

from cyclopts import Parameter

from orrery.cli.numbers import COUNT_OR_NONE

if TYPE_CHECKING:
    from orrery.language_model.model import LanguageModel


def see(
    model: str,
    text: str,
    /,
    *,
    target: str | None = None,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    overwrite: bool = False,
    port: Annotated[int, COUNT_OR_NONE] = 0,
    device: str = "auto",
    dtype: str = "auto",
) -> int:
    """Look inside a model while it reads a text: attention, streams, logits, each with the checks that it satisfies.

    Without --output a page is served to this machine until Ctrl-C. With it everything stands in one HTML file, which
    needs nothing but a browser.

    Args:
        model: A run, a checkpoint, a Hugging Face folder, or hf:org/name@revision.
        text: What the model reads; of an encoder-decoder the source.
        target: What an encoder-decoder has written so far.
        output: The HTML file.
        overwrite: Replace the file.
        port: Where the page is served; 0 takes a free port.
        device: auto, cpu or cuda.
        dtype: auto, stored, float32, bfloat16, float16 or float64.
    """
    from orrery.checkpoints.outputs import OutputFile

    file = None if output is None else OutputFile(output, inputs=[model], overwrite=overwrite)
    from orrery.language_model.load import load

    lm = load(model, device, dtype)
    given: dict[str, Any] = {"text": text}
    if lm.model.spec.reads_source:
        given = {"source": text, "target": target or ""}
    elif target is not None:
        from orrery.errors import UsageError

        raise UsageError("this model reads and writes one text", "leave --target out; give all of it as TEXT")
    if file is None:
        return _serve(lm, given, port)
    from orrery.pages.see import page_of

    file.write(page_of(lm, given).html())
    print(f"wrote {output}")
    return 0


def _serve(lm: "LanguageModel", given: dict[str, Any], port: int) -> int:
    """Serve the page until a signal."""
    from orrery.cli.serve import check_packages

    check_packages()
    from orrery.serving.run import address_of, listen, run
    from orrery.serving.served import Served
    from orrery.serving.settings import ServerSettings

    settings = ServerSettings(port=port)
    with listen(settings) as listener:
        place = f"{address_of(listener)}/#{urlencode({'screen': json.dumps('inside'), 'given': json.dumps(given)})}"
        return run(Served(lm, settings), listener, lambda line: print(f"open {place}", flush=True))
