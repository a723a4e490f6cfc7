"""Files that other programs write, and that no reader reads: named, with a way that goes on from there."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from orrery.data.corpora import read_corpus, read_rows, read_sentences
from orrery.data.rows.boxes import read_boxed
from orrery.data.rows.conversations import find_layout
from orrery.data.rows.masks import read_masked
from orrery.errors import DataError
from orrery.text.languages import language_token
from tiny_models import TOKENIZER

INFO = json.dumps({"a": {"file_name": "alpaca.json"}, "b": {"hf_hub_url": "x/y"}})
PANOPTIC = {"image_id": 1, "file_name": "1.png", "segments_info": [{"id": 1, "category_id": 1}]}
COCO = json.dumps(
    {
        "images": [{"id": 1, "file_name": "1.jpg"}],
        "annotations": [PANOPTIC],
        "categories": [{"id": 1, "name": "cat"}],
    }
)
CASES: dict[str, tuple[str, str, Callable[..., object], str, str]] = {
    "numpy's numbers": ("tokens.npy", "x", read_corpus, r"\.npy files are not read", "as JSON lines"),
    "LLaMA-Factory's list": ("dataset_info.json", INFO, read_rows, "LLaMA-Factory", "alpaca.json"),
    "COCO's masks": ("instances.json", COCO, read_masked, "COCO's masks", "annToMask"),
    "COCO's panoptic masks": ("panoptic.json", COCO, read_boxed, "panoptic", "instances_"),
    "tags before words": (
        "a.bio",
        "B-ACTOR\tsteve\nI-ACTOR\tm\nO\tin\n",
        read_sentences,
        "has the tags",
        "print $2, $1",
    ),
    "words joined to tags": (
        "a.conll",
        "The/DT d/NN\nA/DT c/NN\n1/2/CD e/NN\n",
        read_sentences,
        "joined",
        "rsplit('/', 1)",
    ),
    "commas between words and tags": ("a.conll", "EU,B-ORG\n", read_sentences, "a.conll:1: not a word", "tr ','"),
    "a quoted line end": ("a.tsv", 'text\tlabel\n"a\nb"\tc\n', read_rows, "in quotes over several", "mend it"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_file_is_named_with_a_way_to_go_on(case: str, tmp_path: Path) -> None:
    name, content, read, what, hint = CASES[case]
    (tmp_path / name).write_text(content)
    (tmp_path / "1.jpg").touch()
    with pytest.raises(DataError, match=what) as caught:
        list(read(str(tmp_path / name)))
    assert hint in caught.value.hint


def test_a_folder_of_json_says_that_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "alpaca.json").write_text("[]")
    with pytest.raises(DataError) as caught:
        list(read_corpus(str(tmp_path)))
    assert caught.value.hint.endswith(f"such as {tmp_path / 'alpaca.json'}")


def test_axolotls_segments_are_named() -> None:
    with pytest.raises(DataError, match="as axolotl takes them"):
        find_layout("f:1", {"segments": [{"label": True, "text": "x"}]})


def test_a_mark_is_no_language() -> None:
    mark = next(TOKENIZER.token(id) for id in TOKENIZER.control)
    with pytest.raises(Exception, match="no language"):
        language_token(TOKENIZER, mark)


@pytest.mark.parametrize("case", ["tags before words", "words joined to tags", "commas between words and tags"])
def test_the_command_of_a_hint_writes_words_with_their_tags(case: str, tmp_path: Path) -> None:
    name, content, read, *_ = CASES[case]
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError) as caught:
        list(read(tmp_path / name))
    command = caught.value.hint.partition(": ")[2].strip("`").replace("python", sys.executable, 1).replace("FILE", name)
    subprocess.run(command, shell=True, cwd=tmp_path, check=True, timeout=60)
    words = [
        word
        for sentence in read_sentences(tmp_path / "NEW.conll")
        for word in zip(sentence.words, sentence.tags, strict=True)
    ]
    assert words[:2] in ([("steve", "B-ACTOR"), ("m", "I-ACTOR")], [("The", "DT"), ("d", "NN")], [("EU", "B-ORG")])
    assert len(words) in (1, 3, 6)
