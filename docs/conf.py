"""Sphinx configuration: Markdown pages, every warning an error (see ``make docs``)."""

import sys
from pathlib import Path

from pydantic import BaseModel

import orrery

sys.path.append(str(Path(__file__).parent))

project = "Orrery"
author = "The Orrery developers"
copyright = author
version = release = orrery.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "_architecture",
    "_benchmarks",
    "_exactness",
    "_families",
    "_examples",
    "_interactive",
    "_flow",
    "_landing",
    "_math",
]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
nitpicky = True
# Types of other libraries and shapes of tensors have no page here.
nitpick_ignore_regex = [("py:.*", r"(?!orrery\.).*"), ("py:.*", r"orrery\.(?!errors).*")]
# As text of the source they would be shown as written; a method whose settings stand one by one has no such text.
autodoc_preserve_defaults = False
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
maximum_signature_line_length = 100
napoleon_google_docstring = True
napoleon_numpy_docstring = False
exclude_patterns = ["_build", "examples"]

html_theme = "furo"
html_title = f"Orrery {release}"
html_static_path = ["_static"]
html_css_files = ["wrap.css"]
html_favicon = "_static/icon.svg"
html_extra_path = ["404.html"]
html_math_renderer = "mathml"


def setup(app: object) -> None:
    """Keep napoleon from reading ``What it is: ...`` of a property as its type, and autodoc from marking pydantic."""

    def whole(app: object, what: str, name: str, it: object, options: object, lines: list[str]) -> None:
        if what == "property":
            lines.insert(0, "")

    app.connect("autodoc-process-docstring", whole, priority=100)  # type: ignore[attr-defined]

    def unmarked(app: object, page: str, source: list[str]) -> None:
        # Autodoc writes the annotations that it reads in a source into the class, and into those that it inherits from;
        # pydantic takes what it finds in BaseModel for fields of every model that a page's examples define.
        BaseModel.__annotations__.clear()

    app.connect("source-read", unmarked)  # type: ignore[attr-defined]
