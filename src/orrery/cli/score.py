"""``orrery score``: what a text costs a model, token by token."""

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from orrery.cli.console import printable
from orrery.cli.places import MODEL
from orrery.errors import DataError, UsageError

if TYPE_CHECKING:
    from orrery.generation.scoring import Score


def score(
    model: Annotated[str, MODEL],
    text: str | None = None,
    /,
    *,
    file: Path | None = None,
    device: str = "auto",
    dtype: str = "auto",
) -> None:
    """Print the log probability of each token of a text, their sum in nats, and bits per byte.

    Args:
        model: A run, a checkpoint, a Hugging Face folder, a GGUF file, or hf:org/name@revision.
        text: The text.
        file: A UTF-8 file that holds the text.
        device: auto, cpu or cuda.
        dtype: auto, stored, float32, bfloat16, float16 or float64.
    """
    if (text is None) == (file is None):
        raise UsageError("give either a text or --file, not both and not neither", "orrery score MODEL TEXT")
    content = _read(file) if file is not None else str(text)
    if not content:
        raise DataError("the text is empty", "give at least one character")
    from orrery.language_model.load import load

    _print(content, load(model, device, dtype).score(content))


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise DataError(f"cannot read {file}: {error.strerror}", "give the path of a text file") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{file} is not UTF-8 (byte {error.start})", "convert it to UTF-8") from error


def _print(text: str, score: "Score") -> None:
    print(f"{'id':>8}  {'nats':>9}  token")
    for id, nats, token in zip(score.ids, score.log_probabilities, score.tokens, strict=True):
        shown = "-" if nats is None else f"{nats:.4f}"
        print(f"{id:>8}  {shown:>9}  {_visible(token)}")
    scored = [nats for nats in score.log_probabilities if nats is not None]
    if len(scored) < len(score.ids):
        print("the first token has no prediction: this tokenizer has no start or end token", file=sys.stderr)
    bits = -score.total / math.log(2) / len(text.encode())
    print(f"total {score.total:.4f} nats over {len(scored)} tokens, {bits:.4f} bits per byte")


def _visible(token: str) -> str:
    """Return a token between quotes, with newlines and tabs escaped as well."""
    return '"' + printable(token).replace("\n", "\\n").replace("\t", "\\t") + '"'
