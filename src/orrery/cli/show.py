"""``orrery show``: the parts of a model as a tree, or what differs between two models."""

import json as json_format
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from orrery.cli.console import printable
from orrery.cli.tables import print_table
from orrery.errors import UsageError

if TYPE_CHECKING:
    from rich.tree import Tree

    from orrery.accounting.spec_tree import Difference, Node
    from orrery.models.model import ModelSpec


def show(
    model: str, other: str | None = None, /, *, config: Path | None = None, diff: bool = False, json: bool = False
) -> None:
    """Print the parts of a model with their settings and parameters; no weights are read.

    With --diff and two models, print only what differs between them.

    Args:
        model: A family, at the size of its defaults or, where they name none, a tiny one; or a run, a checkpoint, a
            Hugging Face folder, hf:org/name@revision.
        other: The second model of a --diff.
        config: A file like config.json, for a family.
        diff: Compare two models.
        json: Print the architecture, or the list of differences, as JSON.
    """
    if diff != (other is not None):
        raise UsageError("a comparison takes two models and --diff", "orrery show --diff gpt2 llama")
    if other is None:
        _print_one(model, config, json)
        return
    from orrery.accounting.spec_tree import differences, tree

    first, second = tree(_find(model, config), model), tree(_find(other, None), other)
    found = list(differences(first, second))
    if json:
        print(json_format.dumps([vars(difference) for difference in found], indent=1))
    else:
        _print_differences(first, second, found)


def _print_one(model: str, config: Path | None, json: bool) -> None:
    from orrery.accounting.spec_tree import lines, tree
    from orrery.nn.spec import to_json

    spec = _find(model, config)
    if json:
        print(json_format.dumps(to_json(spec), indent=1))
    elif sys.stdout.isatty():
        from rich.console import Console

        Console().print(_branch(tree(spec, model)))
    else:
        print(printable("\n".join(lines(tree(spec, model)))))


def _find(model: str, config: Path | None) -> "ModelSpec":
    """Return the architecture that a word or a path means."""
    from orrery.reading import hub
    from orrery.reading.architecture import is_family, of_family, of_folder
    from orrery.reading.read import locate

    if is_family(model) or not (Path(model).exists() or model.startswith(hub.PREFIX)):
        return of_family(model, config)
    if config is not None:
        raise UsageError(f"--config goes with a family, and {model!r} is none", "leave it away for a folder")
    if model.startswith(hub.PREFIX):
        return of_folder(hub.fetch(model, lambda line: print(line, file=sys.stderr), weights=False))
    return of_folder(locate(model))


def _print_differences(first: "Node", second: "Node", found: "list[Difference]") -> None:
    columns = ("part", *(f"{node.name} [{node.parameters or 0:,}]" for node in (first, second)))
    print_table(columns, [(d.path, d.first or "-", d.second or "-") for d in found])
    if not found:
        print("the architectures are the same")


def _branch(node: "Node") -> "Tree":
    """Return a node as rich draws it."""
    from rich.text import Text
    from rich.tree import Tree

    label = Text.assemble((node.name, "bold"), "  ", (printable(node.what), "cyan"), "  ", (node.weight, "green"))
    branch = Tree(label)
    for child in node.children:
        if not child.usual:
            branch.children.append(_branch(child))
    return branch
