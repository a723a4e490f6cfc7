"""``orrery train`` for a recipe with ``kind: word2vec``: text in, word vectors out."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from orrery.cli.train.asked import TrainRequest
from orrery.errors import UsageError
from orrery.recipes.read import as_yaml, load_as, read_yaml, words_of
from orrery.training.processes import processes

if TYPE_CHECKING:
    from orrery.recipes.word_vectors import WordVectorRecipe


def makes_word_vectors(config: Path) -> bool:
    """Return whether a recipe is one of word vectors."""
    return bool(read_yaml(config).get("kind") == "word2vec")


def train(request: TrainRequest) -> int:
    """Carry out what the flags of ``orrery train`` ask of a recipe of word vectors."""
    from orrery.recipes.word_vectors import WordVectorRecipe

    if request.resume:
        message = "word vectors have no checkpoints to continue from: a training takes minutes"
        raise UsageError(message, "start it again, with --overwrite if its folder is there")
    if processes() > 1:
        raise UsageError("word vectors are trained in one process, of several threads", "start it without torchrun")
    recipe = load_as(WordVectorRecipe, request.config, request.overrides, os.environ)
    folder = request.folder(recipe.name)
    if request.print_config:
        print(as_yaml(recipe), end="")
    elif request.dry_run:
        print(plan(recipe, folder))
    else:
        run(recipe, folder, overwrite=request.overwrite, config=request.config)
    return 0


def run(recipe: "WordVectorRecipe", folder: Path, *, overwrite: bool, config: Path) -> None:
    """Train into the folder, and say where the vectors lie."""
    from orrery.runs.conclusion import conclusion
    from orrery.runs.word_vectors import train_word_vectors
    from orrery.training.folder import open_run_folder
    from orrery.training.progress import find_reporter

    reporter = find_reporter()
    with open_run_folder(folder, overwrite=overwrite, inputs=[config, *words_of(recipe)]) as opened:
        try:
            train_word_vectors(recipe, opened, reporter)
            for line in (
                *conclusion(recipe, opened.records()),
                f"orrery neighbours {folder} WORD ... uses the vectors",
            ):
                reporter.line(line)
        finally:
            reporter.close()


def plan(recipe: "WordVectorRecipe", folder: Path) -> str:
    """Return what a run would do, line by line: words, tables, memory and folder."""
    from orrery.models.word2vec.vocabulary import Vocabulary
    from orrery.reports.status import waiting
    from orrery.runs.word_vectors import sentences_of

    with waiting() as line:
        line.now(f"counting the words of {recipe.data.train}")
        vocabulary = Vocabulary.count(sentences_of(recipe), recipe.words.min_count)
    different, epochs = len(vocabulary.words), recipe.training.epochs
    rows = (
        ("text", f"{vocabulary.total:,} words, {epochs} epochs, {vocabulary.total * epochs:,} words"),
        ("vocabulary", f"{different:,} words seen at least {recipe.words.min_count} times"),
        ("parameters", f"{2 * different * recipe.model.width:,} in two tables"),
        ("memory", f"{8 * different * recipe.model.width:,} bytes of tables, about 110 million of the compiled pass"),
        ("rate", f"{recipe.rate:g} falling to {min(recipe.training.final_rate, recipe.rate):g}"),
        ("folder", str(folder)),
    )
    return "\n".join(f"{name:<14}{value}" for name, value in rows)
