"""Lines of Python, and the kind of each token in them."""

import io
import keyword
import tokenize
from collections.abc import Iterator
from functools import cache

from orrery.data.generated import GeneratedSet, register
from orrery.data.generated._library import PYTHON, sources
from orrery.data.records import Sentence
from orrery.data.splits import held_back

EVERY = {"train": 8, "val": 40}
"""Of so many modules one is read; an eighth of the library is enough, and the whole takes half a minute."""

FEWEST, MOST = 4, 60
"""Tokens of a line."""

KINDS = ("NAME", "OP", "NUMBER", "STRING", "COMMENT")
_LAYOUT = (tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING)


@register
class PythonTokens(GeneratedSet):
    """Logical line of source to the kinds of its tokens, as `tokenize` gives them; a keyword is no NAME."""

    kind = "python_tokens"
    what = "lines of Python, each token NAME, KEYWORD, OP, NUMBER, STRING or COMMENT"
    made_from = PYTHON
    how = (
        "logical lines of 4 to 60 tokens, of equal ones the first, from every eighth module (`train`) and every 40th "
        "of the others (`val`, by the sha256 of the name); left out: tokens over several lines, f-strings in pieces "
        "(Python 3.12 and later), files that `tokenize` refuses"
    )

    def records(self, part: str) -> Iterator[Sentence]:
        """Yield the lines of the modules of a part; what `train` has is no line of `val`."""
        seen = {line.words for line in _of("train")} if part == "val" else set()
        for line in _of(part):
            if line.words not in seen:
                seen.add(line.words)
                yield line


@cache
def _of(part: str) -> tuple[Sentence, ...]:
    chosen = [name for name, _ in sources() if held_back(f"{part} {name}", EVERY[part])]
    if part == "val":
        chosen = [name for name in chosen if not held_back(f"train {name}", EVERY["train"])]
    wanted = set(chosen)
    return tuple(line for name, source in sources() if name in wanted for line in lines_of(name, source))


def lines_of(module: str, source: bytes) -> list[Sentence]:
    """Return the logical lines of a module that are of use; nothing of a file that is no Python."""
    sentences, line = [], list[tokenize.TokenInfo]()
    try:
        for token in tokenize.tokenize(io.BytesIO(source).readline):
            if token.type in (tokenize.NEWLINE, tokenize.ENDMARKER):
                if FEWEST <= len(line) <= MOST and all(map(_plain, line)):
                    sentences.append(_sentence(module, line))
                line = []
            elif token.type == tokenize.NL and all(known.type == tokenize.COMMENT for known in line):
                line = []  # comments on lines of their own belong to no line of code
            elif token.type not in _LAYOUT:
                line.append(token)
    except (tokenize.TokenError, SyntaxError, UnicodeDecodeError):
        return []
    return sentences


def _plain(token: tokenize.TokenInfo) -> bool:
    return tokenize.tok_name[token.type] in KINDS and token.start[0] == token.end[0] and bool(token.string.strip())


def _sentence(module: str, line: list[tokenize.TokenInfo]) -> Sentence:
    words = tuple(token.string for token in line)
    tags = tuple("KEYWORD" if keyword.iskeyword(t.string) else tokenize.tok_name[t.type] for t in line)
    number = line[0].start[0]
    return Sentence(number, f"{module}:{number}", " ".join(words), words, tags=tags)
