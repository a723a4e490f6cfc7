"""What the folders of checkpoints are called. Word vectors ask for it too, and load no torch."""

import re

FOLDER = re.compile(r"step-(\d{6,})")
LEFTOVER = re.compile(r"step-\d{6,}\.(tmp|old)-\d+-[0-9a-f]+")


def is_ours(name: str) -> bool:
    """Say whether a name in the folder of the checkpoints is one that a store gives."""
    return bool(FOLDER.fullmatch(name) or LEFTOVER.fullmatch(name) or re.match(r"(latest|best)(\.tmp-|$)", name))
