"""``orrery generate``: continue a text, shown as it comes."""

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from orrery.cli.console import printable
from orrery.cli.numbers import ABOVE_ZERO, COUNT, NOT_NEGATIVE, NUMBER, SEED, SHARE

if TYPE_CHECKING:
    from orrery.language_model.model import LanguageModel

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
    max_new_tokens: Annotated[int, COUNT] = 64,
    temperature: Annotated[float | None, NOT_NEGATIVE] = None,
    top_k: Annotated[int | None, COUNT] = None,
    top_p: Annotated[float | None, SHARE] = None,
    min_p: Annotated[float | None, SHARE] = None,
    repetition_penalty: Annotated[float | None, ABOVE_ZERO] = None,
    num_beams: Annotated[int, COUNT] = 1,
    length_penalty: Annotated[float, NUMBER] = 0.6,
    stop: Annotated[list[str] | None, Parameter(negative=())] = None,
    truncate: Literal["left"] | None = None,
    seed: Annotated[int, SEED] = 1337,
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
        temperature: Divides the logits, 0.8 by default; 0 always takes the most probable token.
        top_k: How many tokens stay possible.
        top_p: The probability mass that stays possible.
        min_p: The least probability, as a share of the greatest.
        repetition_penalty: Above 1 discourages tokens that the text holds already.
        num_beams: Above 1 searches for the answer of the greatest score instead of drawing tokens.
        length_penalty: Of beams; 0 favours short answers, the Transformer's paper used 0.6.
        stop: A string that ends the answer; may be given several times.
        truncate: left cuts the beginning of a prompt that does not fit the context.
        seed: Of the draws.
        device: auto, cpu or cuda.
        dtype: auto, stored, float32, bfloat16, float16 or float64.
    """
    from orrery.generation.search import refuse_with_beams
    from orrery.language_model.load import load

    drawing = {"top_k": top_k, "top_p": top_p, "min_p": min_p, "repetition_penalty": repetition_penalty, "stop": stop}
    limits = {"max_new_tokens": max_new_tokens, "truncate": truncate}
    if num_beams > 1:
        refuse_with_beams(temperature=temperature, **drawing)
    lm = load(model, device, dtype)
    if num_beams > 1:
        _search(lm, prompt, {"num_beams": num_beams, "length_penalty": length_penalty, **limits})
    else:
        chosen = 0.8 if temperature is None else temperature
        _draw(lm, prompt, {**drawing, "stop": stop or [], "temperature": chosen, "seed": seed, **limits})


def _draw(lm: "LanguageModel", prompt: str, settings: Mapping[str, Any]) -> None:
    """Print an answer as it comes."""

    def show(row: int, piece: str) -> None:
        print(printable(piece), end="", flush=True)

    answer = lm.generations([prompt], stream=show, **settings)[0]
    print(flush=True)
    print(
        f"{len(answer.ids)} tokens, {answer.tokens_per_second:,.1f} tokens/s, seed {settings['seed']}, "
        f"ended by {_WHY[answer.finish_reason]}",
        file=sys.stderr,
    )


def _search(lm: "LanguageModel", prompt: str, settings: Mapping[str, Any]) -> None:
    """Print the best answer of a beam search."""
    found = lm.search([prompt], **settings)[0][0]
    print(printable(found.text), flush=True)
    one = found.hypothesis
    print(
        f"{len(one.ids)} tokens, {settings['num_beams']} beams, log probability {one.log_probability:.3f}, "
        f"score {one.score:.3f}, ended by {_WHY[one.finish_reason]}",
        file=sys.stderr,
    )
