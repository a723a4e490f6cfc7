"""``orrery chat``: talk with a model in the terminal, one line a turn."""

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from orrery.cli.chat_commands import SHORT, obey
from orrery.cli.console import printable, report
from orrery.cli.loading import loading
from orrery.cli.numbers import COUNT, SEED
from orrery.cli.places import MODEL, TEMPLATE
from orrery.cli.stopping import dealt_with
from orrery.cli.writing_options import CHOOSING, FREE, AnswerOptions, SamplingOptions
from orrery.errors import DataError, OrreryError

if TYPE_CHECKING:
    from orrery.generation.conversation import Conversation
    from orrery.generation.row import Generation
    from orrery.text.chat.messages import Message

AGAIN = 1000
"""What another answer to the same question adds to the seed, so that its draws are others."""


def chat(
    model: Annotated[str, MODEL],
    /,
    *,
    template: Annotated[str | None, TEMPLATE] = None,
    system: str | None = None,
    max_new_tokens: Annotated[int, COUNT] = 256,
    drawing: SamplingOptions = CHOOSING,
    answer: AnswerOptions = FREE,
    seed: Annotated[int, SEED] = 1337,
    device: str = "auto",
    dtype: str = "auto",
    kernel: str | None = None,
) -> None:
    """Talk with a model: each line of the input is a turn, each answer ends at the template's end-of-turn token.

    Answers go to stdout, everything else to stderr, so that questions can be piped in. At a terminal Ctrl-C stops
    an answer, not the program. What you write is ordinary text: no line of it can become a control token.

    Args:
        model: A run, a checkpoint, a Hugging Face folder, a GGUF file, or hf:org/name@revision.
        template: chatml, gemma, llama-2, llama-3, mistral, zephyr, or a Jinja file; where not given, the model's own.
        system: What the model is told before the first turn.
        max_new_tokens: The most tokens of an answer.
        drawing: How a token is chosen.
        answer: What each answer must be, and where it ends.
        seed: Of the draws; the number of the turn is added, and a thousand for each /again.
        device: auto, cpu or cuda.
        dtype: auto, stored, float32, bfloat16, float16 or float64.
        kernel: How one token after another is computed: auto (compiled where that can be), eager or compiled.
    """
    with loading():
        from orrery.generation.conversation import Conversation
        from orrery.language_model.load import load

        lm = load(model, device, dtype, kernel=kernel)
    form = lm.chat_template(template)
    settings = {"max_new_tokens": max_new_tokens, **drawing.settings(0.8), **answer.settings()}

    def reply(messages: "Sequence[Message]", show: "Callable[[str], None]") -> "Generation":
        turn = sum(message["role"] == "assistant" for message in messages)
        drawn = (seed + turn + AGAIN * conversation.attempt) % 2**63
        return lm.reply(messages, template=form, seed=drawn, stream=show, **settings)

    conversation = Conversation(reply, system)
    _talk(conversation, settings)


def _talk(talk: "Conversation", settings: dict[str, Any]) -> None:
    """Answer line by line; a person may try again after an error, a script is told by the exit code."""
    person = sys.stdin.isatty()
    if person:
        print(SHORT, file=sys.stderr)
    for line in _lines(person):
        try:
            if line == "/quit":
                return
            answered = obey(talk, settings, line) if line.startswith("/") else partial(talk.ask, line)
            if answered is not None:
                _answer(answered, person)
        except OrreryError as error:
            if not person:
                raise
            report(error)


def _lines(person: bool) -> Iterator[str]:
    """Yield the lines that hold something."""
    while True:
        if person:
            print("> ", end="", file=sys.stderr, flush=True)
        try:
            line = sys.stdin.readline()
        except KeyboardInterrupt:
            if not person:
                raise
            dealt_with()
            print(f"\n{SHORT}", file=sys.stderr)
            continue
        except UnicodeDecodeError as error:
            raise DataError(
                f"the input is not {sys.stdin.encoding.upper()}: {error.reason}", "convert it to UTF-8"
            ) from error
        if not line:
            return
        if line.strip():
            yield line.rstrip("\r\n")


def _answer(answered: "Callable[[Callable[[str], None]], Generation | None]", person: bool) -> None:
    answer = answered(lambda piece: print(printable(piece), end="", flush=True))
    print(flush=True)
    if answer is None:
        if not person:
            raise KeyboardInterrupt
        dealt_with()
        print("(stopped)", file=sys.stderr)
    elif answer.finish_reason == "length":
        print("(cut off by --max-new-tokens)", file=sys.stderr)
    elif answer.finish_reason == "context":
        print("(the context is full: /reset begins again)", file=sys.stderr)
