"""``orrery generate``: continue a text, shown as it comes."""

import sys
from typing import Annotated, Literal

from cyclopts import Parameter

from orrery.cli.console import printable

_WHY = {
    "end": "the end token",
    "stop": "a stop string",
    "length": "--max-new-tokens",
    "context": "the context is full",
}


def generate(
    model: str,
    prompt: str,
    /,
    *,
    max_new_tokens: int = 64,
    temperature: float = 0.8,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    repetition_penalty: float | None = None,
    stop: Annotated[list[str] | None, Parameter(negative=())] = None,
    truncate: Literal["left"] | None = None,
    seed: int = 1337,
    device: str = "auto",
    dtype: str = "auto",
) -> None:
    """Continue a text.

    The continuation goes to stdout, what was chosen and the speed to stderr. Control characters of the text are
    shown escaped, so that no model can steer a terminal.

    Args:
        model: A run, a checkpoint, a Hugging Face folder, or hf:org/name@revision.
        prompt: The text to continue; an empty one stands for the beginning of a text.
        max_new_tokens: The most tokens of the answer.
        temperature: Divides the logits; 0 always takes the most probable token.
        top_k: How many tokens stay possible.
        top_p: The probability mass that stays possible.
        min_p: The least probability, as a share of the greatest.
        repetition_penalty: Above 1 discourages tokens that the text holds already.
        stop: A string that ends the answer; may be given several times.
        truncate: left cuts the beginning of a prompt that does not fit the context.
        seed: Of the draws.
        device: auto, cpu or cuda.
        dtype: auto, stored, float32, bfloat16, float16 or float64.
    """
    from orrery.loading.load import load

    answer = load(model, device, dtype).generations(
        [prompt],
        max_new_tokens=max_new_tokens,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        min_p=min_p,
        repetition_penalty=repetition_penalty,
        stop=stop or [],
        truncate=truncate,
        seed=seed,
        stream=lambda row, piece: print(printable(piece), end="", flush=True),
    )[0]
    print(flush=True)
    print(
        f"{len(answer.ids)} tokens, {answer.tokens_per_second:,.1f} tokens/s, seed {seed}, "
        f"ended by {_WHY[answer.finish_reason]}",
        file=sys.stderr,
    )
