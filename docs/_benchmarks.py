"""What the benchmarks recorded, for pages: tables of every record, and single numbers in sentences.

Both are read from ``benchmarks/*.json`` whenever the documentation is built. A record is named NAME.json, or
NAME.MACHINE.json where a program ran on more machines than one. In a sentence ``{recorded}`` with an expression puts a
number of a record: records are its names, ``{recorded}`f"{training['ratios']['...']['ratio']:.2f}"```.
"""

import ast
import json
from collections.abc import Mapping
from pathlib import Path
from statistics import mean, median
from typing import Any

from _benchmark_tables import TABLES
from docutils import nodes
from sphinx.util.docutils import SphinxDirective, SphinxRole

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
MISSING = "(to be measured again)"
"""Stands for a number whose record is not there yet."""
OLDER = "**To be made again**: this record is older than the header that says machine, versions and commit.\n"


def program_of(path: Path) -> str:
    """Return the name of the program that wrote a record."""
    return path.stem.partition(".")[0]


def content(path: Path) -> tuple[dict[str, Any] | None, Any]:
    """Return a record's header, none for one that is older than headers, and what was found."""
    whole = json.loads(path.read_text(encoding="utf-8"))
    return (whole["header"], whole["found"]) if "header" in whole else (None, whole)


def found_of(name: str) -> Any:
    """Return what the record of this name found."""
    return content(BENCHMARKS / f"{name}.json")[1]


def told(header: Mapping[str, Any]) -> str:
    """Return where, when and of what a record was made."""
    machine, versions = header["machine"], header["versions"]
    features = " ".join(machine["features"]) or "no known features"
    others = ", ".join(f"{name} {version}" for name, version in versions.items() if isinstance(version, str))
    threads = header["threads"]["torch"]
    said = f"{machine['processor']} ({machine['cores']} cores; {features}), load before {header['load_before'][0]}, "
    said += f"{threads} threads of torch, " if threads is not None else ""
    changed = " with changes" if header["changed"] else ""
    said += f"{header['date']}, commit {(header['commit'] or 'unknown')[:8]}{changed}; {others}."
    small = " **The small form: its numbers mean nothing.**" if header["small"] else ""
    return f"{said}{small}\n\n```\n{header['command']}\n```\n"


def page() -> str:
    """Return a section for each recorded file, with what its program says of itself.

    Raises:
        ValueError: a record has no table here.
    """
    parts = []
    for path in sorted(BENCHMARKS.glob("*.json")):
        program = program_of(path)
        if program not in TABLES:
            raise ValueError(f"benchmarks/{path.name} has no table in docs/_benchmark_tables.py")
        said = ast.get_docstring(ast.parse((BENCHMARKS / f"{program}.py").read_text(encoding="utf-8"))) or ""
        summary = " ".join(said.partition("\n\n")[0].split()).replace("`", "")
        header, numbers = content(path)
        parts.append(f"## {path.stem}\n\n{summary} Program: `benchmarks/{program}.py`.\n")
        parts += [OLDER if header is None else told(header), TABLES[program](numbers)]
    return "\n".join(parts)


def recorded(code: str) -> str:
    """Return the value of an expression over records, as a sentence shows it."""
    names = {node.id for node in ast.walk(ast.parse(code, mode="eval")) if isinstance(node, ast.Name)} & set(TABLES)
    known = {}
    for name in names:
        path = BENCHMARKS / f"{name}.json"
        if not path.is_file():
            return MISSING
        known[name] = content(path)[1]
    return str(eval(code, {**known, "machines": machines, "mean": mean, "median": median}))


def machines(name: str) -> dict[str, Any]:
    """Return what each record of a program found, by the processor that it was made on."""
    by_processor = {}
    for path in sorted((*BENCHMARKS.glob(f"{name}.json"), *BENCHMARKS.glob(f"{name}.*.json"))):
        header, own = content(path)
        by_processor["unknown" if header is None else header["machine"]["processor"]] = own
    return by_processor


class Benchmarks(SphinxDirective):
    """The sections."""

    def run(self) -> list[nodes.Node]:
        """Make them from the records as they are."""
        _depend(self.env)
        return self.parse_text_to_nodes(page(), allow_section_headings=True)


class Recorded(SphinxRole):
    """A number of a record in a sentence."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Read it."""
        _depend(self.env)
        return [nodes.Text(recorded(self.text))], []


def _depend(env: Any) -> None:
    for path in BENCHMARKS.glob("*.json"):
        env.note_dependency(str(path))


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_directive("benchmarks", Benchmarks)
    app.add_role("recorded", Recorded())
    return {"parallel_read_safe": True}
