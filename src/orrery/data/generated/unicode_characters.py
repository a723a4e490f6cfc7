"""The character of a name: `unicode-names` the other way round."""

from collections.abc import Iterator

from orrery.data.generated import GeneratedSet, register
from orrery.data.generated._characters import MADE_FROM, named_characters


@register
class UnicodeCharacters(GeneratedSet):
    """Name to character."""

    kind = "unicode_characters"
    what = "names of characters, and the character: `unicode-names` the other way round"
    made_from = MADE_FROM
    how = "the same rows and parts as `unicode-names`, source and target exchanged"
    columns = ("source", "target")

    def records(self, part: str) -> Iterator[dict[str, str]]:
        """Yield the rows of a part."""
        yield from ({"source": name, "target": character} for character, name in named_characters(part))
