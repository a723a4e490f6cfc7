"""What comes next? Decoder, encoder and recurrence over items, beside popularity, item-kNN and Markov.

    .venv/bin/python benchmarks/next_item.py --output benchmarks/next_item.json

Each recipe is trained with each seed and scored on the last item of every user among all items: NDCG@10, hits, MRR, and
the hits of items that no history has that was learned from, by their texts. The simple methods are scored on the same
users in the same run; they have no seed. Of items never seen a method without their texts gives all the same score, so
that the share of ten among all items is what drawing by lot would reach. The record is written after every run;
``--beside`` keeps the runs of an earlier one.
"""

import statistics
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from _record import ROOT, Record, add_recipes, parsed, parser, runs_beside

import orrery

RECIPES = ("next-item-shop", "next-item-shop-masked", "next-item-shop-gru", "next-item-calls")
SMALL = {"training": {"steps": 50}, "evaluation": {"every": 50}, "checkpoints": {"every": 50}}
MAIN = "NDCG@10"


def measured(recipes: Sequence[str], seeds: Sequence[int], *, small: bool) -> Iterator[dict[str, Any]]:
    """Yield what each recipe reaches with each seed, and what the simple methods reach there."""
    with tempfile.TemporaryDirectory() as place:
        for name in recipes:
            for seed in seeds:
                began, worked = perf_counter(), process_time()
                changed = {"seed": seed, **(SMALL if small else {})}
                done = orrery.finetune(
                    str(ROOT / "recipes" / f"{name}.yaml"), recipe=changed, output=Path(place) / name, overwrite=True,
                    quiet=True,
                )  # fmt: skip
                found = done.findings[0]
                run = {
                    "recipe": name,
                    "seed": seed,
                    "seconds": perf_counter() - began,
                    "processor_seconds": process_time() - worked,
                    "examples": found.examples,
                    "scores": {score.name: score.score for score in found.scores},
                    "signatures": {score.name: score.signature for score in found.scores},
                    "simple": simple(found),
                }
                print(f"{name}, seed {seed}: {run['scores'][MAIN]:.4f} in {run['seconds']:.0f} s", flush=True)
                yield run


def simple(found: Any) -> dict[str, dict[str, float]]:
    """Return the scores of each simple method."""
    by_name: dict[str, dict[str, float]] = {}
    for name, score in (*found.floors, *found.others):
        by_name.setdefault(name, {})[score.name] = score.score
    return by_name


def told(runs: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the comparison: of each recipe the means over its seeds beside the simple methods."""
    for recipe in dict.fromkeys(run["recipe"] for run in runs):
        own = [run for run in runs if run["recipe"] == recipe]
        yield f"{recipe}: {own[0]['examples']}, {len(own)} seeds"
        for name in own[0]["scores"]:
            values = [run["scores"][name] for run in own]
            beside = [f"{method} {scores[name]:.4f}" for method, scores in own[0]["simple"].items() if name in scores]
            told = f"{statistics.mean(values):.4f} ({min(values):.4f} to {max(values):.4f})"
            yield f"  {name} {told}; {'; '.join(beside)}"


def main() -> None:
    """Measure, print, and keep."""
    made = parser(__doc__)
    add_recipes(made, RECIPES)
    options = parsed(made, {"seeds": [1], "recipes": ["next-item-calls"]})
    record, runs = Record(options), runs_beside(options)
    for run in measured(options.recipes, options.seeds, small=options.small):
        runs.append(run)
        record.write({"runs": runs})
    print("\n".join(told(runs)))


if __name__ == "__main__":
    main()
