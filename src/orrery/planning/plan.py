"""The plan of a model: what it consists of, and what training and writing with it would cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path

import torch

from orrery.errors import ModelFileError, UsageError
from orrery.exchange.reading.architecture import described, is_family, of_family
from orrery.exchange.reading.read import locate
from orrery.families import load_family
from orrery.models.decoding_memory import cache_bytes
from orrery.models.default_device import on_cpu_by_default
from orrery.models.distinct_blocks import EqualBlocks, shortened
from orrery.models.model import ModelSpec
from orrery.models.soundness import check_whole
from orrery.nn.mixer import StatefulMixer
from orrery.planning.matrices import LECTURE, Convention, Matrix, matrices_of, total
from orrery.planning.parameters import Parameters, counts
from orrery.planning.presets import PRESETS, preset
from orrery.planning.published.sizes import KEYS
from orrery.planning.recomputation import recompute_blocks
from orrery.planning.rehearsal import rehearsed
from orrery.planning.step_cost import StepCost, step_cost
from orrery.planning.windows import within
from orrery.recipes.config import Recipe
from orrery.training.memory import STATES

WIDE = 4
"""Bytes of a weight while it learns, float32; gradients and each of the optimizer's numbers have as many."""
FORMATS: Mapping[str, torch.dtype] = {"float32": torch.float32, "bfloat16": torch.bfloat16}


@dataclass(frozen=True)
class Plan:
    """What a model is and costs.

    Attributes:
        name: what the subject was called.
        spec: its architecture.
        rows: of a step.
        length: tokens of each row; of the source and of the target where the model reads one.
        dtype: of products, keys and values.
        optimizer: a kind of ``training.optimizer``.
        tokens: that a training sees in all, where that is known.
    """

    name: str
    spec: ModelSpec
    rows: int
    length: int
    dtype: torch.dtype = torch.bfloat16
    optimizer: str = "adamw"
    tokens: float | None = None

    @cached_property
    def parameters(self) -> Parameters:
        """The parameters, each storage once."""
        return counts(self.spec)

    @cached_property
    def matrices(self) -> list[Matrix]:
        """The tensors of weights, equal ones of several blocks together."""
        return matrices_of(self.spec)

    def by_convention(self, convention: Convention = LECTURE) -> tuple[int, int]:
        """Return numbers and matrices as the lecture counts: no biases, norms or positions, and the head apart."""
        return total(self.matrices, convention)

    @cached_property
    def cost(self) -> StepCost:
        """What a step costs; of attention through a window, what the window shows."""
        cost = step_cost(self.spec, self.rows, self.length, self.dtype)
        return within(cost, self.spec, self.rows, self.length)

    @cached_property
    def recomputed(self) -> StepCost:
        """What a step costs whose blocks keep their inputs alone and are computed once more in the backward pass."""
        cost = step_cost(self.spec, self.rows, self.length, self.dtype, prepare=recompute_blocks)
        return within(cost, self.spec, self.rows, self.length)

    @property
    def recomputed_bytes(self) -> int:
        """Bytes of activations then: the inputs, and what one block keeps, their mean, while it is computed again."""
        groups = shortened(self.spec)[1].values()
        blocks = sum(len(group.depths) for members in groups for group in members)
        return self.recomputed.kept + (self.cost.kept - self.recomputed.kept) // max(1, blocks)

    @property
    def positions(self) -> int:
        """The tokens of a step."""
        return self.rows * self.length

    @property
    def per_token(self) -> float:
        """Operations of training for each token of a step."""
        return self.cost.training.total / self.positions

    @property
    def training(self) -> float | None:
        """Operations of the whole training, where its tokens are known."""
        return None if self.tokens is None else self.per_token * self.tokens

    @property
    def weights_bytes(self) -> int:
        """Bytes of the weights while they learn."""
        return WIDE * (self.parameters.trained + self.parameters.fixed)

    @property
    def gradients_bytes(self) -> int:
        """Bytes of the gradients."""
        return WIDE * self.parameters.trained

    @property
    def optimizer_bytes(self) -> int:
        """Bytes of what the optimizer keeps of each weight."""
        return STATES[self.optimizer] * self.gradients_bytes

    @property
    def memory(self) -> int:
        """Bytes of weights, gradients, optimizer and activations together: no step needs more, but for passing ones."""
        return self.weights_bytes + self.gradients_bytes + self.optimizer_bytes + self.cost.kept

    @cached_property
    def cache_per_token(self) -> int:
        """Bytes that a token leaves in the cache of keys and values."""
        return cache_bytes(self.spec, self.dtype, 1) if self.spec.writes else 0

    @cached_property
    def cache(self) -> int:
        """Bytes of keys and values of a row of this length; windows let tokens go."""
        return cache_bytes(self.spec, self.dtype, self.length) if self.spec.writes else 0

    @cached_property
    def state(self) -> int:
        """Bytes of the states of a row's recurrences, which do not grow with its length."""
        return state_bytes(self.spec)


def state_bytes(spec: ModelSpec) -> int:
    """Return the bytes that the recurrences of a model remember of a row."""
    short, groups = shortened(spec)
    with rehearsed():
        model = short.build()
        x_BLD = torch.zeros(1, 1, short.width)
        total = 0
        for name, module in model.named_modules():
            if isinstance(module, StatefulMixer):
                total += _depths(name, groups) * sum(part.nbytes for part in module.begin(x_BLD))
    return total


def _depths(name: str, groups: Mapping[str, Sequence[EqualBlocks]]) -> int:
    """Return at how many depths the block stands that a module belongs to."""
    for stack, members in groups.items():
        if name.startswith(f"{stack}.blocks."):
            number = int(name.removeprefix(f"{stack}.blocks.").partition(".")[0])
            return len(members[number].depths)
    return 1


@on_cpu_by_default
def plan(
    subject: str | Path | ModelSpec | Recipe,
    *,
    config: Path | None = None,
    rows: int | None = None,
    length: int | None = None,
    tokens: float | None = None,
    dtype: str = "bfloat16",
    optimizer: str | None = None,
) -> Plan:
    """Return the plan of a preset, a family, a recipe, a folder, or an architecture.

    Args:
        subject: ``gpt3-175b`` or ``llama-3.1-405b``; a family, which needs a ``config``; the file of a recipe; the
            folder of a model or run.
        config: a file like config.json, for a family.
        rows: of a step; those of the recipe, else one.
        length: tokens of a row; those of the recipe, else the context that the model is meant for.
        tokens: of the whole training; those of the recipe, else unknown.
        dtype: of products: bfloat16, or float32.
        optimizer: the kind; the recipe's, else adamw.

    Raises:
        UsageError: there is no such subject, or a number is none that can be planned with.
        ModelFileError: its files describe nothing that can be built.
    """
    if dtype not in FORMATS:
        raise UsageError(f"no format {dtype!r} to multiply in", f"there are: {', '.join(FORMATS)}")
    if tokens is not None and not 0 < tokens < float("inf"):
        raise UsageError(f"a training on {tokens:g} tokens", "give how many it sees, such as 300e9")
    subject_plan = _plan_of(subject, config)
    made = replace(
        subject_plan,
        dtype=FORMATS[dtype],
        rows=subject_plan.rows if rows is None else rows,
        length=subject_plan.length if length is None else length,
        tokens=subject_plan.tokens if tokens is None else tokens,
        optimizer=optimizer or subject_plan.optimizer,
    )
    if made.rows < 1 or made.length < 1:
        raise UsageError(f"a step on {made.rows} rows of {made.length} tokens", "give one row and one token at least")
    if made.optimizer not in STATES:
        raise UsageError(f"no optimizer {made.optimizer!r}", f"there are: {', '.join(STATES)}")
    return made


def _plan_of(subject: str | Path | ModelSpec | Recipe, config: Path | None) -> Plan:
    if isinstance(subject, ModelSpec):
        return Plan(type(subject).__qualname__, subject, 1, subject.context)
    if isinstance(subject, Recipe):
        return of_recipe(subject)
    name = str(subject)
    if config is not None and not is_family(name):
        raise UsageError(f"--config is a file for a family, and {name!r} is none", "name a family, or leave it out")
    if name in PRESETS:
        spec = preset(name)
        return Plan(name, spec, 1, spec.context)
    if name in KEYS and config is None:
        spec = KEYS[name].spec()
        return Plan(name, spec, 1, spec.context)
    path = Path(name)
    if path.is_file() and path.suffix in (".yaml", ".yml"):
        import os

        from orrery.recipes.read import load_recipe

        return of_recipe(load_recipe(path, (), os.environ))
    if is_family(name):
        spec = _sized(name, config)
        return Plan(name, spec, 1, spec.context)
    if not path.exists():
        near = get_close_matches(name, [*PRESETS, *KEYS], 8) or [*PRESETS]
        hint = f"such as {', '.join(near)}; or the file of a recipe, the folder of a model, a family with --config"
        raise UsageError(f"nothing to plan is called {name!r}", hint)
    spec = described(locate(path)).spec
    return Plan(name, spec, 1, spec.context)


def _sized(family: str, config: Path | None) -> ModelSpec:
    """Return a family's architecture at the size of a file, or of the family's own defaults.

    Raises:
        UsageError: it has no size of its own.
    """
    if config is not None:
        return of_family(family, config)
    try:
        return check_whole(load_family(family).spec({}))
    except ModelFileError as error:
        message = f"the family {family!r} has no size of its own: {error}"
        raise UsageError(message, "give --config FILE, a file like config.json") from error


def of_recipe(recipe: Recipe) -> Plan:
    """Return the plan of a recipe: its model, its batches and its steps. Its data are read, to make the tokenizer."""
    from orrery.runs.assemble import assemble

    assembled = assemble(recipe)
    spec = assembled.spec
    settings, batches = recipe.training, recipe.batches
    rows = min(batches.most_rows, settings.micro_batch or batches.most_rows)
    length = max(1, assembled.batch_tokens // batches.most_rows)
    return Plan(
        recipe.name,
        spec,
        rows,
        length,
        optimizer=settings.optimizer.kind,
        tokens=float(settings.steps * assembled.batch_tokens),
    )
