"""Which mutations are tried: so many of every package, each kind with its fair share, drawn from a seed."""

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from mutation.kinds import every_mutation
from mutation.operators import Mutation, mutations

LEAST = 12
LEAST_OF_A_KIND = 10
LINES_FOR_ONE_MORE = 1000
# The packages and the number of each that were drawn before every package was; their draw is kept to be repeated.
BEFORE = {"nn": 45, "text": 35, "data": 30, "training": 30, "checkpoints": 15, "generation": 15}
# Keywords whose truth decides nothing here: pairs of one length are zipped, and what is escaped is read again.
WITHOUT_EFFECT = ("strict=", "ensure_ascii=")


def packages(source: Path) -> dict[str, list[Path]]:
    """Return the files of each package and of each module that stands alone; empty ones are none."""
    by_package: dict[str, list[Path]] = {}
    for path in sorted(source.rglob("*.py")):
        by_package.setdefault(package_of(path.relative_to(source).as_posix()), []).append(path)
    return {name: files for name, files in by_package.items() if any(file.stat().st_size for file in files)}


def package_of(file: str) -> str:
    """Return the package of a file, or its own name where it is in none."""
    return file.split("/")[0]


def drawn(source: Path, seed: int, share: float = 1.0, only: str = "") -> list[Mutation]:
    """Draw the mutations of every package, or of one alone; an equal share of what is drawn from each."""
    chosen, every = [], []
    for package, files in packages(source).items():
        if only not in ("", package):
            continue
        texts = {file.relative_to(source).as_posix(): file.read_text(encoding="utf-8") for file in files}
        here = [m for name, text in texts.items() for m in with_effect(text, every_mutation(name, text))]
        chosen += _fairly(here, quota(texts.values(), share), random.Random(f"{seed} {package}"))
        every += here
    return chosen if only else [*chosen, *_of_rare_kinds(every, chosen, round(LEAST_OF_A_KIND * share), seed)]


def quota(texts: Iterable[str], share: float = 1.0) -> int:
    """Return how many are drawn of a package with these files: ten, and more for a larger one."""
    lines = sum(text.count("\n") for text in texts)
    return max(1, round((LEAST + lines / LINES_FOR_ONE_MORE) * share))


def _of_rare_kinds(every: list[Mutation], chosen: list[Mutation], least: int, seed: int) -> Iterator[Mutation]:
    """Yield what a kind lacks that few packages have, an await for one."""
    had = Counter(m.kind for m in chosen)
    for kind in sorted({m.kind for m in every}):
        rest = [m for m in every if m.kind == kind and m not in chosen] if had[kind] < least else []
        yield from _fairly(rest, least - had[kind], random.Random(f"{seed} {kind}"))


def _fairly(every: list[Mutation], most: int, rng: random.Random) -> list[Mutation]:
    """Take the kinds in turn, and of each what stands in a function that has none yet, as long as there is one."""
    rng.shuffle(every)
    by_kind: dict[str, list[Mutation]] = {}
    for mutation in every:
        by_kind.setdefault(mutation.kind, []).append(mutation)
    kinds, chosen, taken = sorted(by_kind), [], Counter()
    rng.shuffle(kinds)
    while len(chosen) < most and any(by_kind.values()):
        for kind in kinds:
            if by_kind[kind] and len(chosen) < most:
                best = min(by_kind[kind], key=lambda m: taken[m.file, m.function])  # the first of the least taken
                by_kind[kind].remove(best)
                taken[best.file, best.function] += 1
                chosen.append(best)
    return sorted(chosen, key=lambda m: (m.file, m.line, m.column, m.kind, m.new))


def drawn_before(source: Path, seed: int) -> list[Mutation]:
    """Draw from six packages, the kinds of operators alone, as it was done before every package had its share."""
    chosen = []
    for package, most in BEFORE.items():
        files = sorted((source / package).rglob("*.py"))
        texts = {file.relative_to(source).as_posix(): file.read_text(encoding="utf-8") for file in files}
        every = list(chain.from_iterable(mutations(name, text) for name, text in texts.items()))
        random.Random(f"{seed} {package}").shuffle(every)
        one_each = list({(m.file, m.function): m for m in reversed(every)}.values())[::-1]
        drawn = sorted(one_each[:most], key=lambda m: (m.file, m.line, m.column))
        chosen += [m for m in drawn if with_effect(texts[m.file], [m])]
    return chosen


def placed_again(source: Path, wanted: list[tuple[str, int]]) -> list[Mutation]:
    """Return the mutations of names and lines as they stand in the source of now; what is gone is left out."""
    mutations_now = []
    every: dict[str, dict[str, list[Mutation]]] = {}
    for name, line in wanted:
        file = name.split(":")[0]
        if file not in every and (source / file).exists():
            every[file] = {}
            for mutation in every_mutation(file, (source / file).read_text(encoding="utf-8")):
                every[file].setdefault(mutation.name, []).append(mutation)
        if same := every.get(file, {}).get(name):
            mutations_now.append(min(same, key=lambda m: abs(m.line - line)))
    return list(dict.fromkeys(mutations_now))


def with_effect(text: str, drawn_mutations: list[Mutation]) -> list[Mutation]:
    """Leave out what changes only a keyword whose truth decides nothing."""
    lines = text.encode().splitlines()
    return [m for m in drawn_mutations if not lines[m.line - 1][: m.column].decode().endswith(WITHOUT_EFFECT)]
