"""Seeds as functions of a place, so that nothing random needs a history."""

import hashlib


def derive_seed(*parts: int | str) -> int:
    """Return a seed of 63 bits for a place such as ``(1337, "dropout", step, row)``.

    Everything random is drawn from a generator seeded for its place, so a resumed run needs no history.
    """
    digest = hashlib.sha256("/".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1
