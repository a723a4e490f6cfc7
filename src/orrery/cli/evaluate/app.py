"""``orrery evaluate``: tasks that measure a model, or files, each a file of this folder with its own settings."""

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from textwrap import indent
from typing import Annotated

import cyclopts
from cyclopts import Parameter

from orrery.cli.calling import call
from orrery.errors import UsageError, did_you_mean


@dataclass(frozen=True)
class EvaluationTask:
    """One task: its function as ``module:function``, what the help says of it, and whether it takes a model."""

    target: str
    says: str
    of_a_model: bool


@cache
def tasks() -> dict[str, EvaluationTask]:
    """Return the tasks by name, from the files of this folder; none is imported for that.

    A file ``word_vectors.py`` has the function ``word_vectors``, and is the task ``word-vectors``.
    """
    files = [path for path in Path(__file__).parent.glob("[!_]*.py") if path != Path(__file__)]
    return {path.stem.replace("_", "-"): _read(path) for path in sorted(files)}


def _read(path: Path) -> EvaluationTask:
    """Return the task that a file holds; the help says what its docstring says below the first line."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    (function,) = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == path.stem)
    says = (ast.get_docstring(tree) or "").partition("\n\n")[2]
    of_a_model = any(argument.arg == "model" for argument in function.args.posonlyargs)
    return EvaluationTask(f"{__package__}.{path.stem}:{path.stem}", says, of_a_model)


def evaluate(
    model: str,
    task: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    /,
    *settings: Annotated[str, Parameter(allow_leading_hyphen=True)],
) -> int:
    """Measure a model on a task, or texts against their references.

    Args:
        model: A run, a checkpoint, a Hugging Face folder, a GGUF file, or hf:org/name@revision; or a task that needs
            none.
        task: One of the tasks above.
        settings: Those of the task.
    """
    known = tasks()
    of_a_model = [name for name, each in known.items() if each.of_a_model]
    if model in known and not known[model].of_a_model and task not in of_a_model:
        return carry_out(model, known[model].target, [*filter(None, [task]), *settings])
    if task is None or task not in of_a_model:
        alone = ", ".join(name for name in known if name not in of_a_model)
        hint = f"{did_you_mean(task, of_a_model)}known: {', '.join(of_a_model)}; without a model: {alone}"
        raise UsageError("no task" if task is None else f"unknown task {task!r}", hint)
    return carry_out(f"MODEL {task}", known[task].target, [model, *settings])


def _help() -> str:
    """Return the help: what each task does, and its flags."""
    head, _, arguments = (evaluate.__doc__ or "").partition("\n\n")
    lines = []
    for name, task in tasks().items():
        shown = name if task.of_a_model else f"Without a model, `orrery evaluate {name}`"
        lines.append(indent(f"{shown}: {task.says}", "    "))
    return "\n\n".join([head, *lines, arguments])


evaluate.__doc__ = _help()


def carry_out(name: str, target: str, words: Sequence[str]) -> int:
    """Parse the words by the settings of one task, given as ``module:function``, and run it."""
    return call(_parser(name, target), words)


def parser_of_task(name: str) -> cyclopts.App:
    """Return what parses the settings of a task."""
    task = tasks()[name]
    return _parser(f"MODEL {name}" if task.of_a_model else name, task.target)


def _parser(name: str, target: str) -> cyclopts.App:
    module, _, function = target.partition(":")
    app = cyclopts.App(
        name=f"orrery evaluate {name}",
        help_format="plaintext",
        version_flags=(),
        suppress_keyboard_interrupt=False,
        exit_on_error=False,
        print_error=False,
    )
    app.default(getattr(import_module(module), function))
    return app
