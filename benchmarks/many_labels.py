"""Thousands of labels: X-BERT beside popularity, TF-IDF kNN, one-versus-rest, XR-Linear, and its parts alone.

    .venv/bin/python benchmarks/many_labels.py --output benchmarks/many_labels.json

Each recipe is trained with each seed; all methods rank the same texts held back, and search ten clusters. XR-Linear is
there over both trees, of the sums of texts (PIFA) and of the names of labels, learned from the training texts alone,
and, where the recipe learns from the names of labels too, also from these. "words alone" is X-BERT without the encoder:
the ranker and the clusters by words; "encoder alone" has the encoder's clusters, and its vector for the ranker. "seeds
together" is the mean score of the seeds so far, each of which reads its clusters. The simple methods have no seed. The
record is written after every training; ``--beside`` keeps the runs of an earlier one, and ``--seeds`` without a number
adds one-versus-rest to them.
"""

import json
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import torch
from _record import ROOT, Record, add_recipes, parsed, parser, runs_beside

import orrery
from orrery.data.many_labels.features import SparseRows, sparse_rows
from orrery.data.sources.many_labels import ManyLabelsSource
from orrery.recipes.read import load_recipe
from orrery.tasks.many_labels import CLUSTERS
from orrery.tasks.xbert.baselines import neighbours, one_versus_rest, popular
from orrery.tasks.xbert.ensemble import together
from orrery.tasks.xbert.finishing import TAKEN, beside
from orrery.tasks.xbert.ranker import Ranking, fitted, grouped
from orrery.tasks.xbert.reading import Matched, matched
from orrery.tasks.xbert.scoring import FIRST, Judge, ranked_by_model
from orrery.tasks.xbert.words import clusters_by_words
from orrery.tasks.xbert.xr_linear import tree_of_linear

RECIPES = ("many-labels-orders", "many-labels-docstrings")
SMALL = {
    "tokenizer": {"vocabulary": 1000},
    "training": {"steps": 50, "schedule": {"warmup": 5}}, "evaluation": {"every": 50}, "checkpoints": {"every": 50},
    "data": {"train": "docstring-names/val", "val": None, "split": {"every": 10, "by": "text"}},
}  # fmt: skip
OWN, BAR = "X-BERT", "XR-Linear"
OF_EACH = 4
"""Clusters that each of three models searches where they rank together: together fewer labels than a twentieth."""


class Compared:
    """The data of a recipe, and how rankings of the same texts held back are scored."""

    def __init__(self, recipe: str, *, small: bool) -> None:
        self.recipe, self.changes = recipe, dict[str, Any](SMALL if small else {})
        self.path = ROOT / "recipes" / f"{recipe}.yaml"
        flags = [f"--data.{key}={json.dumps(value)}" for key, value in self.changes.get("data", {}).items()]
        self.settings = load_recipe(self.path, flags).data
        self.source = ManyLabelsSource.read(self.settings)
        self.texts, self.judge = [row.text for row in self.source.held_back], Judge(self.source)
        self.seeds: list[list[Ranking]] = []

    def scores(self, rankings: Sequence[Ranking]) -> dict[str, float]:
        """Return every score of rankings by its name."""
        return {score.name: score.score for score in self.judge.scores(rankings)}

    def run(self, seed: int, folder: Path) -> dict[str, Any]:
        """Train with a seed, and return the scores of the model and of its parts."""
        began, worked = perf_counter(), process_time()
        changed = {**self.changes, "seed": seed}
        done = orrery.finetune(str(self.path), recipe=changed, output=folder, overwrite=True, quiet=True)
        seconds, processor = perf_counter() - began, process_time() - worked
        lm, length = done.load(device="cpu"), load_recipe(folder / "config.yaml").batches.length
        own, read = ranked_by_model(lm, self.texts, CLUSTERS)
        few, read_few = ranked_by_model(lm, self.texts, OF_EACH)
        self.seeds.append(few)
        rankings = {OWN: own, **self.parts(lm, length), "seeds together": self.joined()}
        return {
            "recipe": self.recipe,
            "seed": seed,
            "seconds": seconds,
            "processor_seconds": processor,
            "labels": len(self.source.counts),
            "texts": len(self.texts),
            "read": statistics.mean(read),
            "read_together": statistics.mean(read_few) * len(self.seeds),
            "scores": {name: self.scores(each) for name, each in rankings.items()},
        }

    def joined(self) -> list[Ranking]:
        """Return the rankings of all seeds so far together."""
        found = []
        for own in zip(*self.seeds, strict=True):
            answers = [[{"label": label, "score": float(np.exp(score))} for label, score in each] for each in own]
            found.append([(each["label"], each["score"]) for each in together(answers, FIRST)])
        return found

    def parts(self, lm: Any, length: int) -> dict[str, list[Ranking]]:
        """Return the rankings of words without an encoder, and of the encoder without words."""
        source, words = self.source, (self.source.rows, self.source.features.rows(self.texts))
        learned, asked = (matched(lm, list(texts), length) for texts in (source.texts(), self.texts))
        by_words = clusters_by_words(source.rows, source.own, source.cluster_of, 0.0)
        nothing = [sparse_rows([{} for _ in range(len(each))], 0) for each in words]
        return {
            "words alone": self.ranked(
                *map(bare, words), by_words.beside(words[0], learned), by_words.beside(words[1], asked)
            ),
            "encoder alone": self.ranked(beside(nothing[0], learned), beside(nothing[1], asked), learned, asked),
        }

    def ranked(
        self, rows: SparseRows, asked: SparseRows, learned: Sequence[Matched], found: Sequence[Matched]
    ) -> list[Ranking]:
        """Return the rankings of a ranker over some columns, in the clusters that are found likely."""
        taken = [[group for group, _ in each.best(TAKEN)] for each in learned]
        ranker = fitted(rows, self.source.own, grouped(self.source.cluster_of), taken)
        return [ranker.within(asked, n, each.best(CLUSTERS), FIRST) for n, each in enumerate(found)]

    def simple(self) -> dict[str, Any]:
        """Return the scores of the simple methods and their seconds of the processor; one-versus-rest is aside."""
        source, asked = self.source, self.source.features.rows(self.texts)
        found: dict[str, Any] = {}
        for name, rankings in (
            ("popularity", lambda: popular(source.own[: len(source.train)], len(self.texts), FIRST)),
            ("TF-IDF kNN", lambda: neighbours(source.rows, source.own, asked, FIRST)),
            *((name, lambda each=each: self.tree(each)) for name, each in self.trees()),
        ):
            began = process_time()
            scores = self.scores(rankings())
            found[name] = {"processor_seconds": process_time() - began, "scores": scores}
        return found

    def trees(self) -> Iterator[tuple[str, Any]]:
        """Yield what XR-Linear is called and what it learns from: both trees, without and with names as texts."""
        for names in sorted({0, self.settings.names}):
            for vectors, of in (("texts", "texts"), ("names", "names")):
                told = f"{BAR}, tree of {of}" + (", names learned" if names else "")
                yield told, self.settings.model_copy(update={"names": names, "vectors": vectors})

    def tree(self, settings: Any) -> list[Ranking]:
        """Return the rankings of a tree of linear models."""
        source = ManyLabelsSource(self.source.train, self.source.held_back, settings)
        tree = tree_of_linear(bare(source.rows), source.own, grouped(source.cluster_of))
        return tree.rank(bare(source.features.rows(self.texts)), FIRST)

    def rest(self) -> dict[str, Any]:
        """Return the scores of one-versus-rest, which reads every label."""
        source, began = self.source, process_time()
        asked = bare(source.features.rows(self.texts))
        rankings = one_versus_rest(bare(source.rows), source.own, len(source.counts), asked, FIRST)
        return {"processor_seconds": process_time() - began, "scores": self.scores(rankings)}


def bare(rows: SparseRows) -> SparseRows:
    """Return rows with a column of ones behind the words, and nothing else."""
    return rows.beside(torch.zeros(len(rows), 0))


def measured(options: Any, runs: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield all that is known after every training, and after one-versus-rest, which takes minutes."""
    compared = {recipe: Compared(recipe, small=options.small) for recipe in options.recipes}
    simple = {recipe: one.simple() for recipe, one in compared.items()}
    with tempfile.TemporaryDirectory() as place:
        for seed in options.seeds:
            for recipe, one in compared.items():
                runs.append(one.run(seed, Path(place) / recipe))
                found = runs[-1]["scores"][OWN]["precision@1"]
                print(f"{recipe}, seed {seed}: {found:.4f} in {runs[-1]['seconds']:.0f} s", flush=True)
                yield {"runs": runs, "simple": simple}
    for recipe, one in compared.items():
        simple[recipe]["one-versus-rest"] = one.rest()
        yield {"runs": runs, "simple": simple}


def told(found: dict[str, Any]) -> Iterator[str]:
    """Yield precision at 1 and its propensity-scored form of every method."""
    for recipe, methods in found["simple"].items():
        own = [run for run in found["runs"] if run["recipe"] == recipe]
        yield f"{recipe}, {len(own)} seeds"
        named = {name: [each["scores"]] for name, each in methods.items()}
        named |= {name: [run["scores"][name] for run in own] for name in own[0]["scores"]}
        for name, each in named.items():
            values = (f"{key} {statistics.mean(one[key] for one in each):.4f}" for key in ("precision@1", "PSP@1"))
            yield f"  {name}: {', '.join(values)}"


def main() -> None:
    """Measure, print, and keep."""
    made = parser(__doc__)
    add_recipes(made, RECIPES)
    options = parsed(made, {"seeds": [1], "recipes": ["many-labels-docstrings"]})
    record, found, runs = Record(options), dict[str, Any](), runs_beside(options)
    for found in measured(options, runs):
        record.write(found)
    print("\n".join(told(found)))


if __name__ == "__main__":
    main()
