"""What a message tells a user to type, tried: commands, flags, keys of recipes, packages and names of Python."""

import ast
import re
import shlex
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import cyclopts

import orrery
from orrery.cli.evaluate.app import tasks
from orrery.cli.program import VERBS, build
from orrery.errors import OrreryError
from orrery.language_model.model import LanguageModel
from orrery.recipes.config import Recipe
from orrery.recipes.read import LADDER, from_flags
from orrery.recipes.word_vectors import WordVectorRecipe
from orrery.schema.keys import has_key
from orrery.studies.ladder.settings import LadderSettings
from orrery.studies.stages.recipe import StagesSettings

SOURCE = Path(orrery.__file__).parents[1]
HOLE = "X"
"""What stands for a value that a message is filled with."""

COMMAND = re.compile(r"(?P<mark>[`']?)\borrery (?P<line>[a-z][^\n]*)")
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z_-]*(?:\.[a-z_]+)*")
SETTING = re.compile(r"`(?P<name>[a-z_]+)=[^`]+`")
BESIDE = {"lm_eval"}
"""Packages that are no extra of ours: they bring others than our pins."""

KEY = re.compile(
    r"(?<![\w./-])(?:model|tokenizer|data|batches|objective|training|generation|evaluation|checkpoints|logging|expect)"
    r"(?:\.[a-z_]+)+\b(?![/(-])"
)
FILES = (".json", ".safetensors", ".yaml", ".jsonl", ".py", ".txt", ".model", ".bin", ".csv", ".jinja", ".html")
INSTALLED = re.compile(r"pip install (?P<what>'[^']+'|\"[^\"]+\"|[\w.\[\],-]+)")
PYTHON = re.compile(r"(?<![\w./@`'-])`?orrery(?P<path>(?:\.[A-Za-z_]\w*)+)")
METHOD = re.compile(r"\blm\.(?P<name>[a-z_]+)")
RECIPES = {"train", "demo", "compare", "ladder", "finetune", "sft", "reward", "dpo", "ppo", "grpo"}
"""Verbs that take a recipe's keys as flags with a dot."""

SCHEMAS = (Recipe, WordVectorRecipe, StagesSettings)
EVERYWHERE = {"--help", "--debug", "--version"}
PLACEHOLDER = re.compile(r"[A-Z][A-Z_-]*|\.\.\.")
PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]


class Message(NamedTuple):
    """A text of a module, with ``X`` where it is filled, and its line."""

    module: str
    line: int
    text: str


def messages(file: Path) -> Iterator[Message]:
    """Yield the texts of a module that are no documentation."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    name = file.relative_to(SOURCE).as_posix().removeprefix("orrery/")
    inside = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            inside |= {id(part) for part in node.values}
            parts = [part.value if isinstance(part, ast.Constant) else HOLE for part in node.values]
            yield Message(name, node.lineno, "".join(map(str, parts)))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone | inside:
            yield Message(name, node.lineno, node.value)


def faults(text: str) -> list[str]:
    """Return what is wrong with the commands, keys, packages and names in a text."""
    if " " not in text.strip():  # a name, and no sentence
        return []
    wrongs = [fault for line in commands(text) if (fault := command_fault(line))]
    wrongs += [f"no recipe has the key {key}" for key in recipe_keys(text) if not is_key(key)]
    wrongs += [fault for match in INSTALLED.finditer(text) if (fault := package_fault(match["what"].strip("'\",")))]
    wrongs += [f"there is no orrery{match['path']}" for match in PYTHON.finditer(text) if not _there(match["path"])]
    wrongs += [f"a model has no {m['name']}" for m in METHOD.finditer(text) if not hasattr(LanguageModel, m["name"])]
    return wrongs


def commands(text: str) -> list[list[str]]:
    """Return the commands in a text, in words; one that is in no marks ends where it last makes sense."""
    lines = []
    for match in COMMAND.finditer(text):
        if match["mark"]:
            line = match["line"].partition(match["mark"])[0]
        else:
            line = re.split(r"[;`]|, | \(|\)|: ", match["line"])[0].rstrip(".?")
        try:
            words = shlex.split(line)
        except ValueError:
            words = line.split()
        if words and words[0] in VERBS:
            lines.append(words if match["mark"] else _longest(words))
    return lines


def _longest(words: list[str]) -> list[str]:
    """Return the longest beginning that is a command with all flags of the words, else all words before the prose."""
    flags = max((place for place, word in enumerate(words) if word.startswith("-")), default=-1)
    for end in range(len(words), max(flags, 0), -1):
        if not command_fault(words[:end]):
            return words[:end]
    return words


def command_fault(words: Sequence[str]) -> str:
    """Return why a command could not be given, with something for each word in capitals; nothing where it could."""
    known = _verb(words)
    if known == tuple(words):  # a verb is named, and no command is meant
        return ""
    errors = []
    for filling in ("1", "hf", "bash"):
        given = [filling if PLACEHOLDER.fullmatch(word) else word for word in words if word != "..."]
        try:
            _parse([word.replace("=...", f"={filling}") for word in given])
        except (cyclopts.CycloptsError, OrreryError) as error:
            errors.append(f"`orrery {shlex.join(words)}`: {error}")
        else:
            return ""
    return errors[0]


def _verb(words: Sequence[str]) -> tuple[str, ...]:
    """Return the beginning of a command that names its verb."""
    if words[0] in ("evaluate",):
        return tuple(words[:1])
    app = build([words[0]])[words[0]]
    nested = len(words) > 1 and words[1] in app and not words[1].startswith("-")
    return tuple(words[: 2 if nested else 1])


def _parse(words: list[str]) -> None:
    """Bind a command line to its verb, its keys to the schema, and the settings of a task to the task."""
    _, given, _ = build(words).parse_args(words, exit_on_error=False, print_error=False)
    name = words[0]
    if name in RECIPES:
        rest = given.arguments.get("overrides", given.arguments.get("words", ()))
        flags = rest[next((place for place, word in enumerate(rest) if word.startswith("--")), len(rest)) :]
        for key, _ in from_flags(flags, {*Recipe.model_fields, LADDER}):
            if not is_key(key):
                raise OrreryError(f"no recipe has the key {key}", "")
    if name == "evaluate" and len(words) > 2:
        task = next((word for word in words[1:3] if word in tasks()), "text")  # a name that the message is filled with
        rest = [word for word in words[1:] if word != task]
        task_parser(task).parse_args(rest, exit_on_error=False, print_error=False)


@cache
def task_parser(task: str) -> cyclopts.App:
    """Return the parser of a task of ``evaluate``."""
    module, _, function = tasks()[task].target.partition(":")
    app = cyclopts.App(version_flags=())
    app.default(getattr(import_module(module), function))
    return app


@cache
def flags_of(verb: str) -> frozenset[str]:
    """Return the flags of a verb, by its words."""
    name, _, rest = verb.partition(" ")
    app = task_parser(rest) if name == "evaluate" and rest else build([name])[name]
    app = app[rest] if rest and name != "evaluate" else app
    known = app.assemble_argument_collection() if app.default_command else ()
    return frozenset(flag for argument in known for flag in argument.names) | EVERYWHERE


def bare_flags(text: str) -> list[str]:
    """Return the flags that stand outside commands."""
    inside: list[str] = []
    for words in commands(text):
        inside += [flag for word in words for flag in FLAG.findall(word)]
    flags = FLAG.findall(text)
    for flag in inside:
        flags.remove(flag)
    return flags


def recipe_keys(text: str) -> list[str]:
    """Return what looks like a key of a recipe in a text."""
    return [key for key in KEY.findall(text) if not key.endswith(FILES)]


def is_key(key: str) -> bool:
    """Say whether some recipe has a dotted key; letters in capitals stand for a part of it."""
    if key.startswith(f"{LADDER}.") or key == LADDER:
        return key == LADDER or has_key(LadderSettings, key.partition(".")[2])
    return any(has_key(schema, key.replace("-", "_")) for schema in SCHEMAS)


def package_fault(what: str) -> str:
    """Return what is wrong with a package that a message installs."""
    name, _, extras = what.partition("[")
    wanted = [extra for extra in extras.rstrip("]").split(",") if extra]
    if name == HOLE:
        return ""
    if name == PROJECT["name"]:
        missing = [extra for extra in wanted if extra not in PROJECT["optional-dependencies"]]
        return f"there is no extra {missing}" if missing else ""
    known = {
        re.split(r"[\[<>=]", one)[0]
        for group in (PROJECT["dependencies"], *PROJECT["optional-dependencies"].values())
        for one in group
    }
    return (
        ""
        if name in known | BESIDE and not wanted
        else f"pip install {what} is not ours: the distribution is {PROJECT['name']}"
    )


def _there(path: str) -> bool:
    """Say whether a dotted name below ``orrery`` is one."""
    here: Any = orrery
    if HOLE in path.split("."):
        return True
    for place, part in enumerate(path.strip(".").split("."), start=1):
        if not hasattr(here, part):
            try:
                here = import_module("orrery." + ".".join(path.strip(".").split(".")[:place]))
            except ImportError:
                return False
        else:
            here = getattr(here, part)
    return True


def shown_faults(words: Sequence[str], hint: str) -> list[str]:
    """Return what is wrong with a hint that a command line was answered with: its flags must be those of its verb."""
    wrongs = faults(hint)
    verb = verb_of(words)
    if verb is None:
        return wrongs
    for flag in bare_flags(hint):
        of_a_recipe = verb.split()[0] in RECIPES and is_key(flag.removeprefix("--"))
        if flag not in flags_of(verb) and not of_a_recipe:
            wrongs.append(f"`orrery {verb}` has no {flag}: {hint}")
    return wrongs


def verb_of(words: Sequence[str]) -> str | None:
    """Return the verb of a command line, of groups and of ``evaluate`` with its second word; nothing for no verb."""
    if not words or words[0] not in VERBS:
        return None
    if words[0] == "evaluate":
        task = next((word for word in words[1:3] if word in tasks()), None)
        return f"evaluate {task}" if task else "evaluate"
    app = build([words[0]])[words[0]]
    nested = len(words) > 1 and not words[1].startswith("-") and words[1] in app
    return f"{words[0]} {words[1]}" if nested else words[0]
