"""``orrery models``: the models that lie on this machine."""

import json as json_format
from pathlib import Path

from orrery.cli.tables import print_table
from orrery.errors import DataError
from orrery.settings import hub_cache, runs_folder


def models(*paths: Path, json: bool = False) -> None:
    """List the models on this machine with their size, family, kind of numbers, and what each can do.

    Without a path these are the runs, what was fetched from the hub, and what Ollama, LM Studio, llama.cpp, GPT4All and
    Jan keep where each is known to; the name of each is what every verb takes. No weights are read, nothing is fetched.

    Args:
        paths: Files and folders to look for models in: runs, Hugging Face folders and GGUF files.
        json: Print one JSON object a line.
    """
    if missing := [str(path) for path in paths if not path.exists()]:
        raise DataError(f"{', '.join(missing)}: no such file or folder", "name one that is there, or none")
    from orrery.exchange.reading.inventory import inventory

    listed = list(inventory(paths))
    if json:
        for one in listed:
            print(json_format.dumps({**vars(one), "place": str(one.place)}, ensure_ascii=False))
        return
    if not listed:
        where = ", ".join(map(str, paths or (runs_folder(), hub_cache(), "the folders of other programs")))
        print(f"no models in {where}; orrery models FOLDER looks elsewhere")
        return
    rows = [
        (
            one.name,
            f"{one.size / 1e6:,.0f} MB",
            one.family,
            f"{one.parameters / 1e6:,.1f} M" if one.parameters else "",
            " ".join(one.numbers[:3]),
            " ".join(one.can) or one.fault,
        )
        for one in listed
    ]
    print_table(("name", "size", "family", "numbers", "stored as", "can"), rows)
