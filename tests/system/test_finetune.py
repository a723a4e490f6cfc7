"""Fine-tuning as a user types it: a tiny model, each task from its file to scores, a report and an answer."""

import json

import pytest
import torch
from transformers import AutoModelForSeq2SeqLM

import orrery
import programs
from orrery.cli.program import run
from orrery.errors import UsageError
from orrery.exchange.saving.save import save_model
from orrery.families import load_family
from orrery.language_model.load import load
from orrery.tasks._task import learned
from orrery.text.special import framed_tokenizer
from programs import ORRERY, PIPE, Program
from tiny_models import TOKENIZER, randomised

FRAMED = framed_tokenizer(TOKENIZER, "bert")
BERT = {
    "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
    "max_position_embeddings": 64, "vocab_size": FRAMED.size,
}  # fmt: skip
ROWS = {
    "classification": [
        {"text": f"the {animal} sat {n}", "label": animal} for n in range(15) for animal in ("cat", "dog")
    ],
    "multi-label": [{"text": f"the cat {n}", "labels": ["a"] if n % 2 else ["a", "b"]} for n in range(30)],
    "regression": [{"text": f"the cat {n}", "score": n / 10} for n in range(30)],
    "tagging": [{"words": ["the", "cat", str(n)], "tags": ["O", "B-animal", "O"]} for n in range(30)],
    "question-answering": [
        {"context": f"the {animal} sat on the log", "question": f"who sat {n}", "answer": animal}
        for n in range(15)
        for animal in ("cat", "dog")
    ],
    "embedding": [{"text": f"the cat {n}", "text_pair": f"the dog {n}"} for n in range(30)],
}
MAIN = {
    "classification": "accuracy",
    "multi-label": "F1-micro",
    "regression": "squared-error",
    "tagging": "entity-F1-micro",
    "question-answering": "exact-match",
    "embedding": "recall@1",
}
WRITTEN = {"summarisation": "ROUGE-L", "translation": "BLEU"}
T5 = {
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 32,
    "num_layers": 1,
    "num_heads": 2,
    "n_positions": 64,
    "decoder_start_token_id": 0,
}
STEPS = ("--training.steps", "4", "--training.precision", "float32")


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("base") / "bert"
    torch.manual_seed(0)
    save_model(folder, randomised(load_family("bert").spec(BERT).build()), "bert", BERT, FRAMED)
    return str(folder)


def rows(tmp_path, task):
    path = tmp_path / f"{task}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS[task]), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("task", ROWS)
def test_every_task_ends_with_scores_and_a_report(tmp_path, base, task, capsys):
    out = tmp_path / "run"
    words = ["finetune", task, "--from", base, "--train", rows(tmp_path, task), "--output", str(out), *STEPS]
    assert run(words) == 0
    shown = capsys.readouterr().out
    assert MAIN[task] in shown
    assert "report.html shows the mistakes" in shown
    scores = json.loads((out / "scores.json").read_text(encoding="utf-8"))
    assert scores["scores"][0]["name"] == MAIN[task]
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Scores" in page
    assert str(scores["scores"][0]["signature"]).split("|", maxsplit=1)[0] in page


def writing(tmp_path, task, *more):
    """Return the words that fine-tune a small T5 on twenty pairs, and the run's folder."""
    framed = framed_tokenizer(TOKENIZER, "t5")
    config = {**T5, "vocab_size": framed.size, "decoder_start_token_id": framed.special("pad")}
    model = load_family("t5").spec(config).build()
    save_model(tmp_path / "t5", randomised(model), "t5", config, framed)
    path = tmp_path / "pairs.jsonl"
    lines = [json.dumps({"source": f"the cat sat on {n}", "target": f"the cat {n}"}) for n in range(20)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    out = tmp_path / "run"
    base = str(tmp_path / "t5")
    return ["finetune", task, "--from", base, "--train", str(path), "--output", str(out), *STEPS, *more], out


@pytest.mark.parametrize("task", WRITTEN)
def test_what_writes_is_scored_too(tmp_path, task, capsys):
    words, _ = writing(tmp_path, task)
    code = run(words)
    shown = capsys.readouterr()
    assert code == 0, shown.err
    assert f"2 {'texts' if task == 'summarisation' else 'pairs'} held back: {WRITTEN[task]}" in shown.out


def test_a_model_writes_as_its_recipe_says(tmp_path, capsys):
    said = {"num_beams": 2, "min_new_tokens": 7, "max_new_tokens": 7}
    words, out = writing(tmp_path, "summarisation", "--generation", json.dumps(said))
    assert run(words) == 0
    written = json.loads((out / "final" / "generation_config.json").read_text(encoding="utf-8"))
    assert said.items() <= written.items()
    assert {"eos_token_id", "pad_token_id"} <= set(written)
    lm, theirs = load(out), AutoModelForSeq2SeqLM.from_pretrained(out / "final")
    for row in lm.tokenizer.encode_batch(["the cat", "on the log"]):
        (answer,) = lm.write([row])[0]
        assert len(answer) == 7
        assert [lm.model.first_token, *answer] == theirs.generate(torch.tensor([row]))[0].tolist()
    capsys.readouterr()


def test_a_model_that_writes_nothing_is_not_told_how_to(tmp_path, base, capsys):
    words = ["finetune", "classification", "--from", base, "--train", rows(tmp_path, "classification"), *STEPS]
    assert run([*words, "--output", str(tmp_path / "run"), "--generation.num_beams", "2"]) == 2
    assert "generation.num_beams says how to write, and this model writes nothing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"num_beams": 2, "do_sample": True}, "goes with neither do_sample nor repetition_penalty"),
        ({"min_new_tokens": 3, "max_new_tokens": 2}, "min_new_tokens is more than max_new_tokens"),
    ],
)
def test_settings_of_writing_that_cannot_go_together(tmp_path, said, told, capsys):
    words, _ = writing(tmp_path, "summarisation", "--generation", json.dumps(said))
    assert run(words) in (2, 3)
    assert told in capsys.readouterr().err


def test_the_tasks_are_all_that_can_be_named(base, tmp_path, capsys):
    own_verbs = ("sft", "reward", "dpo", "ppo", "grpo", "rloo")
    no_texts = (
        "image_classification",
        "image_segmentation",
        "object_detection",
        "captioning",
        "contrast",
        "next_item",
        "many_labels",
    )
    assert learned() == sorted(name.replace("-", "_") for name in (*ROWS, *WRITTEN, *own_verbs, *no_texts))
    assert run(["finetune", "recipe", "--from", base, "--train", rows(tmp_path, "classification")]) == 2
    assert (
        "there is no task called 'recipe'; known: captioning, classification, contrast, dpo" in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("task", "words", "told"),
    [
        ("classification", ["classify", "{run}", "the cat sat"], ("cat", "dog")),
        ("tagging", ["tag", "{run}", "the cat sat"], ("",)),
        ("question-answering", ["answer", "{run}", "who sat", "--context", "the cat sat on the log"], ("",)),
    ],
)
def test_what_was_trained_answers_on_the_command_line(tmp_path, base, task, words, told, capsys):
    out = tmp_path / "run"
    given = ["finetune", task, "--from", base, "--train", rows(tmp_path, task), "--output", str(out), *STEPS]
    assert run(given) == 0
    capsys.readouterr()
    assert run([word.format(run=out) for word in words]) == 0
    shown = capsys.readouterr().out
    assert any(word in shown for word in told)


def test_several_seeds_have_a_mean_and_a_spread(tmp_path, base, capsys):
    out = tmp_path / "seeds"
    words = ["finetune", "classification", "--from", base, "--train", rows(tmp_path, "classification")]
    assert run([*words, "--output", str(out), "--seeds", "2", *STEPS]) == 0
    shown = capsys.readouterr().out
    assert "accuracy of 2 seeds: mean" in shown
    assert {"seed-1337", "seed-1338"} == {entry.name for entry in out.iterdir()}


def test_a_killed_fine_tuning_goes_on_to_the_same_end(tmp_path, base):
    command = [*ORRERY, "finetune", "classification", "--from", base]
    command += [
        "--train",
        rows(tmp_path, "classification"),
        "--training.steps",
        "12",
        "--training.precision",
        "float32",
    ]
    command += ["--checkpoints.every", "2"]
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    programs.run([*command, "--output", str(whole)], check=True, capture_output=True)
    with Program([*command, "--output", str(killed)], stderr=PIPE, text=True) as process:
        for line in process.stderr:
            if line.startswith("step 5/"):
                process.kill()
    programs.run([*command, "--output", str(killed), "--resume"], check=True, capture_output=True)
    for name in ("final/model.safetensors", "scores.json"):
        assert (whole / name).read_bytes() == (killed / name).read_bytes()


@pytest.mark.parametrize("task", ROWS)
def test_stopped_and_resumed_is_the_uninterrupted_run(tmp_path, base, task):
    words = ["finetune", task, "--from", base, "--train", rows(tmp_path, task), "--training.precision", "float32"]
    words += ["--training.schedule.kind", "constant", "--training.schedule.warmup", "0", "--checkpoints.every", "2"]
    words += ["--training.final", "last", *(["--objective.word_dropout", "0.3"] if task != "embedding" else [])]
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert run([*words, "--output", str(whole), "--training.steps", "4"]) == 0
    assert run([*words, "--output", str(parts), "--training.steps", "2"]) == 0
    assert run([*words, "--output", str(parts), "--training.steps", "4", "--resume"]) == 0
    for name in ("final/model.safetensors", "scores.json"):
        assert (whole / name).read_bytes() == (parts / name).read_bytes()


def recipe_of(tmp_path, base, capsys, *changes):
    words = ["finetune", "classification", "--from", base, "--train", rows(tmp_path, "classification"), *STEPS]
    assert run([*words, "--print-config"]) == 0
    path = tmp_path / "recipe.yaml"
    printed = capsys.readouterr().out
    for old, new in changes:
        assert old in printed
        printed = printed.replace(old, new)
    path.write_text(printed, encoding="utf-8")
    return str(path)


def test_a_recipe_that_names_its_task_is_trained_and_scored(tmp_path, base, capsys):
    path = recipe_of(tmp_path, base, capsys)
    assert run(["finetune", path, "--output", str(tmp_path / "run"), "--training.steps", "2"]) == 0
    assert "4 texts held back: accuracy" in capsys.readouterr().out
    with pytest.raises(UsageError, match="is not empty"):
        orrery.finetune(path, output=tmp_path / "run", quiet=True)


@pytest.mark.parametrize(
    ("change", "words", "told"),
    [
        (("task: classification\n", ""), [], "names no task"),
        (("task: classification", "task: tagging"), [], "the task tagging has data of kind tagged"),
        (("task: classification", "task: nothing"), [], "there is no task called 'nothing'"),
        (("seed: 1337", "seed: 1337"), ["--from", "."], "--from has no place beside it"),
        (("seed: 1337", "seed: 1337"), ["--text", "x"], "columns have no place beside it"),
    ],
)
def test_a_recipe_that_does_not_fit_is_named(tmp_path, base, capsys, change, words, told):
    path = recipe_of(tmp_path, base, capsys, change)
    assert run(["finetune", path, "--output", str(tmp_path / "run"), *words]) == 2
    assert told in capsys.readouterr().err


def test_a_task_without_a_model_asks_for_one(capsys):
    assert run(["finetune", "tagging"]) == 2
    assert "give --from MODEL --train FILE" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("task", "content", "told"),
    [
        ("classification", '{"text": "a", "label": "x"}\n' * 20, "every row is labelled 'x'"),
        ("classification", '{"text": "a", "label": "x"}\n{"text": "", "label": "y"}\n', ":2: column 'text' is empty"),
        ("regression", '{"text": "a", "score": NaN}\n' * 20, "no number to learn"),
        ("tagging", '{"words": ["a", "b"], "tags": ["O"]}\n' * 20, ":1: 2 words in 'words', 1 labels in 'tags'"),
        ("question-answering", '{"context": "a b", "question": "c", "answer": "d"}\n', "does not stand in the context"),
        ("classification", "", "0 rows"),
    ],
)
def test_bad_data_are_named_before_anything_is_trained(tmp_path, base, task, content, told, capsys):
    path = tmp_path / "bad.jsonl"
    path.write_text(content, encoding="utf-8")
    out = tmp_path / "run"
    code = run(["finetune", task, "--from", base, "--train", str(path), "--output", str(out), *STEPS])
    said = capsys.readouterr().err
    assert code == 3
    assert told in said
    assert "hint:" in said
    assert not out.exists()
