"""From 200 pairs of letters to a model that turns words around, and its translations from the command line."""

import io
import json
import random
import re
from pathlib import Path

import pytest
import yaml

from orrery.cli.program import run
from orrery.language_model.load import load

RECIPE = {
    "name": "reverse",
    "model": {"family": "rnnsearch", "config": {"hidden_size": 48, "max_position_embeddings": 16}},
    "tokenizer": {"kind": "character"},
    "data": {"pairs": {"source": "train.en", "target": "train.de"}, "val": {"source": "test.en", "target": "test.de"}},
    "batches": {"kind": "pairs", "length": 12, "size": 32},
    "objective": {"kind": "seq2seq"},
    "training": {
        "steps": 250,
        "precision": "float32",
        "device": "cpu",
        "optimizer": {"kind": "adamw", "rate": 0.01},
        "schedule": {"kind": "cosine", "warmup": 20},
    },
    "evaluation": {"every": 250, "sample": "abc"},
}


def words(count: int, seed: int) -> list[str]:
    draw = random.Random(seed)
    return ["".join(draw.choices("abcdef", k=draw.randint(2, 6))) for _ in range(count)]


def write(name: str, sources: list[str]) -> None:
    Path(f"{name}.en").write_text("".join(f"{word}\n" for word in sources))
    Path(f"{name}.de").write_text("".join(f"{word[::-1]}\n" for word in sources))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a trained run; training takes some seconds."""
    path = tmp_path_factory.mktemp("reverse")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        patch.setenv("ORRERY_RUNS", "runs")
        write("train", words(200, 1))
        write("test", words(60, 2))
        Path("reverse.yaml").write_text(yaml.safe_dump(RECIPE))
        assert run(["train", "reverse.yaml"]) == 0
    return path


@pytest.fixture
def model(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(folder)
    return "runs/reverse"


def test_most_words_never_seen_are_turned_around(model: str) -> None:
    unseen = sorted(set(words(60, 2)) - set(words(200, 1)))
    lm = load(model, say=lambda line: None)
    written = lm.translate(unseen, num_beams=1)
    right = sum(answer == word[::-1] for word, answer in zip(unseen, written, strict=True))
    assert right / len(unseen) > 0.6, right / len(unseen)
    # One at a time, a few at a time, all at once, and as `generate` writes them: the same.
    assert lm.translate(unseen, num_beams=1, batch_size=7) == written
    assert [lm.translate([word], num_beams=1)[0] for word in unseen[:9]] == written[:9]
    assert [lm.generate(word, max_new_tokens=128) for word in unseen[:9]] == written[:9]


def test_a_sentence_a_file_and_standard_input(model: str, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(["translate", model, "abc"]) == 0
    one = capsys.readouterr().out
    assert run(["translate", model, "--num-beams", "4", "abc"]) == 0
    assert capsys.readouterr().out == one
    lines = "abc\n\nfedcba\r\n  \ncc"
    Path("lines.txt").write_bytes(lines.encode())
    assert run(["translate", model, "--file", "lines.txt", "--batch-size", "1"]) == 0
    printed, told = capsys.readouterr()
    assert "lines.txt: without a text, and passed over: 2 of 5 rows (lines 2, 4)" in told
    assert printed.split("\n")[0] + "\n" == one
    assert [bool(line) for line in printed.split("\n")] == [True, False, True, False, True, False]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(lines.encode())))
    assert run(["translate", model, "-"]) == 0
    assert capsys.readouterr().out == printed


def test_the_alignment_of_a_sentence_is_drawn_and_that_of_a_set_measured(model: str, capsys) -> None:
    assert run(["translate", model, "abc", "--alignment", "abc.svg"]) == 0
    assert Path("abc.svg").read_text(encoding="utf-8").startswith("<svg")
    assert run(["translate", model, "-", "--alignment", "abc.svg"]) == 2
    assert "one sentence" in capsys.readouterr().err
    assert run(["evaluate", model, "alignment", "--source", "test.en", "--target", "test.de"]) == 0
    assert "60 sentences, from word to word (0 steps)" in capsys.readouterr().out


def test_a_test_set_is_scored_and_its_translations_are_kept(model: str, capsys) -> None:
    flags = ["--source", "test.en", "--target", "test.de", "--num-beams", "2", "--output", "written.txt"]
    assert run(["evaluate", model, "translation", *flags, "--confidence", "--samples", "50"]) == 0
    told = capsys.readouterr().out
    assert re.search(r"^BLEU \d+\.\d\d \(.*tok:13a.*version:", told, re.M)
    assert re.search(r"^chrF2 (100|[5-9]\d)\.\d\d \(", told, re.M), told
    assert len(re.findall(r"^  95 % interval \d+\.\d+ to \d+", told, re.M)) == 2, told
    assert re.search(r"^60 sentences, [\d,.]+ a second, 2 beams$", told, re.M)
    assert "1-10 words, 60 pairs: BLEU" in told
    written = Path("written.txt").read_text().split("\n")
    assert written == [*load(model, say=lambda line: None).translate(words(60, 2), num_beams=2), ""]


def test_the_run_says_a_sample_and_its_epochs(model: str) -> None:
    assert re.search(r"^abc → .*$", Path(model, "log.txt").read_text(), re.M)
    last = json.loads(Path(model, "metrics.jsonl").read_text().splitlines()[-1])
    assert last["epochs/pairs"] == 250 * 32 / 200


@pytest.mark.parametrize(
    ("flags", "words", "code"),
    [
        (["translate", "MODEL"], "give either a text or --file", 2),
        (["translate", "MODEL", "--fiel"], "unknown option --fiel", 2),
        (["translate", "MODEL", "a" * 40], "text 1", 2),
        (["translate", "MODEL", "--file", "none.txt"], "cannot read none.txt", 3),
        (["translate", "MODEL", "a", "--num-beams", "0"], "--num-beams 0", 2),
        (["translate", "MODEL", "a", "--batch-size", "0"], "--batch-size 0", 2),
        (["evaluate", "MODEL", "juggling"], "unknown task 'juggling'", 2),
        (["evaluate", "MODEL", "translation"], "give --source and --target, or --set", 2),
        (["evaluate", "MODEL", "translation", "--source", "test.en"], "give --source and --target, or --set", 2),
        (["evaluate", "MODEL", "translation", "--source", "one.en", "--target", "one.en", "--confidence"], "1 exam", 3),
        (["evaluate", "MODEL", "translation", "--sauce", "test.en"], "--sauce", 2),
        (["evaluate", "MODEL", "perplexity", "--file", "test.en"], "only a decoder", 2),
        (["evaluate", "MODEL", "perplexity"], "give either --file or --set", 2),
    ],
)
def test_refusals(flags: list[str], words: str, code: int, model: str, capsys) -> None:
    Path("one.en").write_text("abc\n", encoding="utf-8")
    assert run([model if flag == "MODEL" else flag for flag in flags]) == code
    assert words in capsys.readouterr().err


def test_help_names_tasks_and_their_settings(capsys) -> None:
    assert run(["evaluate", "--help"]) == 0
    told = capsys.readouterr().out
    assert all(word in told for word in ("translation:", "perplexity:", "--set", "--num-beams", "--length"))
