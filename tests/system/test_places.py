"""A path that is not there is told before torch is imported; a run is found by its name."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

import orrery
from orrery.checkpoints.places import place_of
from orrery.cli.program import VERBS, run
from orrery.errors import ModelFileError
from tiny_models import saved

MISSING = [
    "with GONE models m",
    "generate GONE hi", "tree GONE hi", "see GONE hi", "patch GONE a b --answer c", "serve GONE", "chat GONE",
    "serve m --template GONE", "chat m --template GONE",
    "score GONE hi", "translate GONE hi", "classify GONE hi", "tag GONE hi", "answer GONE q --context c",
    "summarise GONE hi", "caption GONE t.txt", "caption m GONE", "detect GONE t.txt", "detect m GONE",
    "segment GONE t.txt", "segment m GONE", "embed GONE hi", "rank GONE hi a",
    "cloze GONE a__b --candidates x,y", "label GONE hi",
    "recommend GONE --history a", "recommend m --history a --items GONE.csv",
    "recommend m --history a --items t.csv --encoder GONE", "evaluate GONE perplexity --file t.txt",
    "evaluate GONE translation --source t.txt --target t.txt", "evaluate GONE alignment --source t.txt --target t.txt",
    "evaluate GONE word-vectors", "evaluate GONE retrieval t.csv", "evaluate m retrieval GONE",
    "evaluate GONE similarity t.csv", "evaluate m similarity GONE", "evaluate GONE reranking t.csv",
    "evaluate m reranking GONE", "evaluate GONE choices t.txt", "evaluate GONE hellaswag t.txt",
    "evaluate GONE mmlu m", "evaluate GONE blimp --file t.txt", "evaluate GONE gsm8k --file t.txt",
    "evaluate GONE humaneval --file t.txt", "evaluate GONE mbpp t.txt", "evaluate m perplexity --file GONE",
    "evaluate m translation --source GONE --target t.txt", "evaluate m choices GONE", "evaluate m gsm8k --file GONE",
    "evaluate labels GONE GONE", "neighbours GONE cat", "models GONE", "show ./GONE", "plan ./GONE", "plan GONE.yaml",
    "average GONE out", "average m out --others GONE", "export GONE gguf out", "export GONE hf out",
    "quantise GONE out", "quantise m out --text GONE", "import GONE out", "parity GONE --against m",
    "parity m --against GONE", "tokenizer show GONE hi", "tokenizer chat GONE GONE",
    "tokenizer compare hi --tokenizer GONE", "tokenizer compare hi --corpus GONE", "tokenizer train GONE -o out",
    "data show GONE", "data prepare t.txt --tokenizer GONE -o out",
    "data verify GONE", "data clean GONE -o out --exact", "finetune classification --from GONE --train t.csv",
    "finetune classification --from m --train GONE.csv", "finetune GONE.yaml", "sft GONE --train t.csv",
    "sft m --train GONE.jsonl", "sft m --train t.csv --val GONE.jsonl", "sft GONE.yaml", "dpo GONE --train t.csv",
    "dpo m --train GONE.jsonl", "reward GONE --train t.csv", "reward m --train GONE.jsonl",
    "ppo GONE --train t.csv --reward exact", "ppo m --train GONE.csv --reward exact",
    "ppo m --train t.csv --reward runs/GONE", "grpo GONE --train t.csv --reward exact",
    "grpo m --train GONE.csv --reward exact", "distil GONE --prompts t.txt -o out.jsonl",
    "distil m --prompts GONE -o out.jsonl", "bench generate ./GONE", "compare --text GONE", "compare GONE.yaml",
    "compare --config GONE.yaml", "ladder GONE.yaml", "train GONE.yaml", "train GONE", "serve m --laws GONE",
    "see m hi --laws GONE", "serve m --adapter a=GONE", "serve m --api-key-file GONE", "chat m --template GONE.jinja",
    "classify m --file GONE", "score m --file GONE", "generate m hi --json-schema GONE", "generate m hi --draft GONE",
    "generate m hi --grammar GONE", "translate m --file GONE", "train r.yaml", "train m.yaml",
]  # fmt: skip
RECIPE = """
name: x
model: {family: gpt2}
tokenizer: {kind: character}
data: {train: GONE}
batches: {length: 8, size: 2}
training: {steps: 1, optimizer: {rate: 0.1}}
"""
BEGINS = RECIPE.replace("family: gpt2", "from: GONE").replace("train: GONE", "train: t.txt")
PROGRAM = """
import contextlib, io, json, sys

class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            raise SystemExit("torch was imported")

sys.meta_path.insert(0, NoTorch())
from orrery.cli.program import run

outcomes = {}
for line in json.load(sys.stdin):
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        code = run(line.split())
    outcomes[line] = code, said.getvalue()
print(json.dumps(outcomes))
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str]]:
    """What is said of each, in one process in which torch cannot be imported."""
    folder = tmp_path_factory.mktemp("place")
    for name, text in {
        "t.txt": "a text\n", "t.csv": "text,label\na,b\n", "r.yaml": RECIPE, "m.yaml": BEGINS, "m/config.json": "{}",
    }.items():  # fmt: skip
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps(MISSING),
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )  # fmt: skip
    answered: dict[str, tuple[int, str]] = json.loads(done.stdout)
    return answered


@pytest.mark.parametrize("line", MISSING)
def test_a_path_that_is_not_there_is_told_without_torch(line: str, answers: dict[str, tuple[int, str]]) -> None:
    code, said = answers[line]
    error, hint = said.splitlines()
    assert code in (2, 3, 4)
    assert error.startswith("error: ")
    assert "GONE" in error
    assert hint.startswith("hint: ")


def test_each_verb_that_reads_is_tried() -> None:
    tried = {line.split()[0] for line in MISSING}
    assert set(VERBS) - tried <= {"demo", "lab", "quiz", "course", "verify", "info", "completion"}


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ORRERY_RUNS", str(tmp_path / "elsewhere"))
    saved(tmp_path / "elsewhere/small/final", "llama")
    return tmp_path / "elsewhere"


@pytest.mark.parametrize(
    "words",
    [
        ["score", "small", "a b"],
        ["show", "./elsewhere/small"],
        ["embed", "small", "a"],
        ["see", "small", "a", "-o", "a.html"],
    ],
)
def test_a_run_is_found_by_its_name(words: list[str], runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words) == 0, capsys.readouterr().err


def test_python_finds_it_too(runs: Path) -> None:
    assert orrery.load("small").score("a b").total < 0


def test_a_path_goes_before_a_run_and_a_near_name_is_suggested(runs: Path) -> None:
    assert place_of("small") == runs / "small"
    Path("small").mkdir()
    assert place_of("small") == "small"
    for wrong in ("smal", "runs/smal", "smalll"):
        with pytest.raises(ModelFileError, match="does not exist") as refused:
            place_of(wrong)
        assert refused.value.hint.startswith("did you mean small? ")


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a\0b", "n" * 5000, "é" * 300, "runs/../..", " "])
def test_odd_names(name: str, runs: Path) -> None:
    if name in ("", ".", "..", "runs/../.."):
        return
    with pytest.raises(ModelFileError, match="does not exist"):
        place_of(name)


def test_it_is_told_at_once(tmp_path: Path) -> None:
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-m", "orrery", "generate", "gone", "a"], cwd=tmp_path, capture_output=True)
    assert done.returncode == 4
    assert time.monotonic() - began < 2
