"""Values that mean nothing: empty texts of flags, lists in the place of a number, numbers beyond all use."""

from pathlib import Path

import pytest

from orrery.cli.program import VERBS, build, run
from orrery.errors import DataError, ModelFileError
from orrery.exchange.reading.config_keys import settled
from orrery.exchange.saving.import_model import import_model
from orrery.training.folder import LOG, RunFolder
from orrery.tuning._whole_numbers import group_of
from tiny_models import TOKENIZER, saved

EMPTY = [
    "plan gpt2 --dtype=", "plan gpt2 --machine=", "classify none a --column=", "embed none a --column=",
    "data prepare none --tokenizer=t -o new --column=", "generate none a --kernel=", "generate none a --device=",
    "import none new --ignore-keys=", "finetune classification --from=x --train=y --labels=",
    "lab bottleneck --output=", "train none --output=", "see none a --output=",
    "data clean none -o new --apart=", "data clean none -o new --drop-matching=", "neighbours none cat --concordance=",
    "compare --models=", "distil none --prompts=a --output=b --column=", "cloze none __ --candidates=",
    "patch none a b --answer=", "answer none a --context=",
]  # fmt: skip
LISTS = [
    "lab bottleneck --seeds=[1]", "compare --seeds=[1]", "compare --steps=[1]", "compare --steps=[1,2]",
    "compare --budgets=[1]", "compare --warmups=[0.1]", "plan gpt2 --devices=[1]", "lab bottleneck --seeds=[]",
    'compare --seeds=["1"]', "lab bottleneck --seeds=[[1]]", "compare --seeds={1}",
]  # fmt: skip
BEYOND = [
    "evaluate none humaneval --seconds=1e30", "evaluate none mbpp a --seconds=86401",
    "tree none a --samples=2147483647", "tree none a --samples=10001",
    "finetune classification --seeds=2147483647", "sft none --train=a --seeds=1001",
]  # fmt: skip


@pytest.mark.parametrize("line", [*EMPTY, *LISTS, *BEYOND])
def test_what_means_nothing_is_refused_by_its_flag(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(line.split()) == 2
    said = capsys.readouterr().err
    flag = [word for word in line.split() if word.startswith("--")][-1].partition("=")[0]
    assert said.startswith(f"error: {flag} ") or f" {flag} " in said.splitlines()[0], said
    assert "hint: " in said
    assert list(tmp_path.iterdir()) == []


def test_some_flags_may_be_empty_and_those_that_are_so_by_default() -> None:
    from orrery.cli.calling import refuse_empty

    app = build(["chat"])
    for line in ("chat x --system=", "generate x a --regex=", "evaluate x mmlu f --subjects=", "evaluate x blimp"):
        verb, given, _ = app.parse_args(line.split(), exit_on_error=False, print_error=False)
        refuse_empty(verb, given)
    assert "chat" in VERBS


def test_a_folder_that_no_page_can_name_is_refused_before_the_demo(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo", "--output=a/\udcff"]) == 2
    assert "is no UTF-8" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["\udcff", "a\ud800", "\udfff\ud800"])
def test_half_a_surrogate_pair_is_no_token(text: str) -> None:
    with pytest.raises(DataError, match=r"lone surrogate U\+D"):
        TOKENIZER.id(text)


def test_a_log_holds_a_name_that_is_no_utf_8(tmp_path: Path) -> None:
    RunFolder(tmp_path).log("run \udcff: ok")
    assert (tmp_path / LOG).read_text(encoding="utf-8") == "run \\udcff: ok\n"


@pytest.mark.parametrize("group", [2**31 - 1, 10**30, 97, 96])
def test_a_group_beyond_the_width_is_the_width(group: int) -> None:
    assert group_of(96, group) == 96
    assert group_of(7, group) is None


@pytest.mark.parametrize("keys", [["nothing"], ["n_embd,n_layer"], ["N_EMBD"], ["model_type ", "x"], ["x" * 5000]])
def test_a_key_to_ignore_that_is_not_there_is_refused(keys: list[str], tmp_path: Path) -> None:
    folder = saved(tmp_path / "there", "gpt2")
    with pytest.raises(ModelFileError, match="has no key"):
        import_model(folder, tmp_path / "new", ignore_keys=keys)
    assert not (tmp_path / "new").exists()
    config = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "mine": 1}
    assert "mine" not in settled(config, folder / "config.json", ["mine"])[0]
