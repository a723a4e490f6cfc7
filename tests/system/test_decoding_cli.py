"""The ways of decoding from the command line: forms, bad words, guesses, groups of beams, contrast, the tree."""

import json
import re
from xml.etree import ElementTree

import pytest

import orrery
from one_verb import run
from orrery.cli.generate import generate
from orrery.cli.tree import tree
from orrery.errors import DataError, UsageError
from orrery.text.train import train_tokenizer
from tiny_models import TOKENIZER, saved


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("model"), "llama")


@pytest.fixture(scope="module")
def lm(model):
    return orrery.load(model, say=lambda line: None)


def test_an_answer_of_a_form(model, capsys, tmp_path):
    run(generate, model, "the cat", "--regex", "(the|a) [a-z]{2,4}!", "--max-new-tokens", 20)
    printed = capsys.readouterr()
    assert re.fullmatch("(the|a) [a-z]{2,4}!\n", printed.out)
    assert "ended by the end token" in printed.err
    schema = tmp_path / "schema.json"
    schema.write_text('{"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"]}')
    run(generate, model, "the cat", "--json-schema", schema, "--max-new-tokens", 40, "--bad-word", "1", "--seed", 5)
    assert json.loads(capsys.readouterr().out)["a"] == 2
    grammar = tmp_path / "grammar.lark"
    grammar.write_text('start: "ab" start | "c"')
    run(generate, model, "the cat", "--grammar", grammar, "--max-new-tokens", 40)
    assert re.fullmatch("(ab)*c?a?\n", capsys.readouterr().out)


@pytest.mark.parametrize("flag", ["--json-schema", "--grammar"])
@pytest.mark.parametrize("file", ["/dev/zero", "/proc/self/mem", "."])
def test_a_file_that_cannot_be_read_whole_is_refused(model, flag, file):
    with pytest.raises(DataError, match="cannot read"):
        run(generate, model, "the cat", flag, file)


@pytest.mark.parametrize("content", ["{", "[]", "7"])
def test_a_file_that_is_no_schema_is_refused(model, tmp_path, content):
    (tmp_path / "schema.json").write_text(content)
    with pytest.raises(DataError, match="schema"):
        run(generate, model, "the cat", "--json-schema", tmp_path / "schema.json")


def test_biases_and_penalties_reach_the_sampler(model, capsys):
    run(generate, model, "the cat", "--temperature", 0, "--logit-bias", "97=1000", "--max-new-tokens", 3)
    assert capsys.readouterr().out.strip() == TOKENIZER.decode([97] * 3).strip()
    run(generate, model, "the cat", "--temperature", 0, "--logit-bias", "97=50", "--logit-bias", "98=49",
        "--frequency-penalty", 2, "--max-new-tokens", 4)  # fmt: skip
    assert capsys.readouterr().out.strip() == TOKENIZER.decode([97, 98, 97, 98]).strip()
    for wrong in ("97", "x=1", "1=x", "=", "-1=2", "1=nan"):
        with pytest.raises(UsageError, match="logit-bias"):
            run(generate, model, "the cat", f"--logit-bias={wrong}")
    with pytest.raises(UsageError, match="logit_bias has no token"):
        run(generate, model, "the cat", f"--logit-bias={TOKENIZER.size}=1")


@pytest.mark.parametrize("draft", ["lookup", "itself"])
def test_guesses_change_no_answer(model, capsys, draft):
    temperature = 0 if draft == "itself" else 0.7
    words = ["the cat sat on the cat", "--max-new-tokens", 12, "--temperature", temperature, "--seed", 3]
    run(generate, model, *words)
    plain = capsys.readouterr().out
    run(generate, model, *words, "--draft", model if draft == "itself" else draft)
    printed = capsys.readouterr()
    assert printed.out == plain
    assert re.search(r"\d+ steps of the model, \d+ of \d+ guesses held", printed.err)


def test_a_draft_of_another_vocabulary_is_refused(model, tmp_path):
    other = saved(tmp_path / "other", "gpt2")
    train_tokenizer("byte_bpe", ["another text of other words"] * 3, TOKENIZER.size).save(other)
    with pytest.raises(UsageError, match="another tokenizer"):
        run(generate, model, "the cat", "--draft", other)


def test_answers_of_groups_and_contrast(model, capsys):
    run(generate, model, "the cat", "--num-beams", 4, "--num-beam-groups", 2, "--answers", 3, "--max-new-tokens", 3)
    assert capsys.readouterr().err.count("4 beams, log probability") == 3
    run(generate, model, "the cat", "--penalty-alpha", 0.5, "--top-k", 3, "--max-new-tokens", 3)
    assert "alpha 0.5, 3 candidates" in capsys.readouterr().err
    for wrong in (
        ["--answers", 2],
        ["--num-beam-groups", 2],
        ["--num-beams", 4, "--num-beam-groups", 3],
        ["--num-beams", 2, "--penalty-alpha", 0.5],
        ["--num-beams", 2, "--draft", "lookup"],
        ["--num-beams", 2, "--regex", "a"],
        ["--num-beams", 2, "--regex", ""],
        ["--num-beams", 2, "--presence-penalty", 1],
        ["--num-beams", 2, "--logit-bias", "7=0"],
        ["--num-beams", 2, "--penalty-alpha", 0],
        ["--num-beams", 2, "--coverage-penalty", 0.2],
        ["--penalty-alpha", 0.5, "--temperature", 1],
    ):
        with pytest.raises(UsageError):
            run(generate, model, "the cat", *wrong)


def test_the_tree_as_text_json_and_picture(model, lm, capsys, tmp_path):
    words = ["the cat", "--max-new-tokens", 3, "--num-beams", 2, "--samples", 1]
    run(tree, model, *words, "--picture", tmp_path / "tree.svg")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:3] == ["-log", "p", "total"]
    assert sum("beam 1" in line for line in lines) == 3
    assert sum("greedy" in line for line in lines) == 3
    assert any("pruned" in line for line in lines)
    ElementTree.parse(tmp_path / "tree.svg")
    run(tree, model, *words, "--json")
    written = json.loads(capsys.readouterr().out)
    assert written["prompt"] == "the cat"
    best = next(node for node in written["tree"] if "greedy" in node["ways"])
    logp_V = lm.logits([TOKENIZER.encode("the cat")])[0, -1].log_softmax(-1)
    assert best["token"] == int(logp_V.argmax())
    assert best["cost"] == pytest.approx(-float(logp_V.max()), abs=1e-4)
    with pytest.raises(UsageError, match="--overwrite"):
        run(tree, model, *words, "--picture", tmp_path / "tree.svg")


def test_a_tree_keeps_its_lines_and_marks_as_they_are(model, capsys):
    run(tree, model, "a\nb", "--max-new-tokens", 1, "--num-beams", TOKENIZER.size)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + TOKENIZER.size
    assert lines[0].endswith("a\\nb")
    assert any(re.fullmatch(r" *\S+ +\S+    <  \(.*", line) for line in lines)
    assert any(re.fullmatch(r" *\S+ +\S+    \\n  \(.*", line) for line in lines)


def test_a_tree_that_nobody_can_look_at_is_refused(model):
    with pytest.raises(UsageError, match="100"):
        run(tree, model, "the cat", "--max-new-tokens", 5000)


def test_the_tree_of_a_vocabulary_with_padding(tmp_path):
    padded = orrery.load(saved(tmp_path / "padded", "gpt2", vocab_size=TOKENIZER.size + 30), say=lambda line: None)
    for node in (node for _, node in padded.tree("the cat", samples=2, temperature=3.0).root.walk()):
        assert node.token < TOKENIZER.size


@pytest.mark.parametrize("demand", [{"json_schema": {}}, {"regex": "a*"}, {"bad_words": "a"}], ids=str)
def test_beams_refuse_demands_by_name(lm, demand):
    with pytest.raises(UsageError, match=next(iter(demand))):
        lm.generate("the cat", num_beams=2, **demand)


@pytest.mark.parametrize(
    "demand",
    [
        {"regex": "\udcff"},
        {"grammar": "frog"},
        {"grammar": 'x: "a"'},
        {"json_schema": {"type": "frog"}},
        {"json_schema": {"$ref": "#"}},
        {"json_schema": {"$ref": "http://example.org/x.json"}},
        {"json_schema": {"minimum": float("nan")}},
        {"json_schema": {"default": object()}},
        {"bad_words": "\udcff"},
        {"bad_words": [""]},
        {"logit_bias": {7: 1e308}},
        {"frequency_penalty": 1e308},
        {"presence_penalty": -1e308},
    ],
    ids=lambda demand: str(demand).encode("ascii", "replace").decode()[:40],
)
def test_what_makes_no_sense_is_refused(lm, demand):
    with pytest.raises((UsageError, DataError)):
        lm.generate("the cat", max_new_tokens=8, temperature=1.0, **demand)


def test_a_schema_deeper_than_any_answer_is_refused(lm):
    schema = {"type": "string"}
    for _ in range(900):
        schema = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
    with pytest.raises(UsageError, match="schema"):
        lm.generate("the cat", json_schema=schema)


@pytest.mark.parametrize("bias", [10_000, -10_000])
def test_the_greatest_bias_on_every_token_leaves_the_order(lm, bias):
    everywhere = dict.fromkeys(range(TOKENIZER.size), bias)
    biased = lm.generate("the cat", max_new_tokens=8, logit_bias=everywhere)
    assert biased == lm.generate("the cat", max_new_tokens=8)


def test_an_argument_that_there_is_not_is_refused(lm):
    for call in (lm.generate, lambda text, **given: lm.generations([text], **given)):
        with pytest.raises(TypeError, match="no argument 'temprature'"):
            call("the cat", temprature=1.0)


def test_python_says_the_same(lm):
    bare = lm.generate("the cat", max_new_tokens=6)
    assert lm.speculate("the cat", "lookup", max_new_tokens=6).answer.text == bare
    assert lm.contrastive_search("the cat", penalty_alpha=0, max_new_tokens=6).text == bare
    assert "e" not in lm.generate("the cat", max_new_tokens=20, temperature=2.0, bad_words="e")
    assert lm.generations(["a", "b"], regex="x+y", max_new_tokens=1)[0].text == "x"
    with pytest.raises(TypeError, match="temperature"):
        lm.contrastive_search("the cat", temperature=1.0)
