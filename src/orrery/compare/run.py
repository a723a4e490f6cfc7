"""A comparison: models learn the same text one after the other, each with the same budget, and are measured alike."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orrery.checkpoints.disk import machine_errors, write_text
from orrery.checkpoints.lock import NAME as LOCK
from orrery.checkpoints.lock import folder_lock
from orrery.compare.findings import Comparison, Entry, entry_from
from orrery.compare.learning import Say, Watch, count, learn
from orrery.compare.page import by_seconds, by_tokens, page
from orrery.compare.plan import Plan, recipes
from orrery.compare.texts import read
from orrery.errors import DataError, UsageError

RESULT, PAGE, BY_SECONDS, BY_TOKENS, TOKENIZER = (
    "compare.json",
    "compare.html",
    "loss-by-seconds.svg",
    "loss-by-tokens.svg",
    "tokenizer",
)


def compare(plan: Plan, folder: Path, say: Say, watch: Watch, *, resume: bool = False) -> Comparison:
    """Let every model learn and be measured; leave table, figures and page in ``folder`` after each.

    Args:
        plan: who is compared on what, with which budget.
        folder: a new one, or with ``resume`` that of a comparison of the same settings.
        say: told a line at each stage.
        watch: makes what shows a training, once that begins.
        resume: keep the models that are done, and go on inside the one that is not.

    Raises:
        UsageError: the plan cannot be carried out, or the folder holds something else.
        DataError: nothing is held back, or the text has changed.
    """
    plan.check()
    with compare_folder(folder, resume):
        done = earlier(folder, plan) if resume else []
        say(f"reading {plan.base.data.described}")
        texts = read(plan.base, folder / TOKENIZER)
        found = Comparison(plan.settings(), texts.facts(plan.base.data.described), done)
        refuse_other_text(folder, found)
        contenders = recipes(plan, texts.tokenizer.size, folder / TOKENIZER)
        for name, recipe in contenders.items():
            if any(entry.name == name for entry in found.entries):
                say(f"{name}: done before")
                continue
            entry = count(texts, say) if recipe is None else learn(recipe, plan, texts, folder / name, say, watch)
            if isinstance(entry, int):
                found.signal = entry
                break
            found.entries.append(entry)
            leave(found, folder)
            say(f"{name}: {entry.bits_per_byte:.3f} bits per byte after {entry.seconds:.1f} s{off_budget(entry, plan)}")
    return found


def off_budget(entry: Entry, plan: Plan) -> str:
    """Return a warning where a model had a fifth more or less time than its budget: the machine did other things."""
    if plan.minutes is None or entry.steps is None or abs(entry.seconds / (60 * plan.minutes) - 1) < 0.2:
        return ""
    return f", not {60 * plan.minutes:g}: the machine's speed changed, so compare by tokens"


@contextmanager
def compare_folder(folder: Path, resume: bool) -> Iterator[None]:
    """Hold the folder; only ``--resume`` may find something in it, and that a comparison."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file", "choose another folder with --output")
    refuse_others(folder, resume)
    with folder_lock(folder):
        refuse_others(folder, resume)
        yield


def refuse_others(folder: Path, resume: bool) -> None:
    """Raise ``UsageError`` for a folder with something in it that is not a comparison to go on with."""
    found = sorted(entry.name for entry in folder.iterdir() if entry.name != LOCK) if folder.exists() else []
    begun = RESULT in found or all(
        name == TOKENIZER or name.startswith((f"{RESULT}.tmp-", ".orrery-")) for name in found
    )
    message = f"{folder} is not empty: it has {', '.join(found[:3])}"
    if not begun:
        raise UsageError(f"{message}, and no comparison", "choose another folder with --output")
    if found and not resume:
        raise UsageError(message, "add --resume to go on with it, or choose another folder with --output")


def earlier(folder: Path, plan: Plan) -> list[Entry]:
    """Return the models that an earlier call finished.

    Raises:
        UsageError: that was another comparison.
    """
    file = folder / RESULT
    if not file.exists():
        return []
    try:
        before = json.loads(file.read_text(encoding="utf-8"))
        done = [entry_from(values) for values in before["models"]]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise UsageError(f"{file} is not of a comparison: {error}", "choose another folder with --output") from error
    for key, value in plan.settings().items():
        if before["settings"].get(key) != value and key != "models":
            message = f"--resume: {key} was {before['settings'].get(key)!r} and is now {value!r}"
            raise UsageError(message, "take the old value, or choose another folder with --output")
    return done


def refuse_other_text(folder: Path, found: Comparison) -> None:
    """Refuse to go on with another text; else note at once what this comparison is of."""
    file = folder / RESULT
    before = json.loads(file.read_text(encoding="utf-8"))["corpus"] if file.exists() else found.corpus
    if before != found.corpus:
        raise DataError(
            "--resume: the text is not the one that this comparison began with", "restore it, or begin anew"
        )
    with machine_errors(folder):
        write_text(file, json.dumps(found.as_json(), indent=1) + "\n")


def leave(found: Comparison, folder: Path) -> None:
    """Write what is known so far: JSON, page and figures."""
    with machine_errors(folder):
        write_text(folder / RESULT, json.dumps(found.as_json(), indent=1) + "\n")
        write_text(folder / PAGE, page(found))
        if any(entry.curve for entry in found.entries):
            write_text(folder / BY_SECONDS, by_seconds(found))
            write_text(folder / BY_TOKENS, by_tokens(found))
