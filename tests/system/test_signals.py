"""A signal ends every verb, whenever it comes: soon, with its own code, without a traceback."""

import os
import pty
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml

import outputs_toy
from forking import Ended, catches, ended, is_over
from orrery.checkpoints.disk import remove
from orrery.checkpoints.store import CheckpointStore
from orrery.cli.stopping import PATIENCE
from outputs_toy import VERBS
from programs import PIPE, Program

READING = {
    "generate": "generate llama cat --max-new-tokens 30",
    "chat": "chat llama --template chatml",
    "score": "score llama cat",
    "translate": "translate rnnsearch --file source.txt",
    "evaluate-perplexity": "evaluate llama perplexity --file text.txt",
    "evaluate-alignment": "evaluate rnnsearch alignment --source source.txt --target target.txt",
    "neighbours": "neighbours vectors.bin cat",
    "show": "show llama",
    "plan": "plan train.yaml --data",
    "tokenizer-show": "tokenizer show llama cat",
    "data-show": "data show text.jsonl",
    "info": "info",
    "lab-list": "lab",
}
LINES = {name: words.split() for name, words in READING.items()} | {name: VERBS[name].line("out") for name in VERBS}
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}
MOMENTS = ("before anything is imported", "while it imports", "in its work")
WHEN = [(number, moment) for number in CODES for moment in MOMENTS]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prepared")
    outputs_toy.prepare(folder)
    return folder


@pytest.fixture
def here(prepared: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(prepared, tmp_path / "here"))


def start(words: list[str], folder: Path, **more: object) -> subprocess.Popen:
    """Start the program as a shell in the foreground would: with SIGINT and SIGHUP as the system has them."""

    def usual() -> None:
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)

    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **more}
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "orrery", *words]
    return subprocess.Popen(command, cwd=folder, env=environment, preexec_fn=usual, **pipes)


def cold(words: list[str], folder: Path, number: int, after: float) -> Ended:
    """Run the program itself, and send a signal some time after it can take one."""
    with start(words, folder) as process:
        while not catches(process.pid) and not is_over(process.pid):
            time.sleep(0.001)
        time.sleep(after)
        asked = time.monotonic()
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
        return Ended(process.returncode, out, err, time.monotonic() - asked)


def ends_soon(verb: str, here: Path, when: Iterable[tuple[int, str]]) -> None:
    """Interrupt a verb by signals at moments, and hold it to code, time and words."""
    words, rng = LINES[verb], random.Random(verb)
    undisturbed = ended(words, here)
    for number, moment in when:
        for name in {path.name for path in here.iterdir()} & {"out", "kept"}:
            remove(here / name)
        if moment == MOMENTS[-1]:
            end = ended(words, here, number, rng.uniform(0, undisturbed.seconds))
        else:
            end = cold(words, here, number, rng.uniform(0, 0.02 if moment == MOMENTS[0] else 1.0))
        where = f"{verb}, {signal.Signals(number).name} {moment}: {end}"
        assert end.code in (CODES[number], undisturbed.code), where
        assert end.seconds < 5, where
        assert "Traceback" not in end.err, where
        assert "defect" not in end.err, where
        if end.code == 130:
            said = ("error: interrupted", "saved", "stopped before the first step: nothing new to save")
            assert any(line in end.err for line in said), where


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.parametrize("verb", LINES)
def test_every_verb_ends_at_a_moment(verb: str, here: Path) -> None:
    """One signal at one moment, another for the next verb."""
    ends_soon(verb, here, [WHEN[list(LINES).index(verb) % len(WHEN)]])


@pytest.mark.long
@pytest.mark.alone
@pytest.mark.parametrize("verb", LINES)
def test_every_verb_ends_at_any_moment(verb: str, here: Path) -> None:
    ends_soon(verb, here, WHEN)


@pytest.mark.alone
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_before_anything_is_imported(number: int, here: Path) -> None:
    end = cold(["generate", "llama", "cat"], here, number, 0.0)
    assert (end.code, end.out) == (128 + number, "")
    assert end.err == ("error: interrupted\n" if number == signal.SIGINT else "")


STUBBORN = """
import ctypes, signal, time

def work() -> None:
    print("ready", flush=True)
    {}
"""
WAYS = {
    "swallowed": "\n    ".join(["try:", "    time.sleep(60)", "except BaseException:", "    pass", "time.sleep(60)"]),
    "outside Python": "ctypes.CDLL(None).sleep(60)",
}


def stopped(work: str, folder: Path, number: int) -> Ended:
    """Send a signal to a verb of one's own, once it says that it is ready."""
    (folder / "stubborn.py").write_text(work)
    script = (
        "import sys; sys.path.append('.')\n"
        "sys.argv = ['orrery', 'work']\n"
        "from orrery.cli import start, verbs; verbs.VERBS['work'] = verbs.Verb('stubborn:work', '', '')\n"
        "start.main()"
    )
    pipes = {"stdout": PIPE, "stderr": PIPE, "text": True}
    with Program([sys.executable, "-c", script], cwd=folder, **pipes) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.1)
        asked = time.monotonic()
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
        return Ended(process.returncode, out, err, time.monotonic() - asked)


@pytest.mark.alone
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_work_that_does_not_unwind_is_not_waited_for(way: str, number: int, tmp_path: Path) -> None:
    end = stopped(STUBBORN.format(WAYS[way]), tmp_path, number)
    assert end.code == 128 + number
    assert end.seconds < 5
    assert "Traceback" not in end.err


DROPPED = """
    class Slow:
        def __del__(self) -> None:
            time.sleep(60)
    Slow()
    try:
        time.sleep(60)
    finally:
        print("unwound", flush=True)
"""


@pytest.mark.alone
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_inside_a_destructor_is_raised_after_it(number: int, tmp_path: Path) -> None:
    """Python drops what is raised there: the work would go on as if nobody had asked."""
    end = stopped(STUBBORN.format(DROPPED.strip()), tmp_path, number)
    assert (end.code, end.out) == (128 + number, "unwound\n")
    assert end.seconds < PATIENCE
    assert "Traceback" not in end.err


ENDING = """
import os, signal
from orrery.cli import start, stopping

def run(words):
    set_handler = signal.signal
    def interrupted(number, handler):
        signal.signal = set_handler
        os.kill(os.getpid(), {number})
        return set_handler(number, handler)
    signal.signal = interrupted
    return 7

import orrery.cli.program
orrery.cli.program.run = run
start.main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_the_end_is_prepared_leaves_with_what_the_verb_earned(number: int) -> None:
    code = ENDING.format(number=int(number))
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (7, "")


def long_run(here: Path) -> list[str]:
    recipe = outputs_toy.TRAIN | {"training": outputs_toy.TRAIN["training"] | {"steps": 1_000_000}}
    recipe |= {"checkpoints": {"every": 1_000_000}, "evaluation": {"every": 1_000_000, "batches": 1}}
    (here / "long.yaml").write_text(yaml.safe_dump(recipe))
    return ["train", "long.yaml", "--output", "run"]


@pytest.mark.slow
@pytest.mark.alone
def test_a_training_whose_terminal_is_closed_saves_and_ends(here: Path) -> None:
    ours, theirs = pty.openpty()
    process = start(long_run(here), here, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    metrics = here / "run/metrics.jsonl"
    deadline = time.monotonic() + 60
    while not metrics.exists() and time.monotonic() < deadline:
        os.read(ours, 10_000)
    os.close(ours)  # what it writes to the terminal fails from here on
    process.send_signal(signal.SIGHUP)
    assert process.wait(20) == 129
    assert CheckpointStore(here / "run/checkpoints").newest(pytest.fail) is not None


@pytest.mark.slow
@pytest.mark.alone
def test_nohup_is_obeyed(here: Path) -> None:
    words = [sys.executable, "-m", "orrery", *long_run(here)]
    with subprocess.Popen(["nohup", *words], cwd=here, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 60
        while not (here / "run/metrics.jsonl").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGHUP)
        time.sleep(0.5)
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 143
