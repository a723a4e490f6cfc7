"""The verbs: where each lives, what people do with it, and what it says of itself."""

import re
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

from orrery.errors import UsageError

_ROOT = Path(__file__).parents[2]


class Verb(NamedTuple):
    """Where a verb lives, as ``module:function`` or ``module:app``, its group, and its page of the documentation.

    ``about`` is what it says of itself, where that does not stand in its source.
    """

    target: str
    group: str
    page: str
    about: str = ""


OWN = "Tasks of your own"
"""The group of the verbs that a program's tasks have."""
_GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "Begin": {
        "demo": ("demo:demo", "quickstart"),
        "info": ("info:info", "quickstart"),
        "completion": ("completion:completion", "quickstart"),
        "with": ("with_parts:with_parts", "own-parts"),
    },
    "Train": {
        "train": ("train.app:train", "training"),
        "finetune": ("finetune:finetune", "finetuning"),
        "sft": ("sft:sft", "assistant"),
        "reward": ("reward:reward", "preferences"),
        "dpo": ("dpo:dpo", "preferences"),
        "ppo": ("ppo:ppo", "reinforcement"),
        "grpo": ("grpo:grpo", "reinforcement"),
        "distil": ("distil:distil", "tuning"),
    },
    "Use a model": {
        "generate": ("generate:generate", "generating"),
        "chat": ("chat:chat", "chat"),
        "serve": ("serve:serve", "serving"),
        "score": ("score:score", "generating"),
        "classify": ("classify:classify", "pipelines"),
        "caption": ("caption:caption", "pictures"),
        "detect": ("detect:detect", "pictures"),
        "segment": ("segment:segment", "pictures"),
        "tag": ("tag:tag", "pipelines"),
        "answer": ("answer:answer", "pipelines"),
        "summarise": ("summarise:summarise", "pipelines"),
        "translate": ("translate:translate", "translation"),
        "embed": ("embed:embed", "sentence-vectors"),
        "rank": ("rank:rank", "sentence-vectors"),
        "cloze": ("cloze:cloze", "pipelines"),
        "label": ("label:label", "many-labels"),
        "recommend": ("recommend:recommend", "recommendation"),
        "neighbours": ("neighbours:neighbours", "word-vectors"),
    },
    "Look inside": {
        "see": ("see:see", "looking-inside"),
        "tree": ("tree:tree", "generating"),
        "patch": ("patch:patch", "interventions"),
        "show": ("show:show", "variants"),
        "parity": ("parity:parity", "export"),
    },
    "Measure and compare": {
        "evaluate": ("evaluate.app:evaluate", "evaluation"),
        "plan": ("plan:plan", "planning"),
        "compare": ("compare:compare", "compare"),
        "ladder": ("ladder:ladder", "scaling-ladder"),
        "lab": ("lab:lab", "labs"),
        "quiz": ("quiz:quiz", "quiz"),
        "course": ("course:course", "course/index"),
        "bench": ("bench.app:app", "speed"),
        "verify": ("verify:verify", "architecture"),
    },
    "Texts and tokenizers": {
        "data": ("data.app:app", "data"),
        "tokenizer": ("tokenizer.app:app", "tokenizers"),
    },
    "Model files": {
        "models": ("models:models", "models"),
        "import": ("import_model:import_model", "models"),
        "export": ("export:export", "export"),
        "quantise": ("quantise:quantise", "tuning"),
        "average": ("average:average", "training"),
    },
}
"""The verbs by what people do with them; each with its function below ``orrery.cli`` and its page."""

VERBS = {
    name: Verb(f"orrery.cli.{target}", group, page)
    for group, verbs in _GROUPS.items()
    for name, (target, page) in verbs.items()
}


def verbs() -> dict[str, Verb]:
    """Return the verbs of the package, and those of the tasks that this program has registered."""
    if "orrery.tasks._task" not in sys.modules:  # whoever registers a task has imported it
        return VERBS
    from orrery.tasks import TASKS

    known = dict(VERBS)
    for task in TASKS.own():
        about = " ".join((task.__doc__ or task.kind).partition("\n\n")[0].split())
        if task.verb in VERBS:
            message = f"the verb {task.verb} of the task {task.kind} is one of Orrery's own"
            raise UsageError(message, "give the task another verb")
        if task.verb:
            known[task.verb] = Verb(f"orrery.cli.own_task:{task.kind}", OWN, "own-parts", about)
    return known


def summary(name: str) -> str:
    """Return the first sentence of a verb's page of help, from its source: none is imported for the list of all."""
    verb = verbs()[name]
    if verb.about:
        return verb.about
    module, _, attribute = verb.target.partition(":")
    return _first_sentence(_ROOT.joinpath(*module.split(".")).with_suffix(".py"), attribute)


@cache
def _first_sentence(file: Path, attribute: str) -> str:
    """Return the first paragraph of a function's docstring, or the ``help`` of an app."""
    source = file.read_text(encoding="utf-8")
    if attribute == "app":
        match = re.search(r'\bhelp="([^"]+)"', source)
    else:
        match = re.compile(rf'^def {attribute}\(.*?"""(.*?)(?:\n\n|""")', re.MULTILINE | re.DOTALL).search(source)
    assert match is not None, f"{file.name}: {attribute} says nothing of itself"
    return " ".join(match[1].split())
