"""All tables of the course, in the order in which they are printed, and their page."""

import re
from collections.abc import Iterator

from orrery.planning.data_table import gpt3_table
from orrery.planning.published import gpt3
from orrery.planning.table import PaperTable
from orrery.reports.making import Making
from orrery.reports.page import Heading, document, figure, markup_table, section, visible
from orrery_course.papers import chinchilla, complexity, energy, gpt3_compute, model_sizes, training_runs


def tables() -> Iterator[PaperTable]:
    """Yield every table, from what models are to what they cost."""
    yield model_sizes.model_sizes_table()
    yield training_runs.models_table()
    yield model_sizes.gpt_table()
    yield gpt3.sizes_table()
    yield gpt3.matrices_table()
    yield complexity.attention_block_table()
    yield complexity.layers_table()
    yield complexity.crossover_table()
    yield mixture_table()
    yield gpt3_compute.compute_table()
    yield gpt3_compute.case_study_table()
    yield training_runs.runs_table()
    yield from (chinchilla.sizes_table(approach) for approach in chinchilla.APPROACHES)
    yield chinchilla.approaches_table()
    yield energy.energy_table()
    yield energy.brain_table()


def mixture_table() -> PaperTable:
    """Return GPT-3's mixture of corpora (G10)."""
    return PaperTable(
        "gpt3-mixture",
        "GPT-3's mixture, epochs elapsed when training for 300 billion tokens",
        "Brown et al. 2020, Table 2.2; deck S3",
        ("corpus", "tokens", "weight", "epochs", "slide", "weight x 300 billion / tokens"),
        gpt3_table(),
    )


def page(making: Making) -> str:
    """Return one offline page with all tables and their figures; the same bytes every time."""
    listed = list(tables())
    lead = "What the course prints and what papers print, recomputed. Where a number does not follow, both are shown."
    heading = Heading("plan", "The tables of the course", (f"{len(listed)} tables",), lead)
    links = "".join(f'<li><a href="#{visible(one.name)}">{visible(one.title)}</a></li>' for one in listed)
    parts = [section("Contents", f"<ul>{links}</ul>"), *map(part, listed)]
    return document(heading, parts, making)


def part(table: PaperTable) -> str:
    """Return the section of a table: its figure, its rows, its notes and its source."""
    notes = "".join(f"<li>{visible(note)}</li>" for note in table.notes)
    rows = markup_table(table.columns, ([cell(text) for text in row] for row in table.rows))
    parts = [
        figure(table.figure, table.caption) if table.figure else "",
        f'{rows}\n<p class="source">{visible(f"Source: {table.source}.")}</p>',
        f"<ul>{notes}</ul>" if notes else "",
    ]
    return section(table.title, "\n".join(filter(None, parts)), table.name)


def cell(text: str) -> str:
    """Return a cell: numbers stay on one line, and no word is broken; a table that is too wide can be scrolled."""
    style = "white-space:nowrap" if re.fullmatch(r"[-+\d.,e %]+", text) else "overflow-wrap:normal"
    return f'<span style="{style}">{visible(text)}</span>'
