"""The countries of the factbook: their names, and their fields as plain text."""

import html
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from orrery import settings
from orrery.data import formats, sets
from orrery.data.files import Faults
from orrery.errors import DataError

NAMES = {
    "cg": "Democratic Republic of the Congo",
    "dr": "Dominican Republic",
    "fk": "Falkland Islands",
    "gz": "Gaza Strip",
    "sv": "Svalbard",
    "um": "United States Pacific Island Wildlife Refuges",
}
"""Of entries whose short name is no name to ask with."""

NO_COUNTRY = ("oceans", "world")
"""Regions whose entries are none."""

LONG_NAME = "Government / Country name / conventional long form"

MOST = 45
"""Words of a field; the rest is left out from the last semicolon or full stop before."""

_ARTICLE = re.compile(
    r"^(?:Republic|United|Central African|Federated|Democratic Republic|Holy See|Isle of)|"
    r"(?:Islands|Republic|Emirates|States|Kingdom|Netherlands|Philippines|Bahamas|Gambia|Maldives|Comoros|Bank|Strip|"
    r"Lands|Territory|Union|Refuges|Seychelles)$|^(?:DRC|US|UK|UAE|USA)$"
)
_NOTE = re.compile(r"(?:^|[;,.]?\s+)(?:\*+ )?note(?: \d+)?\s?(?::|-|\u2013).*$", re.IGNORECASE | re.DOTALL)
_MISSING = re.compile(r"^(?:NA|N/A|none|unknown|NEGL|-|\(?not available\)?)?\.?$", re.IGNORECASE)


@dataclass(frozen=True)
class Country:
    """A country: its code in the factbook, its name, and its fields by path, as plain text."""

    code: str
    name: str
    fields: Mapping[str, str]

    @property
    def spoken(self) -> str:
        """The name inside a sentence: ``the Netherlands``."""
        return with_article(self.name)


def read_countries(paths: Collection[str]) -> Iterator[Country]:
    """Yield the countries and territories with the fields of these paths, in the order of the file.

    Raises:
        DataError: the set `factbook` is not there, or a line of it has another shape.
    """
    file = sets.present(settings.data_folder(), "factbook", "countries.jsonl.xz")
    for line, row in formats.read_rows(file, ("code", "region", "name", "fields"), Faults()):
        if row["region"] in NO_COUNTRY:
            continue
        try:
            fields = {path: plain(text) for path, text in row["fields"] if path in (*paths, LONG_NAME)}
            yield Country(str(row["code"]), name_of(row["code"], row["name"], fields), fields)
        except (AttributeError, TypeError, ValueError) as error:
            raise DataError(f"{file}:{line}: no country: {error}", "fetch the set again") from None


def name_of(code: str, name: str, fields: Mapping[str, str]) -> str:
    """Return the name that questions use: the short one where there is one, else the long one."""
    long = fields.get(LONG_NAME, "")
    short = plain(name)
    given = NAMES.get(code) or (long if short in ("", "none") else short)
    return (given or "European Union").removeprefix("The ")


def with_article(name: str) -> str:
    """Return a country's name as it stands inside a sentence."""
    return f"the {name}" if _ARTICLE.search(name) else name


def plain(text: str) -> str:
    """Return a field without marks of HTML and notes, with single blanks; empty where it says that nothing is known."""
    bare = re.sub(r"<[^<>]*>", " ", html.unescape(text))
    bare = " ".join(_NOTE.sub("", bare).split())
    return "" if _MISSING.match(bare) else bare


def shortened(text: str) -> str:
    """Return a field of at most `MOST` words, cut at the last semicolon or full stop before; empty where none is."""
    words = text.split()
    if len(words) <= MOST:
        return text
    ends = [place for place in range(8, MOST + 1) if words[place - 1][-1] in ".;"]
    return " ".join(words[: ends[-1]]).rstrip(";.") if ends else ""
