"""One of several processes that share the weights of whole runs: ``python sharded_runs.py FOLDER fsdp=2 [only=WORDS]``.

The first prints, for every objective and every kind of model, how far losses, measures, weights and the optimizer are
from those of one process after some steps: loop, clipping, optimizer, evaluation, sample, checkpoint, final model.
"""

import copy
import json
import re
import shutil
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from orrery.checkpoints.manifest import file_sha256
from orrery.checkpoints.store import CheckpointStore, read_checkpoint
from orrery.checkpoints.tensors import read_tensors, write_tensors
from orrery.data.batches.rollouts import HeldBackAnswers
from orrery.errors import UsageError
from orrery.families import load_family, spec_of
from orrery.objectives import OBJECTIVES, Objective
from orrery.objectives._contracts import own_modules
from orrery.objectives.causal import CausalLanguageModel
from orrery.recipes.config import Recipe
from orrery.recipes.parallel import ParallelSettings
from orrery.training.distributed import Ranks
from orrery.training.evaluate import Validation
from orrery.training.folder import RunFolder
from orrery.training.loop import Parts, Trainer
from orrery.training.parallel.joining import find_ranks
from orrery.training.rollouts import ModelWriter
from orrery.training.state import model_tensors
from parted import even, without_dropout
from rollout_toy import HOW, judge, world
from training_toy import toy_recipe

STEPS, ROWS = 2, 3
"""Of three rows one process has one, the other two."""
MORE = ("gpt2", "lstm", "mixtral", "mamba", "t5")
"""Kinds of models beside the first of each objective."""
OPTIMIZERS = ({"kind": "muon"}, {"kind": "sgd", "momentum": 0.9}, {"kind": "adam"})
COMPILED: list[bool] = []
"""Whether blocks are compiled where weights are shared."""
Case = tuple[str, Objective, nn.Module, Any, dict[str, Any]]


class Same:
    """A source that gives one batch, finished already, at every step."""

    def __init__(self, batch: dict[str, Tensor]) -> None:
        self.own = {name: each.double() if each.is_floating_point() else each for name, each in batch.items()}

    def batch(self, step: int) -> dict[str, Tensor]:
        return {name: each[:ROWS] for name, each in self.own.items()}

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        assert not state


def finished(objective: Objective, batch: dict[str, Tensor]) -> Objective:
    """Return an objective that takes a batch as it is."""
    own: Any = objective
    own.needs, own.makes, own.prepare = tuple(batch), (), lambda batch, rng: batch
    return objective


def runs() -> Iterator[Case]:
    """Yield every objective with the first of its models, then one more model of each kind, then the optimizers."""
    seen: set[str] = set()
    from sharded import COUPLED, cases  # its own parts are registered where they are used alone

    for name, family, objective, model, batch in cases():
        if name in seen or name in COUPLED:
            continue
        seen.add(name)
        written = "written" in OBJECTIVES.find(name).needs
        source = None if written else Same(batch)
        own = objective if written else finished(objective, batch)
        yield f"{name} {family}", own, model.double(), source, {}
    for family in MORE:
        yield f"more {family}", *plain(family, "seq2seq" if family == "t5" else "causal"), {}
    # A row of one token each: most experts are called by one process alone, or by none.
    objective, model, _ = plain("mixtral", "causal")
    few = torch.tensor([[3], [5], [9]]).expand(3, 7).clone()
    yield "more mixtral, few experts", objective, model, Same({"ids": few, "targets": few}), {}
    for settings in OPTIMIZERS:
        yield f"optimizer {settings['kind']}", *plain("llama", "causal"), settings


def plain(family: str, name: str) -> tuple[Objective, nn.Module, Same]:
    """Return an objective on text, a tiny model of a family, and a source of one batch."""
    ids = torch.randint(1, 20, (4, 7), generator=torch.Generator().manual_seed(1))
    batch = {"ids": ids, "targets": ids.roll(-1, 1), "source": ids.flip(0)}
    rules = load_family(family)
    torch.manual_seed(0)
    model, objective = spec_of(rules, even(rules.TINY)).build().double(), OBJECTIVES.find(name)()
    objective.bind(model.spec, None)
    return objective, model, Same({each: batch[each] for each in {*model.spec.inputs, *objective.needs}})


def parts_of(case: Case) -> Parts:
    """Return a run of a case, all of whose random numbers are the same each time."""
    name, objective, model, source, _ = case
    writes = isinstance(objective, CausalLanguageModel)
    torch.manual_seed(2)
    more: dict[str, Any] = {}
    if source is None:
        own = world(name.split()[0])
        objective, model, source = own.objective, own.model, own.rollouts
        ends = own.writer.ends
        more["writer"] = lambda model, *how: ModelWriter(model, objective, own.tokenizer, ends, judge(), *how)
        # One batch: of two processes that share the weights of what answers, one has none.
        more["validation"] = Validation(HeldBackAnswers(own.rollouts.asked[:3], HOW, 3, 5), 1, objective.evaluated())
    else:
        more["validation"] = Validation(source, 3, objective, bytes_per_token=1.0)
    more["modules"] = {each: part.double() for each, part in own_modules(objective, model).items()}
    finish = lambda model, folder: write_tensors(folder / "model.safetensors", model_tensors(model))  # noqa: E731
    return Parts(model, objective, source, finish=finish, sample=partial(sampled, writes), **more)


def sampled(writes: bool, model: Any) -> str:
    """Return the most likely token after some, where a model writes, and the sum of all weights."""
    total = sum(float(parameter.detach().sum()) for parameter in model.parameters())
    told = f"{total:.9f}"
    if writes:
        with torch.no_grad():
            logits, session = model.start(torch.tensor([[1, 2, 3]]), 5)
            told += f" {int(model.step(logits.argmax(-1)[:, None], session).argmax())}"
    return told


def recipe_of(case: Case, steps: int, **parallel: Any) -> Recipe:
    """Return the settings of a run, with a norm that is clipped."""
    return toy_recipe(
        training__steps=steps,
        training__micro_batch=1,
        training__clip=0.1,
        training__optimizer={"rate": 0.01, **case[-1]},
        training__schedule={"kind": "constant"},
        evaluation__every=STEPS,
        checkpoints__every=STEPS,
        logging__every=1,
        parallel={"compile": bool(COMPILED) and "fsdp" in parallel, **parallel},
    )


def opened(case: Case, folder: Path, ranks: Ranks | None, steps: int, **parallel: Any) -> Trainer:
    """Return what trains a case in a folder, which nobody else writes."""
    return Trainer(parts_of(copy.deepcopy(case)), recipe_of(case, steps, **parallel), RunFolder(folder), ranks)


def trained(case: Case, folder: Path, ranks: Ranks | None, **parallel: Any) -> None:
    """Train a case into a folder."""
    if ranks is None or ranks.rank == 0:
        folder.mkdir(parents=True)
    if ranks is not None:
        ranks.any(False)
    opened(case, folder, ranks, STEPS, **parallel).run()


def resumed(ranks: Ranks, case: Case, place: Path, **parallel: Any) -> dict[str, float]:
    """Save what one process left from shared weights, then go on in the other layout; say how far both are apart."""
    for begun, goes_on in (("one", "one, many"), ("many", "many, one"), ("one", "saved"), ("one", "one, one")):
        if ranks.rank == 0:
            shutil.copytree(place / begun, place / goes_on)
    ranks.any(False)
    saving = opened(case, place / "saved", ranks, STEPS, **parallel)
    saving._start()
    saving._save(best=False)
    opened(case, place / "one, many", ranks, 2 * STEPS, **parallel).run()
    if ranks.rank:
        return {}
    for name in ("many, one", "one, one"):
        opened(case, place / name, None, 2 * STEPS).run()
    whole, cut = (hashes(CheckpointStore(place / name / "checkpoints").path(STEPS)) for name in ("one", "saved"))
    expected = left(place / "one, one", steps=2 * STEPS)
    return {
        "bytes of files": 0.0 if whole == cut else float("inf"),
        **{name: apart(expected, left(place / name, steps=2 * STEPS)) for name in ("many, one", "one, many")},
    }


def hashes(folder: Path) -> list[str]:
    """Return the digests of a checkpoint's tensors."""
    return [file_sha256(path) for path in sorted(folder.glob("*.safetensors"))]


def left(folder: Path, kind: str = "", steps: int = STEPS) -> dict[str, Tensor]:
    """Return all numbers that a run leaves, by name; ``kind`` is what the names begin with."""
    saved = read_checkpoint(CheckpointStore(folder / "checkpoints").path(steps))
    numbers = {
        f"{kind}/{name}": each
        for kind in ("model", "optimizer", "objective")
        for name, each in getattr(saved, kind).items()
    }
    numbers |= {f"final/{name}": each for name, each in read_tensors(folder / "final" / "model.safetensors").items()}
    for record in RunFolder(folder).records():
        kept = {
            name: value for name, value in record.items() if name.startswith(("train/", "val/", "grad_norm", "tokens"))
        }
        kept.pop("tokens_per_second")
        numbers |= {f"{record['step']}/{name}": torch.tensor(value).double() for name, value in kept.items()}
    path = folder / "samples.jsonl"
    for line in path.read_text().splitlines() if path.exists() else ():
        words = json.loads(line)["text"].split()
        numbers[f"sample {json.loads(line)['step']}"] = torch.tensor([float(word) for word in words]).double()
    return {name: each for name, each in numbers.items() if name.startswith(kind)}


def apart(one: dict[str, Tensor], other: dict[str, Tensor]) -> float:
    """Return the largest difference of two runs, by the largest number of its tensor or 1."""
    assert one.keys() == other.keys(), one.keys() ^ other.keys()
    assert len(one) > 5
    return max(
        float((one[key].double() - other[key].double()).abs().max() / one[key].abs().max().clamp(min=1))
        for key in one
        if one[key].numel()
    )


def compile_without_inductor() -> None:
    """Compile the blocks of runs that share their weights to graphs that torch's own kernels compute."""
    from orrery.training import compiled_blocks

    compiled_blocks.COMPILER = {"backend": "aot_eager"}
    COMPILED.append(True)


def main() -> int:
    """Compare runs whose weights are shared with runs of one process."""
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    folder, words = Path(sys.argv[1]), dict(word.split("=") for word in sys.argv[2:])
    degrees = {name: int(value) for name, value in words.items() if name not in {"only", "compile"}}
    if "compile" in words:
        compile_without_inductor()
    ranks, told = find_ranks("cpu", ParallelSettings(**degrees)), {}
    for number, case in enumerate(runs()):
        if not re.search(words.get("only", ""), case[0]):
            continue
        if degrees.keys() & {"tensor", "context", "pipeline"} or COMPILED:
            without_dropout(case[2])
        again = {"more gpt2": "full", "more t5": "selective", "ppo llama": "selective", "grpo llama": "full"}.get(
            case[0], "none"
        )
        zero = {"zero": 2 + number % 2, "recompute": again}
        began = {
            f"final/{name}": each.clone() for name, each in model_tensors(parts_of(copy.deepcopy(case)).model).items()
        }
        place = folder / str(number)
        if ranks.rank == 0:
            trained(case, place / "one", None)
        try:
            trained(case, place / "many", ranks, **{**zero, **degrees})
        except UsageError as error:  # every process says the same
            told[f"{case[0]} is refused: {error.message}"] = 0.0
            continue
        if ranks.rank == 0:
            assert apart(began, left(place / "one", "final/")) > 1e-4, case[0]
            told[case[0]] = apart(left(place / "one"), left(place / "many"))
        if "causal llama" in case[0] or "ppo" in case[0]:
            told |= {f"{case[0]}: {what}": far for what, far in resumed(ranks, case, place, **degrees).items()}
    if ranks.rank == 0:
        print(json.dumps(told))
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
