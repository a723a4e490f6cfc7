"""Words of the command line that cannot be meant are refused before anything is read: what, and what to do."""

from pathlib import Path

import pytest

from orrery.cli.program import run

USAGE, DATA = 2, 3

REFUSED = [
    ("answer M Who?", USAGE, "a question needs a context", 'orrery answer MODEL "Who?" --context "Ada wrote."'),
    ("answer M Who? --context x --file rows.jsonl", USAGE, "give either a question or --file, not both",
     "leave one of them out"),
    ("generate M text --answers 2", USAGE, "one beam has one answer, one group and no ranking", "add --num-beams 4"),
    ("translate M", USAGE, "give either a text or --file, not both and not neither", "orrery translate MODEL TEXT"),
    ("translate M text --file text.txt", USAGE, "give either a text or --file, not both and not neither",
     "orrery translate MODEL TEXT"),
    ("translate M --file text.txt --alignment a.svg", USAGE, "--alignment draws one sentence", "give it as TEXT"),
    ("classify M text --pair b", USAGE, "--pair names a column of --file, and labels of entailment need none",
     "leave --pair away"),
    ("classify M text --multi-label", USAGE, "--multi-label counts with --labels alone", "name the labels"),
    ("cloze M text --candidates a,,b", USAGE, "--candidates has an empty one",
     'write them with commas between: "an apple, a banana"'),
    ("compare --sweep 0 --sweep-share 0.1", USAGE, "--sweep 0 tries nothing, and its share or warm-ups are given",
     "leave them out"),
    ("compare --budgets 1 --steps 5", USAGE, "a comparison needs one kind of budget for all",
     "give --budgets (minutes) or --steps"),
    ("compare --sweep-recipes", USAGE, "--sweep-recipes: there are no recipes", "name recipe files, or leave it out"),
    ("compare --sweep 0 --hand-set", USAGE, "--hand-set: no rate is swept", "leave it out, or give --sweep 5"),
    ("data fetch unicode-names", USAGE, "unicode-names is made on this machine: there is nothing to fetch",
     "`orrery data show unicode-names`"),
    ("data clean text.txt --output new", USAGE, "nothing to clean by",
     "give --exact, --near 0.8, --filters gopher or --drop-matching REGEX"),
    ("embed M text --output a.txt", USAGE, "a.txt ends neither in .npy nor in .jsonl", "choose one of them"),
    ("evaluate M gsm8k --shots 0 --examples rows.jsonl", USAGE,
     "--examples with --shots 0: no example is shown", "--shots 5, or leave out --examples"),
    ("evaluate M mbpp rows.jsonl --shots 3", USAGE, "give --shots and --examples, or neither",
     "--shots 3 --examples FILE"),
    ("export M hf new --type f16", USAGE,
     "--type belongs to gguf; hf writes the numbers as they are", "leave --type away"),
    ("export M gguf new --binary", USAGE, "--binary belongs to word2vec", "leave --binary away"),
    ("export M peft new --merge", USAGE, "--merge belongs to gguf and hf", "leave --merge away"),
    ("generate M text --penalty-alpha 0.6 --top-p 0.9", USAGE, "--top-p cannot be used with --penalty-alpha",
     "contrastive search draws nothing"),
    ("generate M text --json-schema text.txt", DATA, "text.txt is no JSON: ", "give a JSON schema"),
    ("generate M text --json-schema list.json", DATA, "list.json is no JSON schema", "a schema is an object: {...}"),
    ("generate M text --grammar gone", DATA, "cannot read gone: No such file",
     "give the path of a UTF-8 file of a moderate size"),
    ("score M", USAGE, "give either a text or --file, not both and not neither", "orrery score MODEL TEXT"),
    ("score M text --file text.txt", USAGE, "give either a text or --file, not both and not neither",
     "orrery score MODEL TEXT"),
    ("score M --file empty.txt", DATA, "the text is empty", "give at least one character"),
    ("score M --file gone", DATA, "cannot read gone: No such file", "give the path of a text file"),
    ("score M --file latin.txt", DATA, "latin.txt is not UTF-8 (byte 1)", "convert it to UTF-8"),
    ("embed M text --file text.txt", USAGE, "give either texts or --file, not both", "leave one of them out"),
    ("embed M --file empty.txt", DATA, "empty.txt has no lines", "give it at least one text"),
    ("tokenizer compare text --sentences -1", USAGE, "--sentences -1 is not between 0 and ", "give 0 or more"),
    ("tokenizer compare --parallel text.txt text.txt --corpus text.txt", USAGE,
     "--parallel trains its own tokenizers on its own text", "leave --tokenizer, --corpus away"),
    ("tokenizer compare text --corpus text.txt --tokenizer T", USAGE,
     "--corpus is text to train on, and --tokenizer names trained ones", "leave one of them away"),
    ("tokenizer compare", USAGE, "nothing to compare", "give a text, a file, or --parallel SOURCE TARGET"),
    ("plan gpt3-125m --measure --machine h100", USAGE, "a step is measured on this machine alone",
     "leave out --machine, or --measure"),
    ("plan --measure --tables", USAGE, "--measure takes a step of a model",
     "name a model or a recipe, and nothing else to print"),
    ("plan", USAGE, "nothing to plan", "name a preset such as gpt3-175b, a recipe, a folder; or --data, --tables"),
    ("plan --tables --output text.txt", USAGE, "text.txt is a file, and --output names a folder",
     "give a folder; the page is made in it"),
    ("show . --config list.json", USAGE, "--config goes with a family, and '.' is none", "leave it away for a folder"),
    ("neighbours V word --n 0", USAGE, "--n 0 is not between 1 and ", "give 1 or more"),
    ("tokenizer show T text --best 0", USAGE, "--best 0 is not between 1 and ", "give 1 or more"),
    ("neighbours V", USAGE, "no word is given", "orrery neighbours VECTORS WORD ...; see also --analogy, --evaluate"),
    ("grpo M --train text.txt", USAGE, "grpo: what is an answer worth?",
     "give --reward NAME, such as arithmetic, exact, or a folder"),
    ("grpo M --reward exact", USAGE, "grpo: M answers which prompts?", "give --train FILE, or a recipe (.yaml)"),
]  # fmt: skip


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in "MVT":  # models are looked for first
        Path(folder).mkdir()
    for name, content in (
        ("text.txt", b"a text\n"), ("empty.txt", b""), ("latin.txt", b"a\xe4\n"), ("list.json", b"[1]"),
        ("rows.jsonl", b"{}\n"),
    ):  # fmt: skip
        Path(name).write_bytes(content)


@pytest.mark.parametrize(("words", "code", "message", "hint"), REFUSED, ids=[line for line, *_ in REFUSED])
def test_what_cannot_be_meant_is_refused_with_what_to_do(
    words: str, code: int, message: str, hint: str, place: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words.split()) == code
    shown = capsys.readouterr()
    error, advice = shown.err.splitlines()[-2:]
    assert error.startswith(f"error: {message}")
    assert advice.startswith(f"hint: {hint}")
    assert shown.out == ""
