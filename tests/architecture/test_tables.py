"""Lists in the documentation hold what the registries and the parser hold."""

import re
from pathlib import Path
from typing import get_args

import pytest

from orrery.cli.export import export
from orrery.data import generated, sets
from orrery.families import names as families
from orrery.metrics import METRICS
from orrery.objectives import OBJECTIVES
from orrery.planning.presets import PRESETS
from orrery.rewards import REWARDS
from orrery.schema.registry import settings_of
from orrery.tasks._task import learned
from orrery.text.kinds import CHATS, FRAMES, TOKENIZERS
from orrery_course.labs import questions
from pages import ROOT, module, text_of

TABLES = module("_tables")
FAMILIES = {
    "openai_gpt": "openai-gpt",
    "deberta_v2": "deberta-v2",
    "xlm_roberta": "xlm-roberta",
    "xlm_roberta_xl": "xlm-roberta-xl",
    "vision_encoder_decoder": "vision-encoder-decoder",
    "transformer": "the original Transformer",
}  # fmt: skip
"""What the page of the families calls otherwise than their files."""


@pytest.mark.parametrize("page", TABLES.PAGES)
def test_generated_tables_are_as_written_last(page: str) -> None:
    assert (ROOT / page).read_text("utf-8") == TABLES.written(page), "python docs/_tables.py writes them"


def test_each_table_stands_somewhere() -> None:
    text = "".join((ROOT / page).read_text("utf-8") for page in TABLES.PAGES)
    assert {match["name"] for match in TABLES.BLOCK.finditer(text)} == set(TABLES.TABLES)


def test_a_stale_table_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "page.md").write_text("<!-- table: verbs -->\nold\n<!-- end of it -->\n")
    monkeypatch.setattr(TABLES, "ROOT", tmp_path)
    assert "\nold\n" not in TABLES.written("page.md")
    assert "`generate MODEL PROMPT`" in TABLES.written("page.md")


OTHER_VERBS = {"dpo", "ppo", "grpo", "rloo", "reward", "sft"}
"""Tasks with verbs of their own."""

LISTS = {
    "families": (families, text_of("model-families")),
    "kinds of tokenizers": (TOKENIZERS.names, text_of("training")),
    "frames": (lambda: FRAMES, text_of("training")),
    "chat formats": (lambda: CHATS, text_of("chat")),
    "labs": (questions, text_of("labs")),
    "rewards": (REWARDS.names, text_of("reinforcement")),
    "metrics": (METRICS.names, text_of("scores")),
    "objectives": (OBJECTIVES.names, text_of("training")),
    "named sets": (lambda: [*sets.SETS, *generated.names()], text_of("data")),
    "tasks of finetune": (lambda: set(learned()) - OTHER_VERBS, text_of("finetuning").replace("-", "_")),
}


@pytest.mark.parametrize("what", LISTS)
def test_a_list_is_complete(what: str) -> None:
    names, text = LISTS[what]
    assert (
        sorted(n for n in names() if not re.search(rf"(?<![\w-]){re.escape(FAMILIES.get(n, n))}(?![\w-])", text)) == []
    )


ALONE = [
    name
    for name in REWARDS.names()
    if not any(field.is_required() for field in settings_of(REWARDS.find(name)).model_fields.values())
]
"""Rewards that a flag can name: those without settings that must be given."""


@pytest.mark.parametrize(
    ("file", "names"),
    [
        ("chat.py", CHATS), ("tokenizer/chat.py", CHATS),
        ("ppo.py", ALONE), ("grpo.py", ALONE), ("distil.py", ALONE),
        ("finetune.py", set(learned()) - OTHER_VERBS),
        ("tokenizer/app.py", TOKENIZERS.names()),
        ("export.py", get_args(export.__annotations__["format"])),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_a_page_of_help_names_all_of_them(file: str, names: set[str]) -> None:
    text = (ROOT / "src/orrery/cli" / file).read_text("utf-8").replace("_", "-")
    assert [name for name in names if name.replace("_", "-") not in text and name.replace("_", " ") not in text] == []


def test_presets_are_listed() -> None:
    text = text_of("presets")
    assert [name for name in PRESETS if name not in text] == []
