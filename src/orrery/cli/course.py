"""``orrery course``: the slides of the lectures, and what runs each of them."""

import ast
import shlex
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from orrery.cli.tables import print_table
from orrery.errors import RunError, UsageError
from orrery_course.course import Item, decks, every_item, find, searchable, searched


def course(deck: str | None = None, *item: str, picture: Path | None = None, overwrite: bool = False) -> None:
    """Run what a slide of the lectures asks for or shows; without a name list the decks, with a deck its items.

    Words without a deck are searched in all of them. The code is printed before it runs. Commands run in this folder
    and write below runs/course.

    Args:
        deck: S0, S1, S2, S3 or S4; left out, all.
        item: The name of an item, or words of its slide, its title or its subject.
        picture: SVG file for the picture of an item that draws one.
        overwrite: Replace the file.
    """
    known = deck is not None and deck.upper() in decks()
    if picture is not None and (deck is None or (known and not item)):
        raise UsageError("--picture is of one item", "name it: orrery course S1 automaton --picture FILE.svg")
    if deck is None:
        for number, one in enumerate(decks().values()):
            print(("\n" if number else "") + f"{one.name}: {one.title}")
            _list(one.items, ("item", "slide"))
        print(
            "\nA deck's items: orrery course S3; one of them: orrery course S3 swap; words: orrery course beam search"
        )
    elif not known:
        _search(" ".join((deck, *item)), picture, overwrite)
    elif not item:
        chosen = find(deck)
        print(f"{chosen.name}: {chosen.title}\n\n{chosen.about}\n")
        _list(chosen.items, ("item", "slide", "title"))
    else:
        chosen = find(deck)
        found = chosen.find(" ".join(item))
        if len(found) > 1:
            names = ", ".join(one.name for one in found)
            raise UsageError(f"{len(found)} items of {chosen.name} match {' '.join(item)!r}", f"give one of: {names}")
        _run(found[0], picture, overwrite)


def _search(text: str, picture: Path | None, overwrite: bool) -> None:
    """Run the one item of any deck that words name, or list those that they name."""
    found = searched(every_item(), text)
    if not found:
        raise UsageError(f"no slide of the course is about {text[:80]!r}", _otherwise(text))
    if len(found) == 1:
        return _run(found[0], picture, overwrite)
    if picture is not None:
        raise UsageError(f"{len(found)} items match {text!r}, and --picture is of one", "name its deck and the item")
    _list(found, ("deck", "item", "slide"))
    print(f"\nOne of them: orrery course {found[0].deck} {found[0].name}")


def _otherwise(text: str) -> str:
    """Return what may have been meant by words that no slide has: a verb, or words that are spelled nearly so."""
    from orrery.cli.suggestions import VERBS_ELSEWHERE
    from orrery.cli.verbs import VERBS

    verb = VERBS_ELSEWHERE.get(text.lower(), text.lower())
    if verb in VERBS:
        return f"the program has it: orrery {verb} --help"
    close = get_close_matches(text.lower(), searchable(), 1, 0.8)
    beside = "orrery course lists all slides, and docs/glossary.md explains terms of the field"
    return f"did you mean {close[0]}?" if close else beside


def _list(items: Sequence[Item], columns: tuple[str, ...]) -> None:
    rows = [{"deck": one.deck, "item": one.name, "slide": one.slide, "title": one.title} for one in items]
    print_table(columns, [[row[column] for column in columns] for row in rows])


def _run(item: Item, picture: Path | None, overwrite: bool) -> None:
    """Print what an item is, its code, what it prints, and what the slide has; write its picture, or say how."""
    from orrery.checkpoints.outputs import OutputFile

    target = None if picture is None else OutputFile.shown("svg", picture, overwrite=overwrite)
    print(f"{item.deck}, {item.slide} ({item.name})\n{item.title}\n\n{item.about}\n")
    if item.source:
        print("\n".join(f"    {line}".rstrip() for line in item.source.splitlines()), end="\n\n", flush=True)
    drawn = _shown(item)
    for line in item.lines.splitlines():
        print(f"    {line}\n", flush=True)
        _command(line)
    if item.beside:
        print(f"\n{item.beside}")
    if target is not None and not drawn:
        raise UsageError(f"{item.name} draws no picture", "leave --picture out")
    if target is not None:
        target.write(drawn)
        print(f"\npicture: {picture}")
    elif drawn:
        print(f"\nIt draws a picture: orrery course {item.deck} {item.name} --picture {item.name}.svg writes it")


def _shown(item: Item) -> str:
    """Run the code of an item and return the picture that its last line gives; nothing where it gives none."""
    tree, names = ast.parse(item.source), {"__name__": "__course__"}
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.Expr):
        exec(compile(tree, f"<{item.name}>", "exec"), names)
        return ""
    tree.body.pop()
    exec(compile(tree, f"<{item.name}>", "exec"), names)
    value: Any = eval(compile(ast.Expression(last.value), f"<{item.name}>", "eval"), names)
    return value if isinstance(value, str) and value.startswith("<svg") else ""


def _command(line: str) -> None:
    """Run a command line of the program in this process."""
    from orrery.cli.program import run

    _, *words = shlex.split(line)
    sys.stdout.flush()
    if code := run(words):
        raise RunError(f"{line}: it ended with exit code {code}", "its own error stands above")
