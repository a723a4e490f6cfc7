"""What messages say to type can be typed: every command, flag, key, package and name in them is tried."""

import re

import pytest

import hints
from orrery.cli.program import VERBS
from orrery.cli.spelling import as_flags
from orrery.settings import DISTRIBUTION, install

NO_FLAG = {
    "reports/page.py",
    "reports/style.py",
    "studies/demo/page.py",
    "planning/layouts/launch.py",
    "cli/suggestions.py",
    "recipes/parallel.py",
    "training/distributed.py",
}
"""They hold names of CSS, commands that a test of the page runs, flags of ``torchrun``, and beginnings of flags."""

MANY = {
    "cli/plan_tables.py": ["plan"],
    "orrery_course/labs/_page.py": ["lab"],
    "checkpoints/gguf.py": ["export"],
    "cli/beam_options.py": ["generate"],
    "serving/served.py": ["serve"],
    "cli/writing_options.py": ["generate", "chat"],
    "checkpoints/lock.py": ["train", "demo", "compare", "ladder", "data prepare"],
    "checkpoints/outputs.py": [
        "tokenizer train", "tokenizer compare", "data clean", "evaluate translation", "translate", "neighbours",
        "export", "import", "lab", "parity", "verify", "average", "embed", "bench", "bench generate",
        "quantise", "evaluate choices", "evaluate mmlu", "evaluate hellaswag", "evaluate blimp", "evaluate gsm8k",
        "evaluate humaneval", "evaluate mbpp", "evaluate retrieval", "evaluate similarity", "evaluate reranking",
        "distil", "plan", "course",
    ],
    "cli/evaluate/_items.py": ["evaluate choices", "evaluate blimp", "evaluate gsm8k", "evaluate humaneval"],
    "cli/evaluate/_programs.py": ["evaluate humaneval", "evaluate mbpp"],
    "evaluation/benchmarks/mmlu.py": ["evaluate mmlu"],
    "evaluation/benchmarks/similarity.py": ["evaluate similarity"],
    "data/rows/retrieval_sets.py": ["evaluate retrieval"],
    "evaluation/benchmarks/programs.py": ["evaluate humaneval", "evaluate mbpp"],
    "data/rows/label_lists.py": ["train", "finetune"],
    "data/readers/interactions.py": ["train", "finetune"],
    "data/readers/interaction_files.py": ["train", "finetune"],
    "data/rows/labelled_lines.py": ["train", "finetune"],
    "data/rows/labelled.py": ["train"],
    "data/rows/pictures.py": ["finetune"],
    "data/rows/boxes.py": ["finetune"],
    "data/rows/masks.py": ["finetune"],
    "data/readers/stacks.py": ["finetune"],
    "data/rows/box_files.py": ["finetune"],
    "data/rows/pair_columns.py": ["train"],
    "data/sources/_rows.py": ["finetune", "sft", "reward", "dpo", "ppo", "grpo"],
    "data/sources/matches.py": ["train"],
    "exchange/exporting/average.py": ["average"],
    "cli/methods.py": ["sft", "reward", "dpo"],
    "tasks/finetuning/recipe.py": ["finetune"],
    "tasks/finetuning/answering_recipe.py": ["ppo", "grpo"],
    "cli/answering.py": ["ppo", "grpo"],
    "data/rows/prompts.py": ["train", "ppo", "grpo"],
    "objectives/_policy.py": ["train", "ppo", "grpo"],
    "tasks/finetuning/seeds.py": ["finetune"],
    "tasks/next_item.py": ["recommend"],
    "tasks/finetuning/_pairs.py": ["dpo", "reward"],
    "studies/compare/plan.py": ["compare"],
    "studies/compare/probes/table.py": ["compare"],
    "studies/compare/sweep.py": ["compare"],
    "studies/compare/trials.py": ["compare"],
    "studies/compare/texts.py": ["compare", "ladder"],
    "studies/compare/models.py": ["compare"],
    "studies/ladder/run.py": ["ladder"],
    "studies/kept.py": ["compare", "ladder", "train"],
    "studies/demo/tour.py": ["demo"],
    "orrery_course/labs/_all.py": ["lab"],
    "orrery_course/labs/_lab.py": ["lab"],
    "laws/registry.py": ["verify"],
    "serving/limits.py": ["serve"],
    "serving/run.py": ["serve"],
    "serving/settings.py": ["serve"],
    "exchange/reading/config_keys.py": ["import"],
    "exchange/reading/files.py": ["import"],
    "exchange/reading/hub.py": ["import"],
    "exchange/saving/import_model.py": ["import"],
    "data/sources/preferences.py": ["dpo"],
    "language_model/rewards.py": ["reward"],
    "laws/workers.py": ["verify"],
    "page/views/_laws.py": ["verify"],
    "evaluation/perplexity.py": ["evaluate perplexity"],
    "tuning/_description.py": ["export"],
    "runs/default_recipe.py": ["train"],
    "studies/stages/folder.py": ["train"],
    "studies/stages/run.py": ["train"],
    "runs/execute.py": ["train"],
    "runs/going_on.py": ["train", "finetune"],
    "training/folder.py": ["train"],
    "training/optimizers.py": ["train", "finetune"],
    "training/precision.py": ["train", "demo", "compare", "ladder"],
    "recipes/read.py": ["train", "compare", "ladder"],
    "training/state.py": ["train", "compare", "ladder"],
    "cli/console.py": [],
    "cli/texts.py": ["classify", "tag", "answer", "summarise", "embed", "rank", "cloze"],
    "cli/overview.py": [],
    "cli/own_task.py": ["classify", "tag"],
    "cli/own_parts.py": [],
    "cli/program.py": [],
    "cli/train/stages.py": ["train"],
    "cli/train/word_vectors.py": ["train"],
    "cli/bench/app.py": ["bench generate"],
    "cli/data/app.py": ["data show"],
    "cli/data/clean.py": ["data clean"],
    "cli/data/prepare.py": ["data prepare"],
    "data/shards/parts.py": ["data prepare"],
    "cli/tokenizer/app.py": ["tokenizer train"],
    "cli/tokenizer/show.py": ["tokenizer show"],
    "cli/tokenizer/compare.py": ["tokenizer compare"],
    "cli/tokenizer/parallel.py": ["tokenizer compare"],
    "cli/import_model.py": ["import"],
    "cli/plan_layouts.py": ["plan"],
    "checkpoints/places.py": [],
    "exchange/reading/foreign.py": [],
    "serving/elsewhere.py": [],
    "tuning/peft/load.py": [],
    "planning/plan.py": ["plan"],
    "planning/fitting.py": ["plan"],
    "planning/measured_step.py": ["plan"],
}  # fmt: skip
"""Which verbs show what a module says; a module of one verb, ``cli/VERB.py``, needs no line, one with flags of others
has no verb."""


FILES = sorted(hints.SOURCE.glob("orrery*/**/*.py"))
MESSAGES = [message for file in FILES for message in hints.messages(file)]
SPOKEN = [message for message in MESSAGES if " " in message.text.strip()]
FLAGS = sorted(
    {
        (message.module, flag)
        for message in MESSAGES
        if "--" in message.text and message.module not in NO_FLAG
        for flag in hints.bare_flags(message.text)
    }
)
SETTINGS = sorted({message.text for message in SPOKEN if hints.SETTING.search(message.text)})
GROUPS = {"tokenizer": ("train", "show", "compare", "chat"), "data": ("show", "fetch", "clean", "prepare", "verify")}


def shown_by(name: str) -> list[str]:
    stem = name.removeprefix("cli/").removesuffix(".py")
    if name in MANY:
        return MANY[name]
    return [stem.removesuffix("/app").replace("/", " ").replace("_", "-")]


def test_every_message_can_be_followed() -> None:
    """Commands are parsed, keys looked up in the schema, packages in pyproject.toml, names of Python imported."""
    wrongs = {f"{one.module}:{one.line}": wrong for one in SPOKEN if (wrong := hints.faults(one.text))}
    assert wrongs == {}
    tried = [what for one in SPOKEN for what in (*hints.commands(one.text), *hints.recipe_keys(one.text))]
    assert len(tried) + len(FLAGS) > 250


@pytest.mark.parametrize(("module", "flag"), FLAGS)
def test_a_flag_in_a_message_exists_where_it_is_shown(module: str, flag: str) -> None:
    assert module.startswith("cli/") or module in MANY, "say in MANY which verbs show what it says"
    for verb in shown_by(module):
        of_a_recipe = verb in hints.RECIPES and hints.is_key(flag.removeprefix("--"))
        assert of_a_recipe or flag in hints.flags_of(verb), f"`orrery {verb}` has no {flag}"


def every_verb() -> list[str]:
    of_tasks = [f"evaluate {name}" for name in hints.tasks()]
    return [one for verb in VERBS for one in ([f"{verb} {word}" for word in GROUPS.get(verb, ())] or [verb])] + of_tasks


@pytest.mark.parametrize("hint", SETTINGS)
def test_a_setting_in_a_hint_is_spelled_as_the_verb_has_it(hint: str) -> None:
    """Of the library's settings some verbs have a flag, some a key of a recipe, and others nothing to say of them."""
    ways = {verb: as_flags(hint, verb.split()) for verb in every_verb()}
    said = {verb: told for verb, told in ways.items() if told != hint}
    assert {verb: wrong for verb, told in said.items() if (wrong := hints.shown_faults(verb.split(), told))} == {}
    assert any("--" in told for told in said.values())


def test_settings_are_spelled() -> None:
    hint = "mend it, or allow a number of bad ones with `skip_bad=N`"
    assert as_flags(hint, ["train", "x"]).endswith("with --data.skip_bad N")
    assert as_flags(hint, ["tokenizer", "train"]).endswith("with --skip-bad N")
    assert as_flags(hint, ["finetune", "classification"]).endswith("with --data.skip_bad N")
    assert as_flags(hint, ["classify", "m"]) == "mend it"
    assert as_flags(hint, []) == hint
    cut = 'shorten it; `truncate="left"` cuts its beginning'
    assert as_flags(cut, ["generate"]) == "shorten it; --truncate left cuts its beginning"
    assert as_flags(cut, ["score"]) == "shorten it"
    assert as_flags("use `truncation=True`", ["embed"]) == "use --truncation"
    assert as_flags("use `truncation=True`", ["info"]) == "use `truncation=True`"
    assert as_flags("see `orrery info`", ["info"]) == "see `orrery info`"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("try orrery generate --truncate left", "MODEL"),
        ("try `orrery generate MODEL PROMPT --temp 1`", "--temp"),
        ("`orrery train x.yaml --training.lr 1` trains", "training.lr"),
        ("set training.lr lower", "training.lr"),
        ("call orrery.no_such_thing of it", "orrery.no_such_thing"),
        ("call lm.no_such_thing of it", "no_such_thing"),
        ("run pip install 'orrery-of-strangers[fast]' first", "is not ours"),
        ("run pip install torch2 first", "is not ours"),
        ("`orrery evaluate MODEL perplexity --ctx 3` measures", "--ctx"),
        ("`orrery dpo --loss kto` learns", "model"),
        ("`orrery tokenizer train` makes one", ""),
        ("`orrery export MODEL hf OUT --merge` writes", ""),
        ("set training.optimizer.rate lower, or training.micro_batch", ""),
        ("orrery generate X PROMPT uses the model", ""),
        ("read model.safetensors and tokenizer.json there", ""),
    ],
)
def test_it_finds_what_it_is_for(text: str, fault: str) -> None:
    wrongs = hints.faults(text)
    assert bool(wrongs) == bool(fault)
    assert all(fault in one for one in wrongs)


def test_every_extra_that_a_message_installs_is_one() -> None:
    """Messages take the command from ``settings.install``."""
    calls = re.findall(r"\binstall\(['\"](\w+)['\"]\)", "".join(file.read_text("utf-8") for file in FILES))
    assert len(calls) >= 8
    assert set(calls) <= set(hints.PROJECT["optional-dependencies"])
    assert hints.PROJECT["name"] == DISTRIBUTION
    assert not hints.package_fault(install("fast").split("'")[1])


def test_it_knows_the_flags_of_verbs() -> None:
    assert "--truncate" not in hints.flags_of("score")
    assert "--truncate" in hints.flags_of("generate")
    assert "--overwrite" in hints.flags_of("tokenizer train")
    assert hints.bare_flags("add --overwrite, or `orrery lab --all`") == ["--overwrite"]
    assert any(module == "checkpoints/outputs.py" for module, _ in FLAGS)
    assert hints.shown_faults(["score", "m"], "use --truncate left")
    assert hints.shown_faults(["classify", "m"], "give --data.skip_bad 3")
    assert not hints.shown_faults(["train", "m"], "give --data.skip_bad 3")
