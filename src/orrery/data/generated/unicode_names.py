"""Characters and their names in Unicode: é is LATIN SMALL LETTER E WITH ACUTE."""

from collections.abc import Iterator

from orrery.data.generated import GeneratedSet, register
from orrery.data.generated._characters import MADE_FROM, named_characters


@register
class UnicodeNames(GeneratedSet):
    """Character to name."""

    kind = "unicode_names"
    what = "characters and their names: é, LATIN SMALL LETTER E WITH ACUTE"
    made_from = MADE_FROM
    how = (
        "no white space, no Hangul syllables, no names with the number of the character; every tenth (by the sha256 of "
        "the name) is `val`"
    )
    columns = ("source", "target")

    def records(self, part: str) -> Iterator[dict[str, str]]:
        """Yield the rows of a part."""
        yield from ({"source": character, "target": name} for character, name in named_characters(part))
