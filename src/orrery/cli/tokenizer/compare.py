"""One text through many tokenizers, or a parallel text through the course's table."""

import json as json_format
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from orrery.cli.numbers import COUNT, COUNT_OR_NONE
from orrery.cli.tables import print_table
from orrery.cli.tokenizer.measures import MEASURES, measures_row
from orrery.cli.tokenizer.show import visible
from orrery.reports.status import Waiting, waiting

if TYPE_CHECKING:
    from orrery.text import Tokenizer

SAMPLE = 2_000_000
"""So many characters of the corpus are enough to train on for a comparison."""

CORPUS = "python-docs"
FILES = (".txt", ".md", ".rst", ".jsonl", ".gz", ".xz", ".bz2")
SENTENCE = 400
"""The pieces of longer texts are counted and not shown."""


def compare(
    *texts: str,
    tokenizer: Annotated[list[Path] | None, Parameter(negative="")] = None,
    corpus: str | None = None,
    vocabulary: Annotated[int, COUNT] = 4096,
    parallel: Annotated[tuple[Path, Path] | None, Parameter(negative="")] = None,
    sentences: Annotated[int, COUNT_OR_NONE] = 3,
    json: Path | None = None,
    overwrite: bool = False,
) -> None:
    """Cut one text with every kind of tokenizer: pieces, bytes a token, tokens a word, unknowns.

    Parameters
    ----------
    texts
        Texts, or files of text.
    tokenizer
        Tokenizers to compare, this flag once for each; without it, every kind trained here and now.
    corpus
        What to train on, as for `train` (python-docs where not given): its first 2,000,000 characters.
    vocabulary
        Number of ids of each that is trained; with --parallel of each language (joint BPE: half as many again).
    parallel
        Two line-aligned files, source and target, plain or .gz: the course's table of WDict, C2 and BPE instead.
    sentences
        With --parallel and no texts: so many pairs held back from training, those with most unknown words.
        A text chooses the pair whose source it is.
    json
        Write all of it to this file as well.
    overwrite
        Replace the file of --json.
    """
    from orrery.checkpoints.outputs import OutputFile
    from orrery.cli.tokenizer.parallel import compare_parallel
    from orrery.errors import UsageError

    inputs = [*texts, *(tokenizer or ()), corpus, *(parallel or ())]
    target = OutputFile(json, inputs=inputs, overwrite=overwrite) if json is not None else None
    if parallel is not None:
        if tokenizer or corpus:
            raise UsageError("--parallel trains its own tokenizers on its own text", "leave --tokenizer, --corpus away")
        result = compare_parallel(*parallel, texts, vocabulary, sentences)
    elif tokenizer and corpus is not None:
        raise UsageError("--corpus is text to train on, and --tokenizer names trained ones", "leave one of them away")
    elif not texts:
        raise UsageError("nothing to compare", "give a text, a file, or --parallel SOURCE TARGET")
    else:
        result = _compare_texts(texts, tokenizer or [], corpus, vocabulary)
    if target is not None:
        target.write(json_format.dumps(result, indent=2, ensure_ascii=False) + "\n")


def _compare_texts(texts: Iterable[str], paths: list[Path], corpus: str | None, vocabulary: int) -> dict[str, Any]:
    from orrery.text import load_tokenizer
    from orrery.text.comparison import measure

    contents = [content for text in texts for content in _read(text)]
    refused: Mapping[str, str] = {}
    with waiting() as line:
        if paths:
            line.now("reading the tokenizers")
            compared = {str(path): load_tokenizer(path) for path in paths}
        else:
            compared, refused = _train(corpus or CORPUS, vocabulary, line)
        measured = {}
        for name, one in compared.items():
            line.now(f"encoding: {name}")
            measured[name] = measure(one, contents)
    shown = [text for text in contents if len(text) <= SENTENCE]
    cuts = [{name: _pieces(one, text) for name, one in compared.items()} for text in shown]
    for text, cut in zip(shown, cuts, strict=True):
        print_table(("text", visible(text)), [(name, " ".join(map(visible, pieces))) for name, pieces in cut.items()])
        print()
    print_table(MEASURES, [measures_row(name, measures) for name, measures in measured.items()])
    for kind, reason in refused.items():
        print(f"{kind}: not trained: {reason}")
    return {
        "texts": [{"text": text, "pieces": cut} for text, cut in zip(shown, cuts, strict=True)],
        "tokenizers": {name: measures.as_dict() for name, measures in measured.items()},
        "not_trained": dict(refused),
    }


def _pieces(tokenizer: "Tokenizer", text: str) -> list[str]:
    return [tokenizer.token(id) for id in tokenizer.encode(text)]


def _read(text: str) -> Iterable[str]:
    """Return the documents of a file, or the text itself where no file has that name."""
    from orrery.data.corpora import read_corpus
    from orrery.errors import DataError

    try:
        is_file = Path(text).is_file()
    except (OSError, ValueError):  # too long, or with a NUL: no name of a file
        is_file = False
    if not is_file and len(text.split()) == 1 and Path(text).suffix in FILES:
        raise DataError(f"{text}: no such file", "check the name; a text for itself has no suffix of a file")
    return (document.text for document in read_corpus(text)) if is_file else [text]


def _train(corpus: str, vocabulary: int, line: Waiting) -> tuple[dict[str, "Tokenizer"], Mapping[str, str]]:
    from orrery.data.corpora import read_corpus
    from orrery.text.comparison import train_all

    line.now(f"reading {corpus}")
    texts: list[str] = []
    room = SAMPLE
    for document in read_corpus(corpus):
        texts.append(document.text[:room])
        room -= len(texts[-1])
        if not room:
            break
    print(f"trained on {SAMPLE - room:,} characters of {corpus}, {vocabulary:,} ids each where the text fills them\n")
    return train_all(texts, vocabulary, lambda kind: line.now(f"training: {kind}"))
