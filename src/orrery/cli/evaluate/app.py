"""``orrery evaluate``: the table of tasks; each has a module of its own and its own settings."""

from collections.abc import Sequence
from importlib import import_module
from typing import Annotated

import cyclopts
from cyclopts import Parameter

from orrery.errors import UsageError

ALONE = {"text": "orrery.cli.evaluate.text:text"}
"""Tasks that measure files, not models."""
TASKS = {
    "translation": "orrery.cli.evaluate.translation:translation",
    "alignment": "orrery.cli.evaluate.alignment:alignment",
    "perplexity": "orrery.cli.evaluate.perplexity:perplexity",
    "word-vectors": "orrery.cli.evaluate.word_vectors:word_vectors",
}


def evaluate(
    model: str,
    task: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    /,
    *settings: Annotated[str, Parameter(allow_leading_hyphen=True)],
) -> int:
    """Measure a model on a task, or texts against their references.

    translation: BLEU with its signature, chrF, sentences a second, BLEU by the length of the source.
    --source FILE --target FILE, or --set NAME (multi30k-en-de/test_2016_flickr); --num-beams, --length-penalty,
    --max-new-tokens, --batch-size; --output FILE for the translations, --overwrite to replace it.

    alignment: how attention runs through the sources from word to word: forward, staying, back.
    --source FILE --target FILE, or --set NAME.

    perplexity: nats a token, perplexity and bits a byte of a text under a decoder.
    --file FILE or --set NAME (tiny-shakespeare); --length, --batch-size.

    All three: --device, --dtype.

    word-vectors: Google's analogies by section, and the rank correlation with WordSim-353.

    Without a model, `orrery evaluate text`: BLEU, chrF, TER and ROUGE of a file of texts.
    --hypotheses FILE --references FILE [FILE ...]; --metrics, --tokenize, --lowercase, --word-order, --stem, --column.

    Args:
        model: A run, a checkpoint, a Hugging Face folder, or hf:org/name@revision; or `text`, and no task.
        task: translation, alignment, perplexity or word-vectors.
        settings: Those of the task.
    """
    if model in ALONE and task not in TASKS:
        return carry_out(model, ALONE[model], [*filter(None, [task]), *settings])
    if task is None or task not in TASKS:
        hint = f"known: {', '.join(TASKS)}; without a model: {', '.join(ALONE)}"
        raise UsageError("no task" if task is None else f"unknown task {task!r}", hint)
    return carry_out(f"MODEL {task}", TASKS[task], [model, *settings])


def carry_out(name: str, target: str, words: Sequence[str]) -> int:
    """Parse the words by the settings of one task, given as ``module:function``, and run it."""
    module, _, function = target.partition(":")
    app = cyclopts.App(
        name=f"orrery evaluate {name}",
        help_format="plaintext",
        version_flags=(),
        suppress_keyboard_interrupt=False,
        result_action="return_int_as_exit_code_else_zero",
        exit_on_error=False,
        print_error=False,
    )
    app.default(getattr(import_module(module), function))
    return int(app(list(words)))
