"""``orrery demo``: on a toy text in seconds, as it is in the slow tier."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import orrery
import programs
from demo_toy import WORDS, write_ring
from orrery.cli.demo import RECIPE
from orrery.cli.program import run
from orrery.data.corpora import corpus_fingerprint, read_corpus
from orrery.data.records import Document
from orrery.data.sources import text
from orrery.data.sources.text import TextSettings, read_documents
from orrery.errors import UsageError
from orrery.kernels.processor import this_processor
from orrery.recipes.read import load_recipe
from orrery.studies.demo import tour
from orrery.training.precision import has_bfloat16
from orrery.training.progress import Silent
from programs import DEVNULL, PIPE

FOLDER = "runs/demo"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    write_ring(folder / "ring")
    return folder


@pytest.fixture
def demo(place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.chdir(place)
    monkeypatch.delenv("ORRERY_RUNS", raising=False)

    def call(*words: str) -> tuple[int, str, str]:
        code = run(["demo", "--data.train", "ring", *WORDS, *words])
        return code, *capsys.readouterr()

    return call


def test_a_model_below_every_floor_passes_and_leaves_a_page_and_a_model(demo) -> None:
    code, out, err = demo("--training.steps", "100", "--evaluation.sample", "The ring")
    report = json.loads(Path(FOLDER, "report.json").read_text())
    assert (code, report["passed"]) == (0, True), err
    assert f"{FOLDER}/report.html" in out
    bits = {measure["name"]: measure["bits_per_byte"] for measure in report["measures"]}
    told = {line.split()[0]: line for line in out.splitlines() if line.endswith(" s)")}
    assert list(told) == list(report["run"]["seconds"])
    for name, said in (
        ("text", f"{report['corpus']['held_back_documents']} held back"),
        ("tokenizer", "300 tokens"),
        ("training", "100 steps; "),
        ("measuring", f"{bits['this model']:.3f} bits per byte on the text held back"),
        ("writing", " tokens/s"),
        ("looking", "4 attention heads over "),
    ):
        assert said in told[name]
        assert told[name].endswith(f"({report['run']['seconds'][name]:.1f} s)")
    checked = [measure["name"] for measure in report["measures"] if measure["role"] == "check"]
    assert checked == ["byte unigram", "byte trigram", "xz"]
    assert all(bits["this model"] < bits[name] for name in checked)
    assert [record["step"] for record in report["run"]["records"] if record.get("val/bpb")] == [50, 100]
    # The windows overlap and begin with each document, so this measure is near the training's and below it.
    assert bits["this model"] <= report["run"]["records"][-1]["val/bpb"] * 1.1
    assert {sample["prompt"] for sample in report["samples"]} == {"The ring"}
    lm = orrery.load(FOLDER)
    assert lm.generate("The ring", max_new_tokens=5)
    assert "bits per byte, xz" in Path(FOLDER, "final/README.md").read_text()
    assert report["corpus"]["fingerprint"] == corpus_fingerprint(read_corpus("ring"))
    assert report["corpus"]["fingerprint"] in Path(FOLDER, "report.html").read_text()


def test_a_failed_check_is_exit_1_and_a_demo_replaces_a_demo(demo) -> None:
    if not Path(FOLDER, "report.json").exists():
        demo("--training.steps", "2", "--training.schedule.warmup", "1")
    before = Path(FOLDER, "report.json").read_text()
    code, _, err = demo("--training.steps", "2", "--training.schedule.warmup", "1", "--seed", "5")
    assert (code, "--overwrite" in err) == (2, True)
    assert Path(FOLDER, "report.json").read_text() == before
    code, out, err = demo("--training.steps", "2", "--training.schedule.warmup", "1", "--seed", "5", "--overwrite")
    report = json.loads(Path(FOLDER, "report.json").read_text())
    assert (code, report["passed"], report["run"]["seed"]) == (1, False, 5)
    assert err.splitlines()[-2].startswith("error: a check failed: below byte")
    assert out.startswith("Orrery's demo writes into")
    assert "checks failed" in Path(FOLDER, "report.html").read_text()


def test_what_no_demo_wrote_is_left_alone(demo, place: Path) -> None:
    mine = place / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work")
    code, _, err = demo("--output", "mine")
    assert (code, "holds something that no demo wrote" in err) == (2, True)
    assert [entry.name for entry in mine.iterdir()] == ["thesis.txt"]
    assert demo("--output", "over", "--training.steps", "2", "--training.schedule.warmup", "1")[0] == 1
    again = ["--output", "over", "--overwrite", "--training.steps", "3"]
    assert run(["train", "over/config.yaml", *again]) == 2  # its own recipe is an input
    shutil.copy("over/config.yaml", "again.yaml")
    assert run(["train", "again.yaml", *again]) == 0
    assert demo("--output", "over", "--overwrite")[0] == 2


def test_an_earlier_demo_is_replaced_only_where_that_is_asked_for(tmp_path: Path, monkeypatch) -> None:
    recipe = load_recipe(RECIPE, [], {})
    (tmp_path / "report.json").write_text(json.dumps(tour.mark(recipe)))

    def began(*words: object) -> None:
        raise InterruptedError

    monkeypatch.setattr(tour, "tour", began)
    with pytest.raises(UsageError, match="holds an earlier demo") as refused:
        tour.demo(recipe, tmp_path, print, Silent)
    assert "add --overwrite" in refused.value.hint
    with pytest.raises(InterruptedError):
        tour.demo(recipe, tmp_path, print, Silent, overwrite=True)


def test_the_text_is_read_once(demo, monkeypatch: pytest.MonkeyPatch) -> None:
    read = []

    def counted(settings: TextSettings, source: str) -> list[Document]:
        read.append(source)
        return read_documents(settings, source)

    monkeypatch.setattr(tour, "read_documents", counted)
    monkeypatch.setattr(text, "read_documents", counted)
    assert demo("--output", "once", "--training.steps", "2", "--training.schedule.warmup", "1")[0] == 1
    assert read == ["ring"]


def test_refusals(demo, place: Path) -> None:
    (place / "one").mkdir(exist_ok=True)
    (place / "one" / "text.txt").write_text("too little")
    assert run(["demo", "--data.train", "one", "--output", "x"]) == 3
    assert demo("--model", "{spec: here.json}")[0] == 2
    assert not Path("x/report.html").exists()


@pytest.mark.alone
def test_an_interrupt_ends_it_with_its_own_code(place: Path) -> None:
    words = ["demo", "--data.train", "ring", *WORDS, "--output", "stopped", "--training.steps", "1000000"]
    command = [*programs.ORRERY, *words, "--logging.every", "1"]
    with programs.Program(command, cwd=place, stderr=PIPE, stdout=DEVNULL, text=True) as process:
        assert process.stderr is not None
        next(line for line in process.stderr if line.startswith("step"))
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
    assert process.returncode == 130, rest
    assert rest.endswith("error: interrupted\n")


def without_network() -> list[str]:
    """Return what runs a command in a world without a network, where this machine allows it."""
    words = ["unshare", "--map-root-user", "--net"]
    if shutil.which("unshare") and subprocess.run([*words, "true"], check=False, capture_output=True).returncode == 0:
        return words
    return []


# Where auto means float32, a second demo in float32 would be the same one, for another five minutes.
OTHERS = [pytest.param("float32", marks=pytest.mark.long)] if has_bfloat16("cpu", this_processor()) else []


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("precision", ["auto", *OTHERS])
def test_the_demo_itself(precision: str, tmp_path: Path) -> None:
    command = [*without_network(), sys.executable, "-m", "orrery", "demo", "--training.precision", precision]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "ORRERY_RUNS": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "demo" / "report.json").read_text())
    bits = {measure["name"]: measure["bits_per_byte"] for measure in report["measures"]}
    # Measured over three seeds: at least 0.25 below xz, the nearest floor.
    assert bits["this model"] < bits["xz"] - 0.15
    # Shares, as seconds are another machine's: what is waited for is the training, and nothing beside it grew.
    # Measured: training 92 % on one thread, 79 % on two of which others took much; the next part 5 and 13 %.
    seconds = report["run"]["seconds"]
    assert list(seconds) == ["text", "tokenizer", "training", "measuring", "writing", "looking"]
    training = seconds.pop("training")
    assert training > 0.65 * (training + sum(seconds.values())), seconds
    assert max(seconds.values()) < 0.25 * training, seconds
