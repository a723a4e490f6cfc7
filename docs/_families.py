"""Pages of the model families, written from the family files themselves whenever the documentation is built."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from inspect import getdoc
from pathlib import Path
from typing import Any

from orrery.errors import OrreryError
from orrery.families import defaults_of, load_family, model_type, names
from orrery.laws import exactness
from orrery.planning.spec_tree import lines, tree

FOLDER = Path(__file__).parent / "families"
ASSEMBLIES = {
    "Decoder": "decoder",
    "Encoder": "encoder",
    "EncoderDecoder": "encoder-decoder",
    "DualEncoder": "dual encoder",
    "HierarchicalEncoder": "hierarchical encoder",
    "MaskedAutoencoder": "masked autoencoder",
}
_CODE = re.compile(r"``(.+?)``")


@dataclass(frozen=True)
class Page:
    """What a family's docstring says: names, papers, a summary and the paragraphs after it."""

    family: str
    title: str
    papers: str
    summary: str
    paragraphs: tuple[str, ...]
    assembly: str

    @property
    def row(self) -> str:
        """The line of the index."""
        cells = (f"[{_plain(self.title)}]({self.family}.md)", f"`{model_type(self.family)}`")
        cells += (_plain(self.papers), _text(self.summary), self.assembly)
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def read(family: str) -> Page:
    """Read a family's docstring: ``Name (paper): summary.``, then paragraphs, one of them on what is peculiar to it.

    Raises:
        ValueError: it has another form.
    """
    rules = load_family(family)
    first, *others = (" ".join(part.split()) for part in (getdoc(rules) or "").split("\n\n"))
    match = re.fullmatch(r"(?P<head>.+?\)[^():]*): (?P<summary>.+)", first)
    if match is None or not any(part.startswith("Peculiar to it") for part in others):
        raise ValueError(
            f"families/{family}.py: its docstring is not 'Name (paper): summary.' and 'Peculiar to it: ...'"
        )
    title = re.sub(r" \([^)]*\)", "", match["head"])
    papers = "; ".join(re.findall(r"\(([^)]*)\)", match["head"]))
    kind = type(rules.spec(rules.TINY)).__qualname__.partition(".")[0]
    return Page(family, title, papers, match["summary"].rstrip("."), tuple(others), ASSEMBLIES.get(kind, kind))


def page(facts: Page) -> str:
    """Return a family's page."""
    rules = load_family(facts.family)
    parts = [f"# {_plain(facts.title)}", f"{_text(facts.summary[:1].upper() + facts.summary[1:])}."]
    parts += [_text(part) for part in facts.paragraphs]
    parts.append(
        f"Paper: {_plain(facts.papers)}. Assembly: {facts.assembly}. In `config.json` it is the `model_type` "
        f"`{model_type(facts.family)}` of `{rules.ARCHITECTURE}`; here it is `orrery/families/{facts.family}.py`."
    )
    if beside := exactness.sentence(facts.family):
        parts += ["## Beside its reference", f"{_plain(beside)} ([Exactness](../experiments/exactness.md))."]
    parts += ["## Its parts", _size(facts.family), "The tiny configuration, on which the laws run:"]
    parts.append(f"```json\n{json.dumps(dict(rules.TINY), indent=1)}\n```")
    shown = "\n".join(lines(tree(rules.spec(rules.TINY), facts.family)))
    parts += ["It describes this model; parameters are in brackets:", f"```text\n{shown}\n```"]
    parts += [
        "## Keys of config.json",
        "What an absent key means; any other key that could change the numbers is refused.",
    ]
    parts.append(_keys(defaults_of(rules)))
    return "\n\n".join(parts) + "\n"


def index(pages: list[Page]) -> str:
    """Return the table of all families."""
    rows = "\n".join(facts.row for facts in pages)
    tree_of_pages = "\n".join(facts.family for facts in pages)
    return (
        "# Families\n\nEvery family is one file that assembles the same parts; `orrery show FAMILY` prints the tree of "
        "its parts, `orrery show --diff A B` what differs between two.\n\n"
        f"As recorded: {_plain(exactness.summary())}. Both columns of each family stand in "
        "[Exactness](../experiments/exactness.md).\n\n"
        f"| family | model_type | paper | in short | assembly |\n|---|---|---|---|---|\n{rows}\n\n"
        f"```{{toctree}}\n:hidden:\n\n{tree_of_pages}\n```\n"
    )


def write(app: Any = None) -> None:
    """Write all pages; one of a family that is gone is removed."""
    FOLDER.mkdir(exist_ok=True)
    pages = [read(family) for family in names()]
    texts = {f"{facts.family}.md": page(facts) for facts in pages} | {"index.md": index(pages)}
    for path in FOLDER.glob("*.md"):
        if path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        path = FOLDER / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True}


def _size(family: str) -> str:
    rules = load_family(family)
    try:
        count = tree(rules.spec({}), family).parameters
    except OrreryError as error:
        return f"Its defaults alone describe no model: {_plain(error.message)}."
    return f"With the defaults of its configuration it has {count:,} parameters."


def _keys(defaults: Mapping[str, Any]) -> str:
    rows = "\n".join(f"| `{key}` | `{json.dumps(value).replace('|', '')}` |" for key, value in defaults.items())
    return f"| key | default |\n|---|---|\n{rows}"


def _text(text: str) -> str:
    """Return a docstring's paragraph as Markdown: its code stays code, everything else is plain text."""
    parts = _CODE.split(text)
    return "".join(f"`{part}`" if i % 2 else _plain(part) for i, part in enumerate(parts))


def _plain(text: str) -> str:
    return re.sub(r"([\\*_\[\]<>$`{}#])", r"\\\1", text)
