"""A training of a study: begun in a folder of its own or gone on with there, on a text that was read once."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from orrery.data.sources.text import TextSource
from orrery.evaluation.floors import Ids, model_bits_per_byte
from orrery.recipes.config import Recipe
from orrery.recipes.read import check_recipe, load_recipe, plain, set_dotted
from orrery.runs.assemble import assemble
from orrery.runs.building import Assembled
from orrery.runs.final import writer
from orrery.training.folder import CONFIG, RunFolder, open_run_folder
from orrery.training.loop import Outcome, Parts, train
from orrery.training.precision import find_device
from orrery.training.progress import Reporter, Silent
from orrery.training.signals import pass_on

Watch = Callable[[], Reporter]


@dataclass(frozen=True)
class Training:
    """A recipe, what it is made of, and the open folder of its run."""

    recipe: Recipe
    assembled: Assembled
    folder: RunFolder

    @property
    def parameters(self) -> int:
        """The parameters of the model."""
        return sum(parameter.numel() for parameter in self.assembled.parts.model.parameters())

    def run(self, watch: Watch) -> Outcome:
        """Train to the end, and write the final model."""
        return self._run(replace(self.assembled.parts, finish=writer(self.recipe, self.assembled)), watch)

    def rehearse(self, watch: Watch) -> Outcome:
        """Train for what is thrown away: nothing held back is measured, no model written, no observer told."""
        return self._run(replace(self.assembled.parts, validation=None, observers=()), watch)

    def _run(self, parts: Parts, watch: Watch) -> Outcome:
        reporter = watch()
        try:
            return train(parts, self.recipe, self.folder, reporter=reporter)
        finally:
            reporter.close()

    def bits_per_byte(self, held_back: Sequence[Ids], size: int) -> float:
        """Return what the trained model makes of documents, of so many bytes in all."""
        model: Any = self.assembled.parts.model.eval()
        device = find_device(self.recipe.training.device)
        return model_bits_per_byte(model, held_back, self.recipe.batches.length, size, device)


@contextmanager
def training_in(recipe: Recipe, source: TextSource, place: Path) -> Iterator[Training]:
    """Open the training in a folder, with the recipe that it was begun with where it was begun before.

    Its tokenizer is where it lies now: the folder of the study may have been moved.
    """
    with open_run_folder(place, resume=True) as opened:
        file = place / CONFIG
        as_begun = load_recipe(file) if file.exists() else recipe
        assembled = assemble(as_begun.model_copy(update={"tokenizer": recipe.tokenizer}), source)
        yield Training(as_begun, assembled, opened)


def speed(recipe: Recipe, source: TextSource, steps: int) -> float:
    """Return the tokens per second of a short run of the training loop itself, without the first two steps."""
    trial = changed(recipe, training__steps=steps, training__schedule={"kind": "constant"}, logging__every=1)
    with TemporaryDirectory() as place, training_in(trial, source, Path(place) / "trial") as training:
        pass_on(training.rehearse(Silent).signal)
        steady = [1 / record["tokens_per_second"] for record in training.folder.records()[2:]]
    return len(steady) / sum(steady)


def changed(recipe: Recipe, **dotted: Any) -> Recipe:
    """Return a recipe with some keys changed; a dot in a key is written ``__``."""
    values = plain(recipe)
    for key, value in dotted.items():
        set_dotted(values, key.replace("__", "."), value)
    return check_recipe(values, recipe.name)
