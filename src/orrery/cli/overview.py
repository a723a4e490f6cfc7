"""The page of ``orrery --help``: every verb and its line, written without the library that parses command lines."""

import shutil
import textwrap
from collections.abc import Sequence

ABOUT = "Train Transformers on your own text, use them, look inside, and check every path by another."
ASKS_FOR_IT: tuple[list[str], ...] = ([], ["--help"], ["-h"])
"""The command lines that mean this page; it answers in a fifth of the time that the import of the parser takes."""

_FLAGS = {"--help (-h)": "Display this message and exit.", "--version": "Display application version."}
_WIDEST = 120


def epilogue(verb: str | None = None) -> str:
    """Return what stands below a page of help: of all verbs, or of one."""
    name = "VERB" if verb is None else verb.upper()
    return (
        "--debug, anywhere, shows the traceback of an error. Each flag may also be set in the environment, --some-flag "
        f"as ORRERY_{name}_SOME_FLAG: a flag beats the environment, the environment beats a file."
    )


def overview(verbs: Sequence[tuple[str, str, str]], width: int | None = None) -> str:
    """Return the page, as wide as the terminal: the look of the pages of single verbs.

    Args:
        verbs: group, name and summary of each, groups together.
        width: in columns; by default that of the terminal.
    """
    columns = min(max(width or shutil.get_terminal_size().columns, 40), _WIDEST)
    names = max(map(len, (*(name for _, name, _ in verbs), *_FLAGS)))
    groups = {group: [(name, said) for one, name, said in verbs if one == group] for group, _, _ in verbs}
    frames = [_frame(group, rows, names, columns) for group, rows in (*groups.items(), ("Flags", [*_FLAGS.items()]))]
    more = "'orrery VERB --help' shows the flags of one; 'orrery completion SHELL' lets a shell complete them."
    paragraphs = ("Usage: orrery VERB", ABOUT, "\n".join(frames), more, epilogue())
    return "\n\n".join(text if "\n" in text else textwrap.fill(text, columns) for text in paragraphs)


def _frame(title: str, rows: Sequence[tuple[str, str]], names: int, columns: int) -> str:
    """Return the lines of a group in a frame: names so wide, and what is said of them."""
    inside = columns - 4
    drawn = [(f"╭─ {title} " + "─" * columns)[: columns - 1] + "╮"]
    for name, said in rows:
        for place, line in enumerate(textwrap.wrap(said, inside - names - 2)):
            drawn.append(f"│ {name if place == 0 else '':<{names}}  {line:<{inside - names - 2}} │")
    return "\n".join([*drawn, "╰" + "─" * (columns - 2) + "╯"])
