"""The recipe of a task: what is found from the data and the model, and what flags change."""

import json
import shutil

import pytest

from orrery.errors import DataError, UsageError
from orrery.exchange.reading.read import read
from orrery.exchange.saving.own import save_own
from orrery.exchange.saving.save import save_model
from orrery.families import load_family
from orrery.tasks import TASKS
from orrery.tasks.finetuning.answering_recipe import answering_recipe
from orrery.tasks.finetuning.recipe import Request, recipe_for
from orrery.tasks.finetuning.seeds import with_seeds
from orrery.text.special import framed_tokenizer
from tiny_models import TOKENIZER, randomised, saved

FRAMED = framed_tokenizer(TOKENIZER, "bert")
BERT = {
    "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 40,
    "max_position_embeddings": 64, "vocab_size": FRAMED.size,
}  # fmt: skip


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("base") / "bert"
    save_model(folder, randomised(load_family("bert").spec(BERT).build()), "bert", BERT, FRAMED)
    return str(folder)


def file(tmp_path, rows, name="rows.jsonl"):
    path = tmp_path / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def labelled(tmp_path, rows=40, words=1):
    lines = [{"text": "the cat " * words + str(n), "label": "ab"[n % 2]} for n in range(rows)]
    return file(tmp_path, lines, f"{rows}-{words}.jsonl")


ROWS = {
    "classification": ({"text": "the cat", "label": "a"}, {"text": "the dog", "label": "b"}),
    "multi-label": ({"text": "the cat", "labels": ["a", "b"]}, {"text": "the dog", "labels": []}),
    "regression": ({"text": "the cat", "score": 1.5}, {"text": "the dog", "score": -1}),
    "tagging": ({"words": ["the", "cat"], "tags": ["O", "B-x"]}, {"words": ["a", "dog"], "tags": ["O", "B-y"]}),
    "question-answering": (
        {"context": "the cat sat", "question": "who", "answer": "cat"},
        {"context": "the dog sat", "question": "who", "answer": "dog"},
    ),
}
DECIDES = {
    "classification": "accuracy",
    "multi-label": "f1",
    "regression": "loss",
    "tagging": "entity_f1",
    "question-answering": "span_exact",
}


@pytest.mark.parametrize("task", ROWS)
def test_every_task_has_a_recipe_that_fits_its_data(tmp_path, base, task):
    recipe = recipe_for(Request(task, base, file(tmp_path, ROWS[task] * 10)))
    kind = TASKS.find(task.replace("-", "_"))
    assert (recipe.data.kind, recipe.objective.kind) == (kind.source, kind.objective)
    assert recipe.decides == DECIDES[task]
    assert recipe.training.final == "best"
    assert recipe.data.split.every == 10
    assert recipe.model.begin == base


def test_the_length_leaves_nearly_all_rows_whole(tmp_path, base):
    short, long = labelled(tmp_path), labelled(tmp_path, words=200)
    recipe = recipe_for(Request("classification", base, short))
    assert recipe.batches.length == 8
    assert recipe.name == "classification-40-1"
    assert recipe_for(Request("classification", base, long)).batches.length == 64  # the model's context


def test_few_rows_are_seen_often_and_many_rarely(tmp_path, base):
    few = recipe_for(Request("classification", base, labelled(tmp_path, rows=40)))
    many = recipe_for(Request("classification", base, labelled(tmp_path, rows=20_000)))
    assert few.training.steps == 60
    assert many.training.steps * many.batches.size == pytest.approx(3 * 18_000, rel=0.01)
    assert few.training.optimizer.rate == many.training.optimizer.rate == 1e-3  # a narrow model


def test_what_follows_from_the_steps_follows_those_that_are_chosen(tmp_path, base):
    recipe = recipe_for(Request("classification", base, labelled(tmp_path)), ["--training.steps", "10"])
    assert (recipe.training.steps, recipe.training.schedule.warmup, recipe.evaluation.every) == (10, 1, 1)
    environment = {"ORRERY_TRAINING__STEPS": "20"}
    assert recipe_for(Request("classification", base, labelled(tmp_path)), (), environment).training.steps == 20


@pytest.mark.parametrize(
    ("mode", "blocks", "learn"),
    [
        ("full", None, {"embed", "stack", "heads"}),
        ("frozen", None, {"heads"}),
        ("partial", None, {"stack.blocks.2", "stack.start", "heads"}),
    ],
)
def test_modes_freeze_what_they_say(tmp_path, base, mode, blocks, learn):
    from orrery.runs.assemble import assemble

    recipe = recipe_for(Request("classification", base, labelled(tmp_path), mode=mode, blocks=blocks))
    model = assemble(recipe).parts.model
    learning = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert any(name.startswith("heads.sequence") for name in learning)
    for name in ("embed.token.weight", "stack.blocks.0.attention.branch.q.weight"):
        assert (name in learning) == (mode == "full")
    assert ("stack.blocks.2.attention.branch.q.weight" in learning) == (mode != "frozen")


def test_partial_needs_blocks_that_are_there(tmp_path, base):
    with pytest.raises(UsageError, match="3 of 3 blocks"):
        recipe_for(Request("classification", base, labelled(tmp_path), mode="partial", blocks=3))


def test_from_scratch_only_shape_and_tokenizer_are_taken(tmp_path, base):
    recipe = recipe_for(Request("classification", base, labelled(tmp_path), scratch=True))
    assert (recipe.model.begin, recipe.model.family) == (None, "bert")
    assert recipe.model.config["hidden_size"] == 32
    assert recipe.tokenizer.file.name == "tokenizer.json"


def test_a_decoder_can_be_fine_tuned_too(tmp_path):
    folder = saved(tmp_path / "gpt2", "gpt2")
    recipe = recipe_for(Request("classification", str(folder), labelled(tmp_path), mode="frozen"))
    assert set(recipe.model.freeze) == {"embed.*", "stack.*", "head.*"}


@pytest.mark.parametrize(
    ("asked", "error", "told"),
    [
        ({"task": "guessing"}, UsageError, "no task called 'guessing'; known: captioning, classification, contrast"),
        ({"columns": {"label": "wrong"}}, DataError, "no column 'wrong'"),
        ({"train": "nowhere.csv"}, DataError, "nowhere.csv"),
    ],
)
def test_what_is_wrong_is_said(tmp_path, base, asked, error, told):
    given = {"task": "classification", "model": base, "train": labelled(tmp_path), **asked}
    with pytest.raises(error, match=told):
        recipe_for(Request(**given))


def test_a_wrong_key_is_named(tmp_path, base):
    with pytest.raises(UsageError, match=r"training\.steps"):
        recipe_for(Request("classification", base, labelled(tmp_path)), ["--training.steps", "-3"])


FROM_A_MODEL = {
    "finetune": lambda folder, train: recipe_for(Request("classification", folder, train)),
    "answers": lambda folder, train: answering_recipe("grpo", folder, train, None, ["exact"]),
}


@pytest.mark.parametrize("kind", FROM_A_MODEL)
def test_a_model_without_a_tokenizer_cannot_read_the_data(tmp_path, base, kind):
    folder = tmp_path / "bare"
    shutil.copytree(base, folder)
    (folder / "tokenizer.json").unlink()
    with pytest.raises(UsageError, match=f"{folder} has no tokenizer") as error:
        FROM_A_MODEL[kind](str(folder), labelled(tmp_path))
    assert error.value.hint == "put its tokenizer.json into the folder"


def test_a_model_of_no_family_has_no_shape_to_begin_anew_with(tmp_path, base):
    folder = tmp_path / "own"
    stored = read(base)
    save_own(folder, stored.model, stored.tokenizer)
    with pytest.raises(UsageError, match="does not say of which family it is: no new model of its shape") as error:
        recipe_for(Request("classification", str(folder), labelled(tmp_path), scratch=True))
    assert error.value.hint == "leave --scratch out, or write a recipe with model.family"


def test_nothing_held_back_is_nothing_to_score_on(tmp_path, base):
    recipe = recipe_for(Request("classification", base, labelled(tmp_path)))
    data = recipe.data.model_copy(update={"split": None, "val": None})
    with pytest.raises(UsageError, match="nothing is held back to score the model on") as error:
        with_seeds(recipe.model_copy(update={"data": data}), tmp_path / "run", lambda: None, print)
    assert error.value.hint == "give --val FILE, or leave data.split in"
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("objective", ["grpo", "dr_grpo", "dapo", "rloo"])
def test_a_recipe_of_grpo_may_learn_by_a_neighbouring_objective(objective, tmp_path):
    values = {
        "name": "g",
        "task": "grpo",
        "model": {"from": "base"},
        "data": {"kind": "rollouts", "train": "prompts.jsonl", "split": {"every": 10}},
        "batches": {"length": 16, "size": 8},
        "objective": objective,
        "rewards": ["exact"],
        "training": {"steps": 1, "optimizer": {"rate": 1e-5}},
    }
    (tmp_path / "g.yaml").write_text(json.dumps(values))
    assert recipe_for(Request(str(tmp_path / "g.yaml"))).objective.kind == objective
