"""The source code of the running Python's standard library, a module a row."""

import io
import tokenize
from collections.abc import Iterator

from orrery.data.generated import GeneratedSet, register
from orrery.data.generated._library import PYTHON, sources
from orrery.data.splits import held_back

EVERY = 20


@register
class PythonSources(GeneratedSet):
    """Module and its source."""

    kind = "python_sources"
    what = "the source code of the standard library"
    made_from = PYTHON
    how = (
        "test, idlelib, lib2to3 and installed packages left out; every twentieth module (by the sha256 of its name) is "
        "`val`"
    )
    columns = ("module", "text")
    text = "text"

    def records(self, part: str) -> Iterator[dict[str, str]]:
        """Yield the modules of a part."""
        for module, source in sources():
            if held_back(module, EVERY) == (part == "val") and source.strip():
                encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
                yield {"module": module, "text": source.decode(encoding)}
