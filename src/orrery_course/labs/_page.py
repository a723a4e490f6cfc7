"""The page of all labs: of each the question, the figure, its claims with their margins, and what it took."""

import re
from collections.abc import Mapping, Sequence

from orrery.reports.figures import Number
from orrery.reports.making import Making
from orrery.reports.page import Heading, document, figure, markup_table, rows_table, section, visible
from orrery_course.labs._lab import LabResult, about, flat, questions, readable
from orrery_course.labs._tables import Runs, Shown, tables


def page(by_name: Mapping[str, LabResult], making: Making) -> str:
    """Return the whole page; the same results give the same bytes."""
    parts = [contents(by_name), *(lab(one) for one in by_name.values()), comparisons(by_name)]
    return document(summary(by_name), parts, making)


def summary(by_name: Mapping[str, LabResult]) -> Heading:
    """Return the heading, with how many claims hold."""
    claims = sum(len(one.margins) for one in by_name.values())
    failed = sum(len(one.failed) for one in by_name.values())
    verdict = (
        "every one of them holds" if not failed else f"{failed} of them {'does' if failed == 1 else 'do'} not hold"
    )
    missing = [name for name in questions() if name not in by_name]
    took = minutes(sum(one.minutes for one in by_name.values()))
    text = (
        f"{len(by_name)} of {len(by_name) + len(missing)} labs have been run, in {took}. "
        f"They make {claims} claims, and {verdict} in the worst of the seeds."
    )
    rest = f" Not run yet: {', '.join(missing)}." if missing else ""
    seeds = sorted({seed for one in by_name.values() for seed in one.runs})
    about = (f"seeds {', '.join(map(str, seeds))}" if seeds else "",)
    return Heading("labs", "The labs of the course", about, text + rest)


def commands(by_name: Mapping[str, LabResult]) -> str:
    """Return the commands that make these numbers again: one, where all labs have the same seeds and are as quick."""
    flags = {name: _flags(one) for name, one in by_name.items()}
    if len(set(flags.values())) == 1 and set(by_name) == set(questions()):
        return f"orrery lab --all {next(iter(flags.values()))}"
    return "\n".join(f"orrery lab {name} {each}" for name, each in flags.items())


def _flags(one: LabResult) -> str:
    """Return the flags with which a lab was run."""
    return f"--seeds {' '.join(map(str, one.runs))}{' --quick' if one.quick else ''}"


def contents(by_name: Mapping[str, LabResult]) -> str:
    """Return one row a lab, and after them the comparisons."""
    rows = [
        (link(one.name), visible(questions()[one.name]), verdict(one.failed), str(len(one.runs)), clock(one.minutes))
        for one in by_name.values()
    ]
    note = f"<p>Then {link(COMPARISONS, 'the comparisons of the last lecture')}, from the numbers of the labs.</p>"
    return section("All labs", markup_table(("lab", "question", "claims", "seeds", "minutes"), rows) + note)


def lab(one: LabResult) -> str:
    """Return the section of a lab."""
    seeds = f"Seed{'s' if len(one.runs) > 1 else ''} {', '.join(map(str, one.runs))}"
    how = f"{seeds}; {minutes(one.minutes)} in all" + ("; the quick setting." if one.quick else ".")
    rows = [(verdict([claim] if claim in one.failed else []), readable(margin), visible(claim))
            for claim, margin in one.margins.items()]  # fmt: skip
    claims = markup_table(("", "margin in the worst seed", "claim"), rows)
    question = f'<p class="lead">{visible(questions()[one.name])}</p>'
    said = "\n".join(f"<p>{code(paragraph)}</p>" for paragraph in about(one.name))
    return section(one.name, "\n".join((question, said, figure(one.figure, how), claims, numbers(one))), one.name)


def numbers(one: LabResult) -> str:
    """Return what was measured with each seed, folded."""
    columns = [flat(measured) for measured in one.runs.values()]
    rows = [(key, *(readable(column[key]) for column in columns)) for key in columns[0]]
    heads = ("", *(f"seed {seed}" for seed in one.runs))
    return f"<details><summary>All its numbers</summary>\n{rows_table(heads, rows)}\n</details>"


def verdict(failed: Sequence[str]) -> str:
    """Return what is said of claims of which these do not hold."""
    return '<span class="failed">does NOT hold</span>' if failed else "holds"


def link(name: str, text: str = "") -> str:
    """Return a link to a section."""
    return f'<a href="#{visible(name)}">{visible(text or name)}</a>'


def code(text: str) -> str:
    """Return a paragraph of a docstring; what stands between its marks of code is shown as code."""
    return re.sub(r"(`{1,2})(.+?)\1", r"<code>\2</code>", visible(text))


def minutes(number: Number) -> str:
    """Return a time as a reader says it."""
    return f"{number:.1f} min" if number >= 1 else f"{60 * number:.0f} s"


def clock(number: Number) -> str:
    """Return minutes and seconds as a clock shows them."""
    whole = round(60 * number)
    return f"{whole // 60}:{whole % 60:02}"


COMPARISONS = "comparisons"


def comparisons(by_name: Mapping[str, LabResult]) -> str:
    """Return the tables of the last lecture, each cell with the lab that measured it."""
    note = (
        "The tables with which the course ends, from the numbers above: the least and the greatest over the seeds, "
        "and in brackets the lab. Where no lab measures a cell it says so."
    )
    runs: Runs = {name: list(one.runs.values()) for name, one in by_name.items()}
    parts = [
        f"<h3>{visible(table.title)}</h3>\n"
        + markup_table(table.heads, [(visible(feature), *map(cell, shown)) for feature, shown in table.rows(runs)])
        for table in tables()
    ]
    return section("The comparisons of the last lecture", "\n".join((f"<p>{visible(note)}</p>", *parts)), COMPARISONS)


def cell(shown: Shown) -> str:
    """Return a cell with a link to the lab that measured it."""
    return visible(shown.text) + (f" ({link(shown.lab)})" if shown.lab else "")
