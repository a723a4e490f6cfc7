"""A flag that a message names is one that the command which shows it has."""

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import cyclopts
import pytest

import orrery
from orrery.cli.evaluate.app import tasks
from orrery.cli.program import VERBS, build

SOURCE = Path(orrery.__file__).parent
FLAG = re.compile(r"(?:orrery (?P<verb>[a-z]+) )?(?P<flag>(?<![\w-])--[a-z][a-z-]*(?:\.[a-z_]+)*)")
RECIPES = {"train", "demo", "compare", "ladder", "finetune", "sft", "reward", "dpo", "ppo", "grpo"}
"""Verbs that take a recipe's keys as flags with a dot."""

EVERYWHERE = {"--help", "--debug"}
NO_FLAG = {"reports/style.py", "demo/page.py", "accounting/layouts/launch.py", "training/distributed.py"}
"""They hold names of CSS, command lines that a test of the page runs, and flags of ``torchrun``."""

MANY = {
    "cli/plan_tables.py": ["plan"],
    "checkpoints/gguf.py": ["export"],
    "cli/beam_options.py": ["generate"],
    "serving/served.py": ["serve"],
    "cli/writing_options.py": ["generate", "chat"],
    "checkpoints/lock.py": ["train", "demo", "compare", "ladder", "data prepare"],
    "checkpoints/outputs.py": [
        "tokenizer train", "tokenizer compare", "data clean", "evaluate translation", "translate", "neighbours",
        "export", "import", "lab", "parity", "verify", "average", "embed", "bench", "bench generate",
        "quantise", "evaluate choices", "evaluate mmlu", "evaluate hellaswag", "evaluate blimp", "evaluate gsm8k",
        "evaluate humaneval", "evaluate mbpp",
        "distil", "plan",
    ],
    "cli/evaluate/_items.py": ["evaluate choices", "evaluate blimp", "evaluate gsm8k", "evaluate humaneval"],
    "cli/evaluate/_programs.py": ["evaluate humaneval", "evaluate mbpp"],
    "tasks/mmlu.py": ["evaluate mmlu"],
    "tasks/programs.py": ["evaluate humaneval", "evaluate mbpp"],
    "data/labelled.py": ["train"],
    "data/pair_columns.py": ["train"],
    "data/sources/matches.py": ["train"],
    "data/large_text.py": ["tokenizer train", "data prepare"],
    "exporting/average.py": ["average"],
    "cli/methods.py": ["sft", "reward", "dpo"],
    "finetuning/recipe.py": ["finetune"],
    "finetuning/answering_recipe.py": ["ppo", "grpo"],
    "cli/answering.py": ["ppo", "grpo"],
    "data/prompts.py": ["train", "ppo", "grpo"],
    "objectives/_policy.py": ["train", "ppo", "grpo"],
    "finetuning/seeds.py": ["finetune"],
    "finetuning/tasks/_pairs.py": ["dpo", "reward"],
    "generation/generate.py": ["generate", "chat", "translate", "score"],
    "compare/plan.py": ["compare"],
    "compare/probes/table.py": ["compare"],
    "compare/folder.py": ["compare", "ladder"],
    "compare/store.py": ["compare"],
    "compare/sweep.py": ["compare"],
    "compare/trials.py": ["compare"],
    "compare/texts.py": ["compare", "ladder"],
    "compare/models.py": ["compare"],
    "ladder/run.py": ["ladder"],
    "ladder/store.py": ["ladder"],
    "demo/tour.py": ["demo"],
    "labs/_all.py": ["lab"],
    "labs/_lab.py": ["lab"],
    "laws/registry.py": ["verify"],
    "serving/limits.py": ["serve"],
    "serving/run.py": ["serve"],
    "serving/schema/completions.py": ["generate"],
    "serving/settings.py": ["serve"],
    "reading/config_keys.py": ["import"],
    "reading/files.py": ["import"],
    "reading/hub.py": ["import"],
    "saving/import_model.py": ["import"],
    "data/sources/preferences.py": ["dpo"],
    "language_model/rewards.py": ["reward"],
    "language_model/stored.py": ["generate", "chat", "score", "translate", "evaluate perplexity"],
    "language_model/texts.py": ["generate", "chat", "score", "translate", "evaluate perplexity"],
    "laws/workers.py": ["verify"],
    "views/_laws.py": ["verify"],
    "pipelines/_rows.py": ["classify", "tag", "summarise", "embed"],
    "tasks/perplexity.py": ["evaluate perplexity"],
    "text/chat/render.py": ["tokenizer chat", "chat"],
    "tuning/_description.py": ["export"],
    "runs/default_recipe.py": ["train"],
    "stages/folder.py": ["train"],
    "stages/run.py": ["train"],
    "runs/execute.py": ["train"],
    "runs/going_on.py": ["train", "finetune"],
    "training/folder.py": ["train"],
    "training/optimizers.py": ["train", "finetune"],
    "training/precision.py": ["train", "demo", "compare", "ladder"],
    "training/recipes.py": ["train", "compare", "ladder"],
    "training/state.py": ["train", "compare", "ladder"],
    "cli/console.py": [],
    "cli/texts.py": ["classify", "tag", "answer", "summarise", "embed", "cloze"],
    "cli/overview.py": [],
    "cli/program.py": [],
    "cli/train/stages.py": ["train"],
    "cli/train/word_vectors.py": ["train"],
    "cli/bench/app.py": ["bench generate"],
    "cli/data/app.py": ["data show"],
    "cli/data/clean.py": ["data clean"],
    "cli/data/prepare.py": ["data prepare"],
    "cli/tokenizer/app.py": ["tokenizer train"],
    "cli/tokenizer/show.py": ["tokenizer show"],
    "cli/tokenizer/compare.py": ["tokenizer compare"],
    "cli/tokenizer/parallel.py": ["tokenizer compare"],
    "cli/import_model.py": ["import"],
    "cli/plan_layouts.py": ["plan"],
    "accounting/plan.py": ["plan"],
    "accounting/fitting.py": ["plan"],
    "accounting/measured_step.py": ["plan"],
}  # fmt: skip
"""Which verbs show what a module says; a module of one verb, ``cli/VERB.py``, needs no line."""


def messages(file: Path) -> Iterator[str]:
    """Yield the texts in a module that are not documentation, where any of them may hold a flag."""
    source = file.read_text(encoding="utf-8")
    if "--" not in source:  # most modules: to parse all of them at import takes seconds
        return
    tree = ast.parse(source)
    documentation = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node.value


def flags(verb: str) -> set[str]:
    """Return the flags of a verb, by its words."""
    name, _, rest = verb.partition(" ")
    if name == "evaluate":
        module, _, function = tasks()[rest].target.partition(":")
        app = cyclopts.App()
        app.default(getattr(import_module(module), function))
    else:
        app = build([name])[name]
        app = app[rest] if rest else app
    return {flag for argument in app.assemble_argument_collection() for flag in argument.names} | EVERYWHERE


def shown_by(name: str) -> list[str]:
    stem = name.removeprefix("cli/").removesuffix(".py")
    if name in MANY:
        return MANY[name]
    return [stem.removesuffix("/app").replace("/", " ").replace("_", "-")]


NAMED = sorted(
    {
        (file.relative_to(SOURCE).as_posix(), found["flag"], found["verb"] or "")
        for file in SOURCE.rglob("*.py")
        for text in messages(file)
        for found in FLAG.finditer(text)
        if file.relative_to(SOURCE).as_posix() not in NO_FLAG
    }
)


@pytest.mark.parametrize(("module", "flag", "verb"), NAMED)
def test_a_flag_in_a_message_exists_where_it_is_shown(module: str, flag: str, verb: str) -> None:
    assert module.startswith("cli/") or module in MANY, "say in MANY which verbs show what it says"
    for shown in [verb] if verb in VERBS else shown_by(module):
        if flag.startswith("--training") or "." in flag:
            assert shown in RECIPES
        else:
            assert flag in flags(shown), f"`orrery {shown}` has no {flag}"


def test_it_finds_what_it_is_for() -> None:
    assert "--truncate" not in flags("score")
    assert "--truncate" in flags("generate")
    assert "--overwrite" in flags("tokenizer train")
    assert any(module == "checkpoints/outputs.py" for module, _, _ in NAMED)
