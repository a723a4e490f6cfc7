"""Which mutations are tried, drawn from a seed, and which tests should catch each, from the trace of a sound run."""

import json
import random
from dataclasses import dataclass
from pathlib import Path

from mutation.operators import Mutation, mutations

# How many of each package: the larger the package, the more, and none without a fair share.
QUOTA = {"nn": 45, "text": 35, "data": 30, "training": 30, "checkpoints": 15, "generation": 15}
# What a trace cannot follow: tests that start the program as a process of its own.
PROGRAM = {
    "nn": (),
    "generation": ("test_generate_cli", "test_translate_cli"),
    "training": ("test_train_command", "test_train_faults", "test_train_ranks"),
    "text": ("test_tokenizer_cli", "test_tokenizer_show", "test_chat_cli"),
    "data": ("test_data_cli", "test_data_clean_cli", "test_prepare"),
    "checkpoints": ("test_train_command", "test_train_faults"),
}
# What no test goes through, the defaults in the fields of a class: tests that hold them to a table.
TABLES = {"nn": ["tests/unit/nn/test_spec_defaults.py"], "training": ["tests/unit/training/test_recipe_defaults.py"]}
# Keywords whose truth decides nothing here: pairs of one length are zipped, and what is escaped is read again.
WITHOUT_EFFECT = ("strict=", "ensure_ascii=")
NEAR_SECONDS, FAR_SECONDS = 60.0, 150.0


@dataclass(frozen=True)
class Trace:
    """The lines that each test of a sound run went through, and its seconds."""

    seconds: dict[str, float]
    lines: dict[str, dict[int, set[str]]]

    @classmethod
    def read(cls, folder: Path) -> "Trace":
        seconds: dict[str, float] = {}
        lines: dict[str, dict[int, set[str]]] = {}
        for path in sorted(folder.glob("*.json")):
            part = json.loads(path.read_text())
            tests = list(part["seconds"])
            seconds |= part["seconds"]
            for file, found in part["lines"].items():
                for line, bits in found.items():
                    number = int(bits, 16)
                    ran = {tests[i] for i in range(number.bit_length()) if number >> i & 1}
                    lines.setdefault(file, {}).setdefault(int(line), set()).update(ran)
        return cls(seconds, lines)

    def through(self, mutation: Mutation) -> set[str]:
        """Return the tests that run the mutated lines; where none does, as in the fields of a class, the file's."""
        found = self.lines.get(mutation.file, {})
        ran = set().union(*(found.get(line, set()) for line in range(mutation.line, mutation.end_line + 1)))
        return ran or set().union(*found.values())

    def passes(self, mutation: Mutation) -> bool:
        """Say whether any test runs the mutated lines."""
        found = self.lines.get(mutation.file, {})
        return any(found.get(line) for line in range(mutation.line, mutation.end_line + 1))


def drawn(source: Path, seed: int, share: float = 1.0) -> list[Mutation]:
    """Draw the mutations of every package, at most one in a function as long as there are functions."""
    chosen = []
    for package, quota in QUOTA.items():
        files = sorted((source / package).rglob("*.py"))
        every = [m for f in files for m in mutations(f.relative_to(source).as_posix(), f.read_text(encoding="utf-8"))]
        random.Random(f"{seed} {package}").shuffle(every)
        one_each = list({(m.file, m.function): m for m in reversed(every)}.values())[::-1]
        chosen += sorted(one_each[: round(quota * share)], key=lambda m: (m.file, m.line, m.column))
    return [mutation for mutation in chosen if _has_effect(source, mutation)]


def _has_effect(source: Path, mutation: Mutation) -> bool:
    """Say whether a mutation is of more than a keyword whose truth decides nothing."""
    line = (source / mutation.file).read_text(encoding="utf-8").encode().splitlines()[mutation.line - 1]
    return not line[: mutation.column].decode().endswith(WITHOUT_EFFECT)


def batches(mutation: Mutation, trace: Trace) -> list[list[str]]:
    """Return the tests that should catch a mutation: first those of its own folder, then others, then the program."""
    package = mutation.file.split("/")[0]
    tests = sorted(trace.through(mutation) & trace.seconds.keys(), key=lambda test: (trace.seconds[test], test))
    own = Path(mutation.file).stem
    near = _spread([test for test in tests if test.startswith(f"tests/unit/{package}/")])
    near.sort(key=lambda test: own not in test.split("::")[0])
    far = [test for test in tests if test not in set(near)]
    program = [f"tests/system/{name}.py" for name in PROGRAM.get(package, ())]
    tables = [] if trace.passes(mutation) else TABLES.get(package, [])
    found = [tables, _within(near, trace, NEAR_SECONDS), _within(_spread(far), trace, FAR_SECONDS), program]
    return [batch for batch in found if batch]


def _spread(tests: list[str]) -> list[str]:
    """Take the tests of each file in turn, so that the cheapest file does not use up the time of all."""
    turns: dict[str, int] = {}
    keyed = []
    for test in tests:
        file = test.split("::")[0]
        turns[file] = turns.get(file, 0) + 1
        keyed.append((turns[file], test))
    return [test for _, test in sorted(keyed, key=lambda pair: pair[0])]


def _within(tests: list[str], trace: Trace, seconds: float) -> list[str]:
    """Return as many tests, from the first on, as the time allows."""
    kept, used = [], 0.0
    for test in tests:
        used += trace.seconds[test]
        if used > seconds and kept:
            break
        kept.append(test)
    return kept
