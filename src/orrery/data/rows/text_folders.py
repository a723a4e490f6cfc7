"""Texts in a folder for each label, a file each, as aclImdb has its reviews, or with their labels in each line."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from orrery.data import formats
from orrery.data.corpora import locate, read_placed_rows
from orrery.data.files import Faults, Invalid
from orrery.data.rows.labelled_lines import read_labelled_lines
from orrery.errors import DataError

UNLABELLED = ("unsup", "unlabelled", "unlabeled")
"""Folders of texts without a label, which are no label themselves."""


def read_labelled_rows(
    source: str | Path, columns: Sequence[str] = (), *, invalid: Invalid = "error", skip_bad: int = 0
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (place, row) as `read_placed_rows` does; of folders of texts, or lines of fastText's, a text and labels.

    Raises:
        DataError: a folder is called as one of texts without a label, texts lie beside the folders, or a text has no
            labels.
    """
    folder = Path(source)
    if folder.is_file() and formats.is_plain_text(folder):
        yield from read_labelled_lines(folder, invalid, skip_bad)
        return
    files = locate(folder)[1] if folder.is_dir() else []
    if not files or not all(formats.is_plain_text(file) for file in files):
        yield from read_placed_rows(source, columns, invalid=invalid, skip_bad=skip_bad)
        return
    _check(folder, files)
    faults = Faults(invalid, skip_bad)
    for file in files:
        try:
            for document in formats.read_documents(file, file.name, "text", faults):
                yield str(file), {"text": document.text, "label": file.relative_to(folder).parts[0]}
        except DataError as error:
            faults.meet(error)


def _check(folder: Path, files: Sequence[Path]) -> None:
    loose = [file for file in files if file.parent == folder]
    labels = list(dict.fromkeys(file.relative_to(folder).parts[0] for file in files if file.parent != folder))
    if not labels:
        raise DataError(
            f"{folder} holds texts and no folder of texts for each label", "give a table, or make the folders"
        )
    if unlabelled := [label for label in labels if label.lower() in UNLABELLED]:
        message = f"{folder / unlabelled[0]} holds texts without a label, beside {', '.join(labels)[:200]}"
        raise DataError(message, "move it out of the folder")
    if loose:
        message = f"{loose[0]} lies in no folder of a label, beside {', '.join(labels)[:200]}"
        raise DataError(message, "move it out of the folder, or into that of its label")
