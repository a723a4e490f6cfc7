"""Train word vectors: chunks of text, each drawn from its own random stream, stepped in order or as they come."""

import logging
from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from orrery.errors import DataError
from orrery.kernels.compiled import HAVE_NUMBA, release_compiler
from orrery.models.word2vec.draws import stream_key, subsample
from orrery.models.word2vec.objectives import WordLoss
from orrery.models.word2vec.parts import Architecture, Chunk, Draw, Progress, Runner, Settings, Step, Trained, Work
from orrery.models.word2vec.runners import counted, in_order
from orrery.models.word2vec.vocabulary import TrainingText, Vocabulary, WordCorpus
from orrery.settings import install

logger = logging.getLogger(__name__)

LINE = 16
"""Numbers in a cache line of 64 bytes: rows are padded to whole lines with zeros, which stay zero."""

MEASURED = 200_000
"""The most words on which the loss of an epoch is measured."""


def compile_ahead(architecture: Architecture, objective: Callable[[Vocabulary], WordLoss]) -> None:
    """Train on a text of two words, so that all is compiled, and give the compiler's memory back.

    Called before a text is read, it keeps the compiler and the tables from being in memory together.
    """
    release_compiler()  # what its import touched, the loading of compiled code does not need
    words = ["a", "b"] * 4
    vocabulary = Vocabulary.count([words], 1)
    train(
        WordCorpus.of([words], vocabulary),
        vocabulary,
        architecture,
        objective(vocabulary),
        Settings(epochs=1, sample=0.0),
    )
    release_compiler()


def train(
    corpus: TrainingText,
    vocabulary: Vocabulary,
    architecture: Architecture,
    objective: WordLoss,
    settings: Settings,
    run: Runner = in_order,
    report: Callable[[Progress], None] = lambda progress: None,
) -> Trained:
    """Return the vectors that ``settings.epochs`` passes over the corpus leave.

    The learning rate falls linearly with the words seen, once a chunk. `report` is called after each chunk.

    Raises:
        DataError: the window is larger than the text, or sub-sampling left no two neighbours.
    """
    words = corpus.words
    if settings.window >= words:
        raise DataError(
            f"a window of {settings.window} words to each side is larger than the text of {words} words",
            "take a smaller window, or more text",
        )
    vectors, weights = _tables(len(vocabulary.words), objective.rows, settings)
    rates = vocabulary.keep_rates(settings.sample)

    def draw(chunk: Chunk) -> Work:
        keep, window, noise = (stream_key(*chunk.numbers, purpose) for purpose in range(3))
        kept, bounds = subsample(chunk.corpus.tokens, chunk.corpus.starts, rates, keep)
        contexts = architecture(kept, bounds, settings.window, window)
        return Work(contexts, objective.targets(contexts.words, noise), chunk.rate)

    step = _step(objective, vectors, weights)
    losses, measured = [], []
    for epoch in range(settings.epochs):
        total, examples, seen = 0.0, 0, epoch * words
        for count, loss in run(_chunks(corpus, epoch, settings), draw, step, settings.workers):
            total, examples = total + loss, examples + count
            seen = min(seen + settings.chunk, (epoch + 1) * words)
            report(Progress(epoch, seen, settings.epochs * words, total / max(examples, 1)))
        if not examples:
            raise DataError(
                f"epoch {epoch + 1} has no two neighbouring words",
                "give sentences of several words, or a larger `sample`",
            )
        losses.append(total / examples)
        measured.append(_measure(corpus, settings, draw, step))
        report(Progress(epoch, seen, settings.epochs * words, losses[-1], measured[-1]))
    width = settings.width
    return Trained(vocabulary, vectors[:, :width], weights[:, :width], tuple(losses), tuple(measured))


def _measure(corpus: TrainingText, settings: Settings, draw: Draw, step: Step) -> float:
    """Return the mean loss at rate 0 of one chunk in ten, 200,000 words at most, with draws that no epoch trains on."""
    every = max(10, corpus.words // MEASURED)
    total, examples = 0.0, 0
    for chunk in islice(_chunks(corpus, settings.epochs, settings), 0, None, every):
        count, loss = counted(draw(chunk._replace(rate=0.0)), step)
        total, examples = total + loss, examples + count
    return total / max(examples, 1)


def _chunks(corpus: TrainingText, epoch: int, settings: Settings) -> Iterator[Chunk]:
    seen, words = epoch * corpus.words, settings.epochs * corpus.words
    for number, text in enumerate(corpus.chunks(settings.chunk)):
        rate = settings.rate + (settings.final_rate - settings.rate) * seen / words
        yield Chunk(text, (settings.seed, epoch, number), rate)
        seen += len(text.tokens)


def _tables(words: int, rows: int, settings: Settings) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the input table, uniform in ±1/(2 width), and the output table of zeros, as the C program does."""
    vectors, weights = _zeros(words, settings.width), _zeros(rows, settings.width)
    rng = np.random.default_rng(settings.seed)
    for row in vectors:
        row[: settings.width] = (rng.random(settings.width, np.float32) - 0.5) / settings.width
    return vectors, weights


def _zeros(rows: int, width: int) -> NDArray[np.float32]:
    """Return zeros whose rows begin and end with a cache line: a tenth more words a second."""
    padded = -(-width // LINE) * LINE
    memory = np.zeros(rows * padded + LINE, np.float32)
    first = -memory.ctypes.data // memory.itemsize % LINE
    return memory[first : first + rows * padded].reshape(rows, padded)


def _step(objective: WordLoss, vectors: NDArray[np.float32], weights: NDArray[np.float32]) -> Step:
    """Return the compiled pass, or the plain definition where it is missing (a thousand times slower)."""
    if HAVE_NUMBA and objective.labelled:
        from orrery.kernels.word2vec import descend

        def step(work: Work) -> float:
            (inputs, input_ends, _), (rows, ends, labels) = work.contexts, work.targets
            return float(descend(vectors, weights, inputs, input_ends, rows, ends, labels, work.rate))

        return step
    if objective.labelled:
        logger.warning("numba is missing: the plain definition is about a thousand times slower; %s", install("fast"))
    from orrery.models.word2vec.plain import descend_by_definition

    return lambda work: descend_by_definition(objective, vectors, weights, work.contexts, work.targets, work.rate)
