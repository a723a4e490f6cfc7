"""Word vectors from a recipe: read, count, number, train, and write them into a run folder."""

import math
import time
from collections.abc import Callable
from functools import partial
from tempfile import TemporaryFile
from typing import Any

from orrery.checkpoints.disk import machine_errors
from orrery.checkpoints.outputs import OutputFile
from orrery.data.corpora import read_corpus
from orrery.errors import RunError
from orrery.models.word2vec.draws import cbow, skip_gram
from orrery.models.word2vec.files import VECTORS, write_binary
from orrery.models.word2vec.objectives import FullSoftmax, HierarchicalSoftmax, NegativeSampling, WordLoss
from orrery.models.word2vec.parts import Progress, Settings, Trained
from orrery.models.word2vec.runners import hogwild, in_order
from orrery.models.word2vec.sentences import CutText, Sentences, with_phrases
from orrery.models.word2vec.train import compile_ahead, train
from orrery.models.word2vec.vocabulary import StoredCorpus, Vocabulary
from orrery.recipes.read import as_yaml
from orrery.recipes.word_vectors import HierarchicalSettings, NegativeSettings, WordObjective, WordVectorRecipe
from orrery.training.folder import RunFolder
from orrery.training.progress import Reporter

ARCHITECTURES = {"skip-gram": skip_gram, "cbow": cbow}


def train_word_vectors(recipe: WordVectorRecipe, folder: RunFolder, reporter: Reporter) -> Trained:
    """Train what the recipe says; leave ``config.yaml``, ``metrics.jsonl`` and ``final/vectors.bin`` in the folder.

    Raises:
        DataError: the text is empty, too short or has too few different words.
        MachineError: the disk refuses.
    """
    architecture, objective = ARCHITECTURES[recipe.model.kind], objective_of(recipe.objective)
    reporter.line("preparing the compiled pass (the first time takes a while)")
    compile_ahead(architecture, objective)
    reporter.line(f"reading {recipe.data.train}")
    sentences = sentences_of(recipe)
    vocabulary = Vocabulary.count(sentences, recipe.words.min_count)
    folder.describe(as_yaml(recipe), {"words": vocabulary.total, "vocabulary": len(vocabulary.words)})
    # In the run's own folder: the system's folder for temporary files may lie in memory.
    with machine_errors(folder.path), TemporaryFile(dir=folder.path) as file:
        corpus = StoredCorpus(file, sentences, vocabulary)
        reporter.line(f"{corpus.words:,} words, {len(vocabulary.words):,} of them different")
        run = hogwild if recipe.training.hogwild else in_order
        report = recorder(folder, reporter)
        settings = settings_of(recipe)
        trained = train(corpus, vocabulary, architecture, objective(vocabulary), settings, run, report)
    with machine_errors(folder.final):
        folder.final.mkdir(exist_ok=True)
        with OutputFile(folder.final / VECTORS, overwrite=True).aside() as fresh:
            write_binary(trained.keep(), fresh)
    folder.take_over()
    return trained


def sentences_of(recipe: WordVectorRecipe) -> Sentences:
    """Return the sentences of the recipe's text with its phrases joined, to be gone through several times."""
    data = recipe.data
    read = partial(read_corpus, data.train, column=data.column, invalid=data.invalid, skip_bad=data.skip_bad)
    cut = CutText(lambda: (document.text for document in read()), data.sentences, data.words, data.lowercase)
    return with_phrases(cut, recipe.words.phrases, recipe.words.threshold)


def objective_of(settings: WordObjective) -> Callable[[Vocabulary], WordLoss]:
    """Return how the recipe's objective is made for a vocabulary."""
    if isinstance(settings, NegativeSettings):
        return partial(NegativeSampling, negatives=settings.negatives, power=settings.power)
    return HierarchicalSoftmax if isinstance(settings, HierarchicalSettings) else FullSoftmax


def settings_of(recipe: WordVectorRecipe) -> Settings:
    """Return the numbers of the training."""
    return Settings(
        width=recipe.model.width,
        window=recipe.model.window,
        epochs=recipe.training.epochs,
        rate=recipe.rate,
        final_rate=min(recipe.training.final_rate, recipe.rate),
        sample=recipe.words.sample,
        workers=recipe.training.workers,
        seed=recipe.seed,
    )


def recorder(folder: RunFolder, reporter: Reporter) -> Callable[[Progress], None]:
    """Return what shows each chunk and records each epoch: loss in it and after it, words so far, words a second."""
    begin = time.perf_counter()

    def report(progress: Progress) -> None:
        record: dict[str, Any] | None = None
        if progress.measured is not None:
            if not (math.isfinite(progress.loss) and math.isfinite(progress.measured)):
                raise RunError(f"epoch {progress.epoch + 1}: the loss is no finite number", "lower training.rate")
            record = {
                "step": progress.epoch + 1,
                "words": progress.words,
                "train/loss": progress.loss,
                "loss": progress.measured,
                "tokens_per_second": progress.words / (time.perf_counter() - begin),
            }
            folder.record(record)
        reporter.progress(progress.words, progress.of, record)

    return report
