"""Write pairs of what a user said and what the assistant replied, from the dialogues of SGD: one of each dialogue.

python docs/examples/reply_pairs.py FOLDER
"""

import json
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from orrery.data.corpora import read_rows


def pairs_of(turns: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield each text of the user with the reply behind it."""
    for one, other in pairwise(turns):
        if one["role"] == "user" and other["role"] == "assistant":
            yield one["text"], other["text"]


def main(folder: Path) -> None:
    """Write train.jsonl and val.jsonl: of each dialogue the longest reply that no other dialogue has."""
    for part, name in (("train", "train"), ("dev", "val")):
        dialogues = [list(pairs_of(row["turns"])) for row in read_rows(f"sgd-dialogues/{part}", ("turns",))]
        often = Counter(reply for pairs in dialogues for reply in {reply for _, reply in pairs})
        with (folder / f"{name}.jsonl").open("w", encoding="utf-8") as file:
            for pairs in dialogues:
                own = [pair for pair in pairs if often[pair[1]] == 1]
                if own:
                    said, reply = max(own, key=lambda pair: len(pair[1]))
                    file.write(json.dumps({"query": said, "passage": reply}, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
