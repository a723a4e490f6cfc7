"""Examples that run while the documentation is built: every number and picture under one comes from its code.

A page holds Python in ``{example}`` blocks and command lines in ``{command}`` blocks. They run from top to bottom in
one namespace a page, in a folder that stands for the reader's own; what they print is shown below them. The value of
a last line that is an SVG picture is drawn. ``{value}`` with an expression puts a number into a sentence.
"""

import ast
import contextlib
import hashlib
import io
import os
import random
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective, SphinxRole

DOCS = Path(__file__).parent
HOME = DOCS / "_build" / "examples"
ALONE = DOCS / "_build" / "pages"
"""Where pages run, each in a folder of its own: what they write stays out of the checkout."""
WIDE = 560
"""From this width on, in pixels, a picture is wide."""
RUN = ("python docs/examples/countries.py countries.txt", "orrery train docs/examples/countries.yaml")
"""The commands that make the model of the pages; they are shown there, and run once for all pages."""

_PAGES: WeakKeyDictionary[nodes.document, "Page"] = WeakKeyDictionary()
_FENCE = re.compile(r"^```\{(?P<kind>example|command)\}\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_OPTION = re.compile(r"\A(:[a-z]+:.*\n)+\n?")
_VALUE = re.compile(r"\{value\}`(?P<code>[^`]+)`")


@dataclass
class Page:
    """The blocks of one page as they run: their names, and the folder in which they stand."""

    folder: Path
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__example__"})

    def run(self, code: str) -> tuple[str, str]:
        """Run Python; return what it printed, and the picture that its last line gave or nothing."""
        tree = ast.parse(code)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        with _inside(self.folder) as printed:
            exec(compile(tree, "<example>", "exec"), self.names)
            shown = None if last is None else eval(compile(ast.Expression(last.value), "<example>", "eval"), self.names)
            picture = isinstance(shown, str) and shown.startswith("<svg")
            if shown is not None and not picture:
                print(shown if isinstance(shown, str) else repr(shown))
        return printed.getvalue(), shown if picture else ""

    def value(self, code: str) -> str:
        """Return an expression's value as the page shows it."""
        return str(eval(code, self.names))

    def command(self, lines: str) -> str:
        """Run command lines and return what they wrote to stdout."""
        return "".join(command(line, self.folder) for line in joined(lines))


def blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield the kind and the code of each block of a page, and of each value in its sentences."""
    parts = [(m.start(), m["kind"], _OPTION.sub("", m["body"])) for m in _FENCE.finditer(text)]
    parts += [(m.start(), "value", m["code"]) for m in _VALUE.finditer(text)]
    yield from ((kind, code) for _, kind, code in sorted(parts))


def joined(lines: str) -> list[str]:
    """Return the commands of a block: comments left out, lines that end in a backslash joined."""
    whole = lines.replace("\\\n", " ").splitlines()
    return [line for line in whole if line.strip() and not line.startswith("#")]


def command(line: str, folder: Path) -> str:
    """Run one command line in this process and return its stdout.

    Raises:
        RuntimeError: it failed.
    """
    from orrery.cli.program import run

    program, *words = shlex.split(line)
    with _inside(folder) as printed:
        if program == "orrery":
            code = run(words)
        elif program == "python" and words[0].endswith(".py"):
            code = _script(words)
        else:
            raise RuntimeError(f"a page may run orrery and python FILE.py, not: {line}")
    if code:
        raise RuntimeError(f"{line}: exit code {code}; run it by hand to see its error")
    return printed.getvalue()


def needs_model(text: str) -> bool:
    """Say whether a page makes the model of ``RUN``, and so uses it."""
    return RUN[-1] in text


def prepare(folder: Path) -> Path:
    """Make the folder of the reader: the checkout's ``docs/examples``, and the model of the pages by their commands."""
    with_examples(folder)
    for line in RUN:
        command(line, folder)
    return folder


def with_examples(folder: Path) -> Path:
    """Make a folder with the checkout's ``docs/examples``."""
    shutil.copytree(DOCS / "examples", folder / "docs" / "examples", dirs_exist_ok=True)
    return folder


def prepared(home: Path = HOME) -> Path:
    """Return the folder of ``prepare``, made again only where the sources differ from those that made it."""
    stamp, key = home / "sources", _fingerprint()
    if not stamp.is_file() or stamp.read_text() != key:
        shutil.rmtree(home, ignore_errors=True)
        prepare(home)
        stamp.write_text(key)
    return home


def _prepare_apart() -> None:
    """Make the folder of the reader in another process: this one is forked, and may not have computed before."""
    code = f"import sys; sys.path.insert(0, {str(DOCS)!r}); import _examples; _examples.prepared()"
    subprocess.run([sys.executable, "-c", code], check=True)


class Example(SphinxDirective):
    """Python, what it prints and what it draws."""

    has_content = True
    option_spec = {"caption": directives.unchanged}  # noqa: RUF012

    def run(self) -> list[nodes.Node]:
        """Run the block in the namespace of its page."""
        code = "\n".join(self.content)
        printed, picture = page_of(self.state.document).run(code)
        shown_nodes: list[nodes.Node] = [nodes.literal_block(code, code, language="python")]
        if printed:
            shown_nodes.append(_output(printed))
        if picture:
            shown_nodes.append(_figure(picture, self.options.get("caption", "")))
        return shown_nodes


class Command(SphinxDirective):
    """Command lines and what they write; ``last`` shows only so many lines, ``made`` says that they ran already."""

    has_content = True
    option_spec = {"last": directives.positive_int, "made": directives.flag}  # noqa: RUF012

    def run(self) -> list[nodes.Node]:
        """Run the lines in the reader's folder."""
        text = "\n".join(self.content)
        shown_nodes: list[nodes.Node] = [nodes.literal_block(text, text, language="bash")]
        if "made" in self.options:
            if joined(text) != list(RUN):
                raise self.error(f"made for all pages are only: {RUN}")
            return shown_nodes
        lines = page_of(self.state.document).command(text).splitlines()
        shown = lines[-self.options["last"] :] if "last" in self.options else lines
        return [*shown_nodes, _output("\n".join(shown))] if shown else shown_nodes


class Quiz(SphinxDirective):
    """Questions of the quiz by name or deck, each with its options and, behind a click, its computed answer."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Compute and show them."""
        from orrery_course.quiz import chosen

        shown_nodes: list[nodes.Node] = []
        for entry in chosen(" ".join(self.content).split()):
            shown_nodes += _asked(entry)
        return shown_nodes


class Value(SphinxRole):
    """A number in a sentence, from the code of its page."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Evaluate the expression."""
        text = page_of(self.inliner.document).value(self.text)
        return [nodes.Text(text)], []


def page_of(document: nodes.document) -> Page:
    """Return the page that is read now."""
    if document not in _PAGES:
        text = Path(document["source"]).read_text(encoding="utf-8")
        docs = Path(document.settings.env.srcdir)
        _PAGES[document] = Page(_own(Path(document["source"]).relative_to(docs), needs_model(text)))
    return _PAGES[document]


def _own(page: Path, with_model: bool) -> Path:
    """Make a page's folder again: what another page or an earlier build has written is not in it."""
    folder = ALONE / page.with_suffix("")
    shutil.rmtree(folder, ignore_errors=True)
    if with_model:
        return Path(shutil.copytree(prepared(), folder))
    return with_examples(folder)


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx; pages with examples are read again in every build, for their numbers are the code's."""
    app.add_directive("example", Example)
    app.add_directive("command", Command)
    app.add_directive("question", Quiz)
    app.add_role("value", Value())
    app.connect("builder-inited", lambda app: _prepare_apart())
    app.connect("env-get-outdated", lambda app, env, added, changed, removed: _pages(app))
    return {"parallel_read_safe": True}


def _pages(app: Any) -> list[str]:
    """Return the pages with examples; their model is made before any of them is read."""
    texts = {name: Path(app.env.doc2path(name)).read_text(encoding="utf-8") for name in app.env.found_docs}
    if any(needs_model(text) for text in texts.values()):
        prepared()
    return [name for name, text in texts.items() if any(True for _ in blocks(text))]


def _output(text: str) -> nodes.literal_block:
    return nodes.literal_block(text.rstrip(), text.rstrip(), language="text", classes=["output"])


def _figure(svg: str, caption: str) -> nodes.raw:
    below = f"<figcaption>{caption}</figcaption>" if caption else ""
    # On a phone the letters of a wide picture would be too small to read: it moves sideways instead.
    wide = " wide" if int(re.findall(r' width="(\d+)', svg)[0]) > WIDE else ""
    return nodes.raw("", f'<figure class="example{wide}">{svg}{below}</figure>', format="html")


def _asked(entry: Any) -> list[nodes.Node]:
    """Return a question, its options, and an answer that is opened by a click."""
    from orrery_course.quiz import lettered, shown

    found = entry.question
    options = nodes.enumerated_list(enumtype="loweralpha", prefix="", suffix=".")
    for option in lettered(found).values():
        options += nodes.list_item("", nodes.paragraph("", option))
    wrong = "".join(f"<li>not <em>{escape(one.says)}</em>: {escape(one.because)}</li>" for one in found.wrong)
    more = f"<p>See also: <code>{escape(found.try_this)}</code></p>" if found.try_this else ""
    answer = (
        f"<details><summary>Answer</summary><p><strong>{escape(shown(found))}</strong></p><p>{escape(found.why)}</p>"
        f"<ul>{wrong}</ul>{more}</details>"
    )
    where = nodes.paragraph("", "", nodes.strong("", entry.name), nodes.Text(f" ({entry.deck}, {entry.slide})"))
    return [
        where,
        nodes.paragraph("", found.asks),
        *([options] if len(options) else []),
        nodes.raw("", answer, format="html"),
    ]


def _script(words: list[str]) -> int:
    before, sys.argv = sys.argv, words
    try:
        runpy.run_path(words[0], run_name="__main__")
    finally:
        sys.argv = before
    return 0


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[io.StringIO]:
    """Stand in a folder, without the user's settings, and keep what is printed."""
    kept = {name: os.environ.pop(name) for name in list(os.environ) if name == "ORRERY_RUNS"}
    state = random.getstate()
    try:
        told = contextlib.redirect_stderr(io.StringIO())
        with contextlib.chdir(folder), told, contextlib.redirect_stdout(io.StringIO()) as printed:
            yield printed
    finally:
        os.environ.update(kept)
        random.setstate(state)


def _fingerprint() -> str:
    """Return the sum of what decides the model of the pages: the program, the recipe, the text."""
    import orrery

    files = [*Path(orrery.__file__).parent.rglob("*.py"), *(DOCS / "examples").iterdir()]
    total = hashlib.sha256()
    for path in sorted(path for path in files if path.is_file()):
        total.update(path.read_bytes())
    return total.hexdigest()
