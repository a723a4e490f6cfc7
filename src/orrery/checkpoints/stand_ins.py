"""What lies in the place of a file of weights: a pointer of git-lfs, a page, a refusal, another program's numbers."""

import stat
from pathlib import Path

from orrery.errors import ModelFileError

_PAGE = ("is a page of the web, not the file", "download the file itself: its address has /resolve/ for /blob/")
_REFUSAL = (
    "is the answer to a download that was refused, not the file",
    "accept the licence on the model's page, run: hf auth login, and fetch the file again",
)
_LLM_C = (
    "holds the numbers of llm.c, whose form is its own",
    "its script dev/eval/export_hf.py writes a Hugging Face folder of the file",
)
_BEGINNINGS = {
    **dict.fromkeys((number.to_bytes(4, "little") for number in (20240326, 20240520, 20240803)), _LLM_C),
    b"24ka": (
        "holds the numbers of llama2.c, whose form is its own",
        "take the .pt of the same model: orrery import FILE NEW --allow-pickle",
    ),
    b"version https://git-lfs": ("is a pointer of git-lfs to the file, not the file", "run 'git lfs pull' beside it"),
    **dict.fromkeys((b"<!doctype", b"<html", b"<head", b"<?xml"), _PAGE),
    **dict.fromkeys(
        (b"access to model ", b"repository not found", b"invalid username", b"invalid credentials"), _REFUSAL
    ),
    b"entry not found": (_REFUSAL[0], "the repository has no file of this name: look at its list of files"),
}
"""What such files begin with, in small letters: what they are, and what to do."""
_LONGEST = max(map(len, _BEGINNINGS))


def stand_in(beginning: bytes) -> tuple[str, str] | None:
    """Return what a file is that begins so and stands for another, and what to do; None for others."""
    small = beginning[:_LONGEST].lower()
    return next((said for start, said in _BEGINNINGS.items() if small.startswith(start)), None)


def refuse_stand_in(path: Path) -> None:
    """Refuse a file that stands for one that was never fetched; called once it is known that it cannot be read.

    Raises:
        ModelFileError: it is one, or empty.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):  # to open a pipe would wait for ever
            return
        with path.open("rb") as file:
            beginning = file.read(_LONGEST)
    except OSError:
        return
    if not beginning:
        raise ModelFileError(f"{path} is empty", "its download did not end: fetch the file again")
    if said := stand_in(beginning):
        raise ModelFileError(f"{path} {said[0]}", said[1])
