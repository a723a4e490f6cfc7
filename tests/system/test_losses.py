"""Whatever ends a command that writes, the user's files are what they were, or complete new ones.

``ORRERY_TEST_KILLS=100`` tries so many random moments, over all verbs in turn.
"""

import os
import random
import shutil
import signal
from dataclasses import dataclass
from pathlib import Path

import pytest

import outputs_toy
from forking import Ended, ended
from orrery.checkpoints import succession
from orrery.checkpoints.lock import NAME as LOCK
from orrery.checkpoints.store import CheckpointStore
from orrery.training.folder import OURS
from outputs_toy import VERBS, tree

KILLS = int(os.environ.get("ORRERY_TEST_KILLS", "20"))
CONTINUED = {"train-resume": [], "data-prepare": [], "compare": ["--resume"], "ladder": ["--resume"]}
"""Where the same command, with these flags, goes on and ends with what an undisturbed one leaves."""

TIMED = {"verify", "demo", "compare", "ladder", "lab"}
"""What they leave holds seconds, so that no two are equal."""

RUNS = ("train", "train-vectors", "demo")
STOPPED = {signal.SIGINT: 130, signal.SIGTERM: 143}


@dataclass(frozen=True)
class Case:
    """A verb, on nothing or on what an earlier one left."""

    verb: str
    existing: bool

    @property
    def words(self) -> list[str]:
        if self.verb == "train-resume":
            return [*VERBS["train"].line("out"), "--resume"]
        return [*VERBS[self.verb].line("out"), *(["--overwrite"] if self.existing else [])]

    def put(self, world: Path, old: Path) -> None:
        """Put what an earlier command left."""
        source = old / self.verb
        if self.existing:
            shutil.copytree(source, world / "out") if source.is_dir() else shutil.copy(source, world / "out")


CASES = [
    *(Case(verb, False) for verb in VERBS),
    *(Case(verb, True) for verb in VERBS if verb not in CONTINUED),
    Case("train-resume", True),
]


@dataclass(frozen=True)
class Worlds:
    """What commands read, what undisturbed ones leave, what earlier ones left, and how long they take."""

    inputs: Path
    new: Path
    old: Path
    seconds: dict[str, float]


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Worlds:
    root = tmp_path_factory.mktemp("worlds")
    made = Worlds(root / "inputs", root / "new", root / "old", {})
    for folder in (made.inputs, made.new, made.old):
        folder.mkdir()
    outputs_toy.prepare(made.inputs)
    (made.inputs / "notes.txt").write_text("mine")
    for case in CASES:
        if not case.existing:
            shutil.copytree(made.inputs, root / case.verb)
            done = ended(case.words, root / case.verb)
            assert done.code in (0, 1), done.err  # the demo's model is below its floors
            made.seconds[case.verb] = done.seconds
            (root / case.verb / "out").rename(made.new / case.verb)
    for case in CASES:
        if case.existing:
            words = {"train": ["--seed", "7"], "train-resume": ["--training.steps", "7"]}.get(case.verb, [])
            target = made.old / case.verb
            if case.verb in ("train", "train-resume"):
                source = VERBS["train"].line(target)
                assert ended([*source, *words], made.inputs).code == 0
            elif VERBS[case.verb].folder:
                shutil.copytree(made.new / case.verb, target)
                for file in target.rglob("*"):  # another earlier result, of the same names
                    if file.suffix in (".svg", ".html", ".bin", ".jinja", ".safetensors"):
                        file.write_bytes(file.read_bytes() + b" ")
            else:
                target.write_text("old")
    made.seconds["train-resume"] = made.seconds["train"]
    return made


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_at_any_moment_files_are_the_old_or_the_new_ones(worlds: Worlds, tmp_path: Path) -> None:
    rng = random.Random(KILLS)
    cases = [case for _ in range(KILLS // len(CASES) + 1) for case in rng.sample(CASES, len(CASES))]
    for number, case in enumerate(cases[:KILLS]):
        world = tmp_path / f"{number}-{case.verb}"
        shutil.copytree(worlds.inputs, world)
        case.put(world, worlds.old)
        before = tree(world)
        end, how = disturb(case, worlds, world, rng, aimed=bool(number % 2))
        where = f"{number}: {' '.join(case.words)}: {how}: {end}"
        assert "Traceback" not in end.err, where
        assert "defect" not in end.err, where
        others = {name: part for name, part in tree(world).items() if not is_output(case, name)}
        assert others == {name: part for name, part in before.items() if not is_output(case, name)}, where
        check(case, worlds, world, where)
        shutil.rmtree(world)


def disturb(case: Case, worlds: Worlds, world: Path, rng: random.Random, *, aimed: bool) -> tuple[Ended, str]:
    """Run a command and let it be killed, stopped, or out of room, at a moment drawn from the generator."""
    seconds = worlds.seconds[case.verb]
    if rng.random() < 0.15:
        room = int(2 ** rng.uniform(11, 17))
        end = ended(case.words, world, room=room)
        assert end.code in (0, 1, 5), end
        return end, f"no file above {room} bytes"
    number = rng.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
    names = len(list(world.rglob("*")))
    after = rng.uniform(0, 0.03) if aimed else rng.uniform(0, seconds)
    began = (lambda: len(list(world.rglob("*"))) > names) if aimed else (lambda: True)
    end = ended(case.words, world, number, after, began)
    assert end.code in (0, 1, -signal.SIGKILL, STOPPED.get(number)), end
    assert end.seconds < 5, end
    return end, f"signal {number} after {after:.3f} s{' of writing' if aimed else ''}"


def is_output(case: Case, name: str) -> bool:
    """Say whether a name is of what the command writes, or of what a killed one may leave aside."""
    also = ("kept",) if case.verb == "data-clean-report" else ()
    return name.partition("/")[0] in ("out", *also) or name.startswith(".orrery-")


def check(case: Case, worlds: Worlds, world: Path, where: str) -> None:
    """Assert that the output is absent, old or new, and that the command can be given again."""
    out, new = world / "out", worlds.new / ("train" if case.verb == "train-resume" else case.verb)
    if case.verb in CONTINUED:
        words = [*Case(case.verb, False).words, *CONTINUED[case.verb]]
        done = ended(words, world)
        assert done.code == 0, f"{where}\n{done}"
        assert lasting(case, out) == lasting(case, new), where
    elif case.verb in RUNS:
        check_run(case, worlds, out, new, where)
    elif out.exists():
        is_old = case.existing and content(out) == content(worlds.old / case.verb)
        assert is_old or lasting(case, out) == lasting(case, new), where
    else:
        assert not case.existing, where
    if case.verb not in CONTINUED:
        done = ended([*VERBS[case.verb].line("out"), "--overwrite"], world)
        assert done.code in (0, 1), f"{where}\n{done}"
        assert lasting(case, out) == lasting(case, new), where
    assert not [name for name in tree(world) if "/.orrery-" in f"/{name}"], where


def check_run(case: Case, worlds: Worlds, out: Path, new: Path, where: str) -> None:
    """Assert that a run that was to be replaced is whole, or the new one has a sound checkpoint."""
    if not case.existing:
        return
    if (out / succession.DECIDED).exists():
        succession.finish(out)
    run_now, old = ours(out), ours(worlds.old / case.verb)
    if run_now != old:
        if case.verb == "train-vectors":
            assert lasting(case, out) == lasting(case, new), where
        else:
            assert CheckpointStore(out / "checkpoints").newest(pytest.fail) is not None, where
            assert not [name for name in run_now if run_now[name] is not None and run_now[name] == old.get(name)
                        and name.endswith("model.safetensors")], where  # fmt: skip


def content(path: Path) -> bytes | dict[str, bytes | None]:
    return tree(path) if path.is_dir() else path.read_bytes()


def ours(run: Path) -> dict[str, bytes | None]:
    """Return what a run has under its own names."""
    names = (*OURS, "report.json", "report.html")
    return {name: part for name, part in tree(run).items() if name.partition("/")[0] in names}


def lasting(case: Case, path: Path) -> object:
    """Return what two undisturbed commands leave alike."""
    parts = content(path)
    if isinstance(parts, bytes):
        return is_whole(parts) if case.verb in TIMED else parts
    if case.verb in (*RUNS, "train-resume", "compare", "ladder"):
        weights = {name: part for name, part in parts.items() if name.startswith("final/model")}
        return sorted(name for name in parts if name != LOCK and not name.startswith("checkpoints/")), weights
    if case.verb in TIMED:
        return {name: is_whole(part or b"") for name, part in parts.items()}
    return {name: part for name, part in parts.items() if name != LOCK}


def is_whole(part: bytes) -> bool:
    """Say whether a figure or a JSON file has its end."""
    return part.endswith((b"</svg>\n", b"}\n"))
