"""``orrery evaluate``: the table of tasks; each has a module of its own and its own settings."""

from importlib import import_module
from typing import Annotated

import cyclopts
from cyclopts import Parameter

from orrery.errors import UsageError

TASKS = {
    "translation": "orrery.cli.evaluate_translation:translation",
    "alignment": "orrery.cli.evaluate_alignment:alignment",
    "perplexity": "orrery.cli.evaluate_perplexity:perplexity",
    "word-vectors": "orrery.cli.evaluate_word_vectors:word_vectors",
}


def evaluate(model: str, task: str, /, *settings: Annotated[str, Parameter(allow_leading_hyphen=True)]) -> int:
    """Measure a model on a task.

    translation: BLEU with its signature, chrF, sentences a second, BLEU by the length of the source.
    --source FILE --target FILE, or --set NAME (multi30k-en-de/test_2016_flickr); --num-beams, --length-penalty,
    --max-new-tokens, --batch-size; --output FILE for the translations, --overwrite to replace it.

    alignment: how attention runs through the sources from word to word: forward, staying, back.
    --source FILE --target FILE, or --set NAME.

    perplexity: nats a token, perplexity and bits a byte of a text under a decoder.
    --file FILE or --set NAME (tiny-shakespeare); --length, --batch-size.

    All three: --device, --dtype.

    word-vectors: Google's analogies by section, and the rank correlation with WordSim-353.

    Args:
        model: A run, a checkpoint, a Hugging Face folder, or hf:org/name@revision.
        task: translation, alignment, perplexity or word-vectors.
        settings: Those of the task.
    """
    if task not in TASKS:
        raise UsageError(f"unknown task {task!r}", f"known: {', '.join(TASKS)}")
    module, _, function = TASKS[task].partition(":")
    app = cyclopts.App(
        name=f"orrery evaluate MODEL {task}",
        help_format="plaintext",
        version_flags=(),
        suppress_keyboard_interrupt=False,
        result_action="return_int_as_exit_code_else_zero",
        exit_on_error=False,
        print_error=False,
    )
    app.default(getattr(import_module(module), function))
    return int(app([model, *settings]))
