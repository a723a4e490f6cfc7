"""`orrery evaluate labels`, `tags`, `answers`, `numbers`, and how far `text` is to be trusted: from files alone."""

import json

import pytest

from orrery.cli.program import run


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder, **files):
    for name, content in files.items():
        name, _, suffix = name.rpartition("_")
        (folder / f"{name}.{suffix}").write_text(content)


def evaluate(*words):
    return run(["evaluate", *words])


def rows(**columns):
    return "".join(
        json.dumps(dict(zip(columns, values, strict=True))) + "\n" for values in zip(*columns.values(), strict=True)
    )


def test_labels_that_are_spelled_otherwise_are_told(folder, capsys):
    write(folder, ours_txt="1\n0\n1\n", gold_txt="1.0\n0.0\n1.0\n")
    assert evaluate("labels", "ours.txt", "gold.txt") == 0
    told = capsys.readouterr().err
    assert "warning: the labels '1' and '1.0' are nearly equal, and counted as two" in told
    assert told.count("warning") == 2


def test_labels(folder, capsys):
    write(folder, ours_txt="good\nbad\ngood\nbad\n", gold_txt="good\nbad\nbad\nbad\n", other_txt="bad\nbad\nbad\nodd\n")
    assert evaluate("labels", "ours.txt", "gold.txt") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("accuracy 0.7500 (n:4|labels:2|several:no|orrery:")
    assert lines[1].startswith("F1-micro 0.7500 (n:4|labels:2|several:no|average:micro|zero:0|")
    assert lines[4].startswith("Matthews 0.5774 (")
    assert lines[6].split() == ["1.0000", "0.6667", "0.8000", "3", "bad"]
    assert len(lines) == 11
    words = ["labels", "ours.txt", "gold.txt", "--against", "other.txt", "--confidence", "--samples", "50"]
    assert evaluate(*words) == 0
    first = capsys.readouterr().out
    assert "95 % interval" in first
    assert "the other system has 0.5000" in first
    assert "accuracy difference +0.2500, p = 1.0000 (test:mcnemar|n:4|alone:2/1|sides:2" in first
    assert "test:randomisation|trials:50|seed:1337" in first
    assert evaluate(*words) == 0
    assert capsys.readouterr().out == first
    assert evaluate(*words, "--seed", "2") == 0
    assert "F1-macro difference" in capsys.readouterr().out != first


def test_several_labels(folder, capsys):
    write(folder, ours_txt="a, b\n\n", gold_txt="a\n\n")
    assert evaluate("labels", "ours.txt", "gold.txt", "--separator", ",") == 0
    out = capsys.readouterr().out
    assert "accuracy 0.5000 (n:2|labels:2|several:yes" in out
    assert "Matthews" not in out
    write(folder, ours_jsonl=rows(kind=[["a", "b"], []]), gold_jsonl=rows(kind=[["a"], []]))
    assert evaluate("labels", "ours.jsonl", "gold.jsonl", "--column", "kind") == 0
    assert capsys.readouterr().out == out


OURS = "Anna B-PER\nin O\nUlm I-LOC\n\nBo B-PER\n\n"
GOLD = "Anna B-PER\nin O\nUlm B-LOC\n\nBo O\n\n"


def test_tags(folder, capsys):
    write(folder, ours_bio=OURS, gold_bio=GOLD, other_bio=GOLD.replace("B-LOC", "O"))
    assert evaluate("tags", "ours.bio", "gold.bio") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("entity-F1-micro 0.8000 (n:2|types:2|average:micro|scheme:conlleval|zero:0|")
    assert lines[4].split() == ["1.0000", "1.0000", "1.0000", "1", "LOC"]
    assert evaluate("tags", "ours.bio", "gold.bio", "--scheme", "IOB2", "--against", "other.bio", "--confidence") == 0
    out = capsys.readouterr().out
    assert "entity-F1-micro 0.5000 (n:2|types:2|average:micro|scheme:IOB2" in out
    assert "the other system has 0.6667" in out


def test_answers(folder, capsys):
    gold = rows(id=[1, 2, 3], answers=[["the cat", "dog"], [], ["red house"]])
    write(
        folder, ours_txt="Cat!\n\na house\n", gold_jsonl=gold, other_jsonl=rows(id=[1, 2, 3], answer=["", "x", "red"])
    )
    assert evaluate("answers", "ours.txt", "gold.jsonl", "--against", "other.jsonl") == 0
    out = capsys.readouterr().out
    assert out.startswith("exact-match 66.67 (n:3|none:1|norm:squad|references:best|orrery:")
    assert "answer-F1 88.89 (" in out
    assert "the other system has 22.22" in out


def test_numbers(folder, capsys):
    write(folder, ours_txt="1\n2.5\n3\n", gold_csv="score\n1\n2\n4\n", other_txt="3\n2\n1\n")
    assert evaluate("numbers", "ours.txt", "gold.csv", "--against", "other.txt", "--samples", "20") == 0
    out = capsys.readouterr().out
    assert "Spearman 1.0000 (n:3|ties:mean|" in out
    assert "squared-error 0.4167 (n:3|" in out
    assert "the other system has -1.0000" in out


def test_texts_have_intervals_and_paired_tests(folder, capsys):
    pytest.importorskip("sacrebleu")
    theirs = [f"the cat number {n} sat on the mat" for n in range(30)]
    write(folder, theirs_txt="\n".join(theirs) + "\n", ours_txt="\n".join(theirs[:20] + ["no"] * 10) + "\n")
    write(folder, other_txt="\n".join(["no"] * 20 + theirs[20:]) + "\n")
    words = ["text", "--hypotheses", "ours.txt", "--references", "theirs.txt", "--against", "other.txt", "--confidence"]
    assert evaluate(*words, "--samples", "200") == 0
    out = capsys.readouterr().out
    for name in ("BLEU", "chrF2", "TER", "ROUGE-Lsum"):
        assert f"{name} difference" in out
    assert out.count("95 % interval") == 7
    assert out.count("test:bootstrap|samples:200|seed:1337") == 7
    assert "better in 9" in out
    assert evaluate(*words[:-2], "short.txt") == 3
    write(folder, short_txt="one\n")
    assert evaluate(*words[:-2], "short.txt") == 3
    assert "ours.txt has 30 texts, short.txt has 1" in capsys.readouterr().err


def test_a_line_that_is_no_number_is_told_how_to_write_one(folder, capsys):
    write(folder, ours_txt="1\n2 3\n", truth_jsonl=rows(score=[1, True]), gold_txt="1\n2\n")
    for ours, told in (("ours.txt", "ours.txt:2: '2 3'"), ("truth.jsonl", "truth.jsonl:2: True")):
        assert evaluate("numbers", ours, "gold.txt") == 3
        error, hint = capsys.readouterr().err.splitlines()
        assert error == f"error: {told} is no finite number"
        assert hint == "hint: write one number a line"


BAD = [
    (("labels", "two.txt"), 2, "orrery evaluate labels PREDICTED GOLD"),
    (("labels", "two.txt", "nothing.txt"), 3, "nothing.txt: no such file"),
    (("labels", "empty.txt", "two.txt"), 3, "empty.txt: empty"),
    (("labels", "three.txt", "two.txt"), 3, "three.txt:3: nothing in two.txt belongs to it: 2 labels, here 3"),
    (("labels", "two.txt", "three.txt"), 3, "three.txt:3: nothing in two.txt belongs to it"),
    (("labels", "two.txt", "two.txt", "--against", "three.txt"), 3, "three.txt:3: nothing in two.txt"),
    (("labels", "gap.txt", "two.txt"), 3, "gap.txt:1: no label"),
    (("labels", "nan.jsonl", "two.txt", "--column", "score"), 3, "nan.jsonl:1:"),
    (("labels", "two.txt", "half.jsonl"), 3, "half.jsonl:2: no label: 0.5"),
    (("labels", "one.txt", "one.txt", "--confidence"), 3, "1 example cannot be drawn again"),
    (("labels", "two.txt", "half.jsonl", "--column", "other"), 3, "other"),
    (("tags", "two.txt", "gold.bio"), 3, "no file of sentences"),
    (("tags", "ours.bio", "words.bio"), 3, "ours.bio:5: other words than in words.bio:5: 'Bo'"),
    (("tags", "short.bio", "gold.bio"), 3, "gold.bio:5: nothing in short.bio belongs to it: 1 sentences, here 2"),
    (("tags", "odd.bio", "gold.bio"), 3, "odd.bio:2: 'PER' is no tag of conlleval"),
    (("tags", "empty.bio", "gold.bio"), 3, "empty.bio: no sentence"),
    (("answers", "two.txt", "gold.jsonl"), 3, "gold.jsonl:3: nothing in two.txt belongs to it: 2 answers, here 3"),
    (("answers", "turned.jsonl", "gold.jsonl"), 3, "turned.jsonl:1: the question 3, at gold.jsonl:1 1"),
    (("answers", "three.txt", "plain.jsonl"), 3, "plain.jsonl:1: no list of right answers"),
    (("answers", "none.jsonl", "gold.jsonl"), 3, "none.jsonl:1: None is no answer"),
    (("numbers", "two.txt", "numbers.txt"), 3, "two.txt:1: 'a' is no finite number"),
    (("numbers", "numbers.txt", "infinite.txt"), 3, "infinite.txt:2: 'inf' is no finite number"),
]


@pytest.mark.parametrize(("words", "code", "text"), BAD, ids=range(len(BAD)))
def test_what_cannot_be_scored_is_named_with_its_line(words, code, text, folder, capsys):
    write(folder, one_txt="a\n", two_txt="a\nb\n", three_txt="a\nb\nc\n", empty_txt="", gap_txt="\nb\n", empty_bio="")
    write(folder, numbers_txt="1\n2\n", infinite_txt="1\ninf\n", nan_jsonl='{"score": NaN}\n{"score": 1}\n')
    write(folder, half_jsonl='{"label": "a"}\n{"label": 0.5}\n', ours_bio=OURS, gold_bio=GOLD)
    write(
        folder,
        words_bio=GOLD.replace("Bo", "Ed"),
        short_bio=GOLD[: GOLD.index("Bo")],
        odd_bio=GOLD.replace("in O", "in PER"),
    )
    write(folder, gold_jsonl=rows(id=[1, 2, 3], answers=[["a"], [], ["b"]]), plain_jsonl=rows(answers=["a", "b", "c"]))
    write(folder, turned_jsonl=rows(id=[3, 2, 1], answer=["a", "b", "c"]), none_jsonl=rows(answer=[None, "a", "b"]))
    assert evaluate(*words) == code
    error = capsys.readouterr().err
    assert text in error
    assert "hint:" in error
