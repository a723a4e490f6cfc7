"""``orrery show``: the parts of a model as a tree, or what differs between two models."""

import json as json_format
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from orrery.cli.console import printable
from orrery.cli.places import MODEL_IF_PATH
from orrery.cli.tables import print_table
from orrery.errors import UsageError

if TYPE_CHECKING:
    from rich.tree import Tree

    from orrery.exchange.reading.architecture import Described
    from orrery.planning.spec_tree import SpecDifference, SpecNode


def show(
    model: Annotated[str, MODEL_IF_PATH],
    other: Annotated[str | None, MODEL_IF_PATH] = None,
    /,
    *,
    config: Path | None = None,
    diff: bool = False,
    json: bool = False,
) -> None:
    """Print the parts of a model with their settings and parameters; no weights are read.

    With --diff and two models, print only what differs between them.

    Args:
        model: A family, at the size of its defaults or, where they name none, a tiny one; or a run, a checkpoint, a
            Hugging Face folder, a GGUF file, hf:org/name@revision.
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
    from orrery.planning.spec_tree import differences, tree

    found_first, found_second = _find(model, config), _find(other, None)
    first = tree(found_first.spec, model, found_first.transforms)
    second = tree(found_second.spec, other, found_second.transforms)
    changes = list(differences(first, second))
    if json:
        print(json_format.dumps([vars(difference) for difference in changes], indent=1))
    else:
        _print_differences(first, second, changes)


def _print_one(model: str, config: Path | None, json: bool) -> None:
    from orrery.planning.spec_tree import lines, tree
    from orrery.tuning import spec_json

    subject = _find(model, config)
    if json:
        print(json_format.dumps(spec_json(subject.spec, subject.transforms), indent=1))
        return
    shown = tree(subject.spec, model, subject.transforms)
    if sys.stdout.isatty():
        from rich.console import Console

        Console().print(_branch(shown))
    else:
        print(printable("\n".join(lines(shown))))


def _find(model: str, config: Path | None) -> "Described":
    """Return the architecture that a word or a path means, with its transforms."""
    from orrery.exchange.reading import hub
    from orrery.exchange.reading.architecture import Described, described, is_family, of_family
    from orrery.exchange.reading.read import locate

    if is_family(model) or not (Path(model).exists() or set(model) & set("./:")):
        return Described(of_family(model, config))
    if config is not None:
        raise UsageError(f"--config goes with a family, and {model!r} is none", "leave it away for a folder")
    if model.startswith(hub.PREFIX):
        return described(hub.fetch(model, lambda line: print(line, file=sys.stderr), weights=False))
    return described(locate(model))


def _print_differences(first: "SpecNode", second: "SpecNode", changes: "list[SpecDifference]") -> None:
    columns = ("part", *(f"{node.name} [{node.parameters or 0:,}]" for node in (first, second)))
    print_table(columns, [(d.path, d.first or "-", d.second or "-") for d in changes])
    if not changes:
        print("the architectures are the same")


def _branch(node: "SpecNode") -> "Tree":
    """Return a node as rich draws it."""
    from rich.text import Text
    from rich.tree import Tree

    label = Text.assemble((node.name, "bold"), "  ", (printable(node.what), "cyan"), "  ", (node.weight, "green"))
    branch = Tree(label)
    for child in node.children:
        if not child.usual:
            branch.children.append(_branch(child))
    return branch
