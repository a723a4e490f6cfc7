import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from orrery.errors import UsageError
from orrery.recipes.read import as_yaml, check_recipe, config_hash, load_recipe, plain, refuse_changes
from training_toy import toy_recipe


@pytest.fixture
def recipe_file(tmp_path: Path) -> Path:
    path = tmp_path / "toy.yaml"
    path.write_text(as_yaml(toy_recipe()))
    return path


def test_a_resolved_recipe_reads_back_as_itself(recipe_file: Path) -> None:
    assert load_recipe(recipe_file) == toy_recipe()
    assert config_hash(load_recipe(recipe_file)) == config_hash(toy_recipe())


def test_flag_over_environment_over_file_over_default(recipe_file: Path) -> None:
    environment = {"ORRERY_TRAINING__STEPS": "7", "ORRERY_SEED": "5", "ORRERY_DATA": "elsewhere", "HOME": "x"}
    recipe = load_recipe(recipe_file, ["--training.steps", "9", "--training.clip=null"], environment)
    assert (recipe.training.steps, recipe.seed, recipe.training.clip) == (9, 5, None)
    assert load_recipe(recipe_file, [], environment).training.steps == 7
    assert load_recipe(recipe_file).training.steps == 12


def test_numbers_that_yaml_reads_as_text_are_numbers(recipe_file: Path) -> None:
    flags = ["--training.optimizer.rate", "1e-4", "--training.optimizer.betas", "[0.9, 0.98]"]
    optimizer = load_recipe(recipe_file, flags).training.optimizer
    assert (optimizer.rate, optimizer.betas) == (1e-4, (0.9, 0.98))


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--resum"], ["unknown flag --resum"]),
        (["--trainng.steps", "5"], ["trainng", "did you mean 'training'?"]),
        (["--training.schedule.wamup", "5"], ["training.schedule.wamup", "did you mean 'warmup'?"]),
        (["--training.optimizer.rate", "nan"], ["training.optimizer.rate", "finite"]),
        (["--training.optimizer.rate", ".inf"], ["training.optimizer.rate", "finite"]),
        (["--training.optimizer.kind", "lion"], ["training.optimizer", "adamw, adam, sgd"]),
        (["--training.steps", "0"], ["training.steps", "1"]),
        (["--training.steps", "many"], ["training.steps", "integer"]),
        (["--training.schedule.kind", "wsd"], ["training.schedule.decay", "required"]),
        (["--model.spec", "a.json"], ["model", "exactly one of family, spec and from"]),
        (["--name", "../up"], ["name"]),
        (["--training.steps"], ["--training.steps needs a value"]),
        (["training.steps", "5"], ["unexpected argument 'training.steps'"]),
        (["--training.steps", "[5"], ["training.steps", "cannot read"]),
    ],
)
def test_a_mistake_names_its_dotted_key(flags: list[str], words: list[str], recipe_file: Path) -> None:
    with pytest.raises(UsageError) as caught:
        load_recipe(recipe_file, flags)
    assert all(word in caught.value.message for word in words), caught.value.message
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [", "not YAML"),
        ("name: x\nseed: 1\nname: y\n", "toy.yaml:3: not YAML: key 'name' twice"),
        ("- a\n", "no mapping"),
        ("{}", "required"),
    ],
)
def test_a_broken_file_names_its_line(text: str, words: str, recipe_file: Path) -> None:
    recipe_file.write_text(text)
    with pytest.raises(UsageError, match=words):
        load_recipe(recipe_file)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no\.yaml"):
        load_recipe(tmp_path / "no.yaml")


def test_resume_names_the_changed_key_and_lets_the_watching_change() -> None:
    saved = plain(toy_recipe())
    refuse_changes(saved, toy_recipe(training__steps=99, evaluation__every=1, logging__every=1, checkpoints__keep=5))
    with pytest.raises(UsageError, match=r"training\.optimizer\.rate was 0\.01 and is now 0\.02"):
        refuse_changes(saved, toy_recipe(training__optimizer__rate=0.02))
    with pytest.raises(UsageError, match="seed was 1337 and is now 1"):
        refuse_changes(saved, toy_recipe(seed=1))


def test_configuration_does_not_import_torch() -> None:
    code = "import sys, orrery.recipes.read; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_sections_stay_small() -> None:
    def sizes(values: object) -> list[int]:
        inner = values.values() if isinstance(values, dict) else []
        return [
            len(values) if isinstance(values, dict) else 0,
            *(size for value in inner for size in sizes(value)),
        ]

    groups = yaml.safe_load(as_yaml(toy_recipe()))
    del groups["generation"]  # every setting of writing that a recipe can say
    del groups["parallel"]  # every degree that a plan can print
    assert max(size for group in groups.values() for size in sizes(group)) <= 10


def test_a_recipe_is_written_as_it_is_spelled():
    assert "ärztlich" in as_yaml(toy_recipe().model_copy(update={"name": "ärztlich"}))


def test_parts_of_a_new_model_begin_with_those_of_another() -> None:
    base = plain(toy_recipe())
    new = {**base["model"], "from": {"encoder": "runs/things"}}
    recipe = check_recipe({**base, "model": new}, "a recipe")
    assert (recipe.model.begin, recipe.model.encoder) == (None, "runs/things")
    old = check_recipe({**base, "model": {**base["model"], "encoder": "runs/things"}}, "a recipe")
    assert old == recipe == check_recipe(yaml.safe_load(as_yaml(recipe)), "a recipe")
    assert check_recipe({**base, "model": {**base["model"], "encoder": None}}, "a recipe") == toy_recipe()
    for model in ({"from": "runs/things", "encoder": "runs/things"}, {"from": {"encoder": "runs/things"}}):
        with pytest.raises(UsageError, match="model"):
            check_recipe({**base, "model": model}, "a recipe")
    with pytest.raises(UsageError, match=r"model.from.*encoder"):
        check_recipe({**base, "model": {**base["model"], "from": {"encodr": "runs/things"}}}, "a recipe")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "a recipe: name, model, data, batches, training: Field required"),
        (
            {"name": "x", "model": {}, "data": {"train": "x"}, "training": {"steps": 3}},
            "a recipe: model: exactly one of family, spec and from is needed; mend also batches, training.optimizer",
        ),
        ({"nam": "x"}, "a recipe: nam: unknown key; did you mean 'name'?"),
    ],
)
def test_everything_that_is_missing_is_named(values: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError) as told:
        check_recipe(values, "a recipe")
    assert told.value.message == message


def test_what_is_missing_is_shown_as_it_can_be_written() -> None:
    with pytest.raises(UsageError) as told:
        check_recipe({}, "a recipe")
    written = yaml.safe_load(told.value.hint.partition("for instance: ")[2].replace("; ", "\n"))
    assert check_recipe(written, "a recipe").batches.kind == "crops"
