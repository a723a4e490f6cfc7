"""``orrery generate``: continue a text, shown as it comes."""

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from orrery.cli.beam_options import ONE, BeamOptions, given
from orrery.cli.console import printable
from orrery.cli.loading import loading
from orrery.cli.numbers import COUNT, SEED, SHARE
from orrery.cli.places import DRAFT, MODEL
from orrery.cli.writing_options import CHOOSING, FREE, AnswerOptions, SamplingOptions
from orrery.errors import UsageError
from orrery.schema.writing import beams_of, refuse_with_beams

if TYPE_CHECKING:
    from orrery.generation.row import Generation
    from orrery.language_model.model import LanguageModel

_WHY = {
    "end": "the end token",
    "stop": "a stop string",
    "length": "--max-new-tokens",
    "context": "the context is full",
}


def generate(
    model: Annotated[str, MODEL],
    prompt: str,
    /,
    *,
    max_new_tokens: Annotated[int, COUNT] = 64,
    drawing: SamplingOptions = CHOOSING,
    beams: BeamOptions = ONE,
    penalty_alpha: Annotated[float | None, SHARE] = None,
    answer: AnswerOptions = FREE,
    draft: Annotated[str | None, DRAFT] = None,
    truncate: Literal["left"] | None = None,
    seed: Annotated[int, SEED] = 1337,
    device: str = "auto",
    dtype: str = "auto",
    kernel: str | None = None,
) -> None:
    """Continue a text.

    The continuation goes to stdout, what was chosen and the speed to stderr. Control characters of the text are
    shown escaped, so that no model can steer a terminal.

    Args:
        model: A run, a checkpoint, a Hugging Face folder, a GGUF file, or hf:org/name@revision.
        prompt: The text to continue; an empty one stands for the beginning of a text.
        max_new_tokens: The most tokens of the answer.
        drawing: How a token is chosen.
        beams: How answers are searched for.
        penalty_alpha: Contrastive search: the share of likeness to what stands already, among --top-k candidates (4).
        answer: What the answer must be, and where it ends.
        draft: A smaller model of the same vocabulary that guesses tokens ahead, or lookup, which guesses what followed
            the last tokens before; answers keep the model's own distribution and come sooner where guesses hold.
        truncate: left cuts the beginning of a prompt that does not fit the context.
        seed: Of the draws.
        device: auto, cpu or cuda.
        dtype: auto, stored, float32, bfloat16, float16 or float64.
        kernel: How one token after another is computed: auto (compiled where that can be), eager or compiled.
    """
    limits = {"max_new_tokens": max_new_tokens, "truncate": truncate}
    demands, chosen = answer.settings(), drawing.settings(None)
    beams.refuse_without_beams()
    with loading():
        from orrery.language_model.load import load

        if beams.searches:
            drawn = {**chosen, "repetition_penalty": None}
            refuse_with_beams(**drawn, **demands, draft=draft, penalty_alpha=penalty_alpha)
        elif penalty_alpha is not None:
            _refuse_with_contrast(drawing, draft)
        lm = load(model, device, dtype, kernel=kernel)
    if beams.searches:
        _search(lm, prompt, {**given(beams), **limits, "repetition_penalty": chosen["repetition_penalty"]})
    elif penalty_alpha is not None:
        top_k = 4 if chosen["top_k"] is None else chosen["top_k"]
        _contrast(lm, prompt, {"top_k": top_k, "penalty_alpha": penalty_alpha, **demands, **limits})
    elif draft is not None:
        guess: LanguageModel | Literal["lookup"] = "lookup" if draft == "lookup" else load(draft, device, dtype)
        _speculate(lm, prompt, guess, {**drawing.settings(0.8), **demands, "seed": seed, **limits})
    else:
        _draw(lm, prompt, {**drawing.settings(0.8), **demands, "seed": seed, **limits})


def _draw(lm: "LanguageModel", prompt: str, settings: Mapping[str, Any]) -> None:
    """Print an answer as it comes."""
    answer = lm.generations([prompt], stream=lambda row, piece: _show(piece), **settings)[0]
    print(flush=True)
    print(_summary(answer, settings), file=sys.stderr)


def _speculate(
    lm: "LanguageModel", prompt: str, draft: "LanguageModel | Literal['lookup']", settings: Mapping[str, Any]
) -> None:
    """Print an answer as it comes, and what the guesses were worth."""
    speculated = lm.speculate(prompt, draft, stream=_show, **settings)
    print(flush=True)
    print(
        f"{_summary(speculated.answer, settings)}; {speculated.steps} steps of the model, "
        f"{speculated.accepted} of {speculated.proposed} guesses held",
        file=sys.stderr,
    )


def _show(piece: str) -> None:
    print(printable(piece), end="", flush=True)


def _summary(answer: "Generation", settings: Mapping[str, Any]) -> str:
    return (
        f"{len(answer.ids)} tokens, {answer.tokens_per_second:,.1f} tokens/s, seed {settings['seed']}, "
        f"ended by {_WHY[answer.finish_reason]}"
    )


def _refuse_with_contrast(drawing: SamplingOptions, draft: str | None) -> None:
    settings = {**drawing.settings(None), "top_k": None, "draft": draft}
    named = [f"--{name.replace('_', '-')}" for name, value in settings.items() if value is not None]
    if named:
        raise UsageError(f"{', '.join(named)} cannot be used with --penalty-alpha", "contrastive search draws nothing")


def _contrast(lm: "LanguageModel", prompt: str, settings: Mapping[str, Any]) -> None:
    """Print an answer of contrastive search as it comes."""
    answer = lm.contrastive_search(prompt, stream=_show, **settings)
    print(flush=True)
    print(
        f"{len(answer.ids)} tokens, {answer.tokens_per_second:,.1f} tokens/s, alpha {settings['penalty_alpha']:g}, "
        f"{settings['top_k']} candidates, ended by {_WHY[answer.finish_reason]}",
        file=sys.stderr,
    )


def _search(lm: "LanguageModel", prompt: str, settings: Mapping[str, Any]) -> None:
    """Print the best answers of a beam search, a line each."""
    for answer in lm.search([prompt], **settings)[0]:
        print(printable(answer.text), flush=True)
        one = answer.hypothesis
        print(
            f"{len(one.ids)} tokens, {beams_of(settings)} beams, log probability {one.log_probability:.3f}, "
            f"score {one.score:.3f}, ended by {_WHY[one.finish_reason]}",
            file=sys.stderr,
        )
