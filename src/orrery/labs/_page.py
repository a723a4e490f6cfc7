"""The page of all labs: of each the question, the figure, its claims with their margins, and what it took."""

from collections.abc import Mapping

from orrery.labs._lab import LabResult, questions
from orrery.labs._tables import tables
from orrery.reports.page import document, figure, rows_table, section, visible


def page(found: Mapping[str, LabResult]) -> str:
    """Return the whole page; the same results give the same bytes."""
    parts = [summary(found), contents(found), *(lab(one) for one in found.values()), comparisons(found)]
    return document("Orrery: the labs", "\n".join(parts))


def summary(found: Mapping[str, LabResult]) -> str:
    """Return the heading and how many claims hold."""
    claims = sum(len(one.margins) for one in found.values())
    failed = sum(len(one.failed) for one in found.values())
    verdict = (
        "every one of them holds" if not failed else f"{failed} of them {'does' if failed == 1 else 'do'} not hold"
    )
    missing = [name for name in questions() if name not in found]
    took = minutes(sum(one.minutes for one in found.values()))
    text = (
        f"{len(found)} of {len(found) + len(missing)} labs have been run, in {took}. "
        f"They make {claims} claims, and {verdict} in the worst of the seeds."
    )
    rest = f" Not run yet: {', '.join(missing)}." if missing else ""
    return f'<header>\n<h1>Orrery: the labs</h1>\n<p class="lead">{visible(text + rest)}</p>\n</header>'


def contents(found: Mapping[str, LabResult]) -> str:
    """Return one row a lab."""
    rows = [
        (name, questions()[name], "holds" if not one.failed else "does NOT hold", minutes(one.minutes))
        for name, one in found.items()
    ]
    return section("All labs", rows_table(("lab", "question", "claims", "took"), rows))


def lab(one: LabResult) -> str:
    """Return the section of a lab."""
    seeds = ", ".join(map(str, one.runs))
    how = f"Seeds {seeds}; {minutes(one.minutes)} for all" + ("; the quick setting." if one.quick else ".")
    rows = [
        (claim, "does NOT hold" if claim in one.failed else "holds", f"{margin:.3g}")
        for claim, margin in one.margins.items()
    ]
    claims = rows_table(("claim", "", "margin in the worst seed"), rows)
    asked = f"<p>{visible(questions()[one.name])}</p>"
    return section(one.name, "\n".join((asked, figure(one.figure, how), claims)))


def minutes(number: float) -> str:
    """Return a time as a reader says it."""
    return f"{number:.1f} minutes" if number >= 1 else f"{60 * number:.0f} seconds"


def comparisons(found: Mapping[str, LabResult]) -> str:
    """Return the tables of the last lecture, each cell with the lab that measured it."""
    note = (
        "The tables with which the course ends, from the numbers above: the least and the greatest over the seeds, "
        "and in brackets the lab. Where no lab measures a cell it says so."
    )
    runs = {name: list(one.runs.values()) for name, one in found.items()}
    parts = [f"<h3>{visible(table.title)}</h3>\n{rows_table(table.heads, table.rows(runs))}" for table in tables()]
    return section("The comparisons of the last lecture", "\n".join((f"<p>{visible(note)}</p>", *parts)))
