"""The page of ``orrery --help``: every verb and its line, written without the library that parses command lines."""

import shutil
import textwrap
from collections.abc import Mapping

ABOUT = "Train Transformers on your own text, use them, look inside, and check every path by another."
EPILOGUE = (
    "--debug, anywhere, shows the traceback of an error. Each flag may also be set in the environment as "
    "ORRERY_VERB_FLAG: a flag beats the environment, the environment beats a file."
)
ASKS_FOR_IT: tuple[list[str], ...] = ([], ["--help"], ["-h"])
"""The command lines that mean this page; it answers in a fifth of the time that the import of the parser takes."""

_FLAGS = {"--help (-h)": "Display this message and exit.", "--version": "Display application version."}
_WIDEST = 120


def overview(summaries: Mapping[str, str], width: int | None = None) -> str:
    """Return the page, as wide as the terminal: the look of the pages of single verbs."""
    columns = min(max(width or shutil.get_terminal_size().columns, 40), _WIDEST)
    inside = columns - 4
    names = max(map(len, (*summaries, *_FLAGS)))
    rows = [("╭─ Commands " + "─" * columns)[: columns - 1] + "╮"]
    for name, summary in (*sorted(summaries.items()), *_FLAGS.items()):
        lines = textwrap.wrap(summary, inside - names - 2)
        for place, line in enumerate(lines):
            rows.append(f"│ {name if place == 0 else '':<{names}}  {line:<{inside - names - 2}} │")
    rows.append("╰" + "─" * (columns - 2) + "╯")
    paragraphs = ("Usage: orrery COMMAND", ABOUT, "\n".join(rows), EPILOGUE)
    return "\n\n".join(text if "\n" in text else textwrap.fill(text, columns) for text in paragraphs)
