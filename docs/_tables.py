"""Tables of pages that are written from the registries and the parser: ``python docs/_tables.py`` writes them."""

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

ROOT = Path(__file__).parent.parent
sys.path.append(str(Path(__file__).parent))

import _course  # noqa: E402
import torch  # noqa: E402
from _benchmark_tables import table  # noqa: E402
from pydantic import BaseModel  # noqa: E402
from pydantic_core import PydanticUndefined  # noqa: E402

from orrery.cli.evaluate.app import tasks  # noqa: E402
from orrery.cli.program import VERBS, build  # noqa: E402
from orrery.cli.verbs import summary  # noqa: E402
from orrery.data.generated import GENERATED  # noqa: E402
from orrery.data.sources import SOURCES  # noqa: E402
from orrery.families import names  # noqa: E402
from orrery.generation.compiled_step import why_not, why_not_here  # noqa: E402
from orrery.laws.models import spec_of, tiny  # noqa: E402
from orrery.metrics import METRICS  # noqa: E402
from orrery.models.heads import HEADS  # noqa: E402
from orrery.objectives import OBJECTIVES  # noqa: E402
from orrery.recipes.config import Optimizer, Recipe, Schedule  # noqa: E402
from orrery.reports.observers import OBSERVERS  # noqa: E402
from orrery.rewards import REWARDS  # noqa: E402
from orrery.schema.registry import Registry, settings_of  # noqa: E402
from orrery.schema.section import Section  # noqa: E402
from orrery.schema.writing import EVERY, SETTINGS  # noqa: E402
from orrery.serving import ollama_options  # noqa: E402
from orrery.serving.schema import inference, ollama  # noqa: E402
from orrery.serving.schema.chat import ChatRequest  # noqa: E402
from orrery.serving.schema.completions import CompletionRequest  # noqa: E402
from orrery.serving.schema.fields import Body  # noqa: E402
from orrery.serving.schema.messages import MessagesRequest  # noqa: E402
from orrery.serving.schema.ranking import RerankRequest  # noqa: E402
from orrery.serving.schema.reading import EmbeddingsRequest  # noqa: E402
from orrery.serving.schema.responses import ResponsesRequest  # noqa: E402
from orrery.tasks import TASKS, Pipeline  # noqa: E402
from orrery.tasks._task import learned  # noqa: E402
from orrery.text.kinds import CHATS, FRAMES, TOKENIZERS  # noqa: E402
from orrery.tuning._registry import KINDS as TRANSFORMS  # noqa: E402

PAGES = (
    *(
        f"docs/{name}.md"
        for name in ("commands", "reference", "generating", "training", "reinforcement", "scores", "speed", "clients")
    ),
    "docs/course/index.md",
    *_course.PAGES,
)
BLOCK = re.compile(r"(<!-- table: (?P<name>[a-z0-9-]+) -->\n)(?P<body>.*?)(<!-- end of it -->)", re.DOTALL)


def verbs() -> str:
    """Return the verbs by what people do with them, each with what it takes and its page."""
    parts = []
    for group in dict.fromkeys(verb.group for verb in VERBS.values()):
        rows = [row for name, verb in VERBS.items() if verb.group == group for row in _verb(name)]
        parts.append(f"**{group}**\n\n{table(('verb', 'does', 'more'), rows)}")
    return "\n".join(parts)


def _verb(name: str) -> Iterable[tuple[str, str, str]]:
    verb, parser = VERBS[name], build([name])[name]
    module, _, attribute = verb.target.partition(":")
    more = f"[{verb.page}]({verb.page}.md)"
    if attribute == "app":
        if parser.default_command:
            yield _usage(name, parser), _said(summary(name)), more
        app = getattr(import_module(module), attribute)
        for word in (word for word in app if not word.startswith("-")):
            yield _usage(f"{name} {word}", parser[word]), _said(parser[word].help), more
        return
    if name == "evaluate":
        alone = [task for task, each in tasks().items() if not each.of_a_model]
        named = ", ".join(f"`{task}`" for task in tasks() if task not in alone)
        files = ", ".join(f"`{task}`" for task in alone)
        yield "`evaluate MODEL TASK`", f"{_said(summary(name))} {named}; without a model {files}", more
        return
    yield _usage(name, parser), _said(summary(name)), more


def _usage(name: str, parser: Any) -> str:
    """Return a verb with what has to stand behind it."""
    arguments = parser.assemble_argument_collection()
    places = [one.names[0].strip("-").upper() for one in arguments if one.field_info.is_positional and one.required]
    return f"`{' '.join([name, *places])}`"


def objectives() -> str:
    """Return what is learned: every objective with its loss, its keys, and the fields that data must give."""
    return _registered(
        OBJECTIVES, "objective.kind", lambda part: ", ".join(f"`{name}`" for name in part.needs), "reads"
    )


def data() -> str:
    """Return the kinds of data, with their keys and how they become batches."""
    kinds = _registered(
        SOURCES, "data.kind", lambda part: ", ".join(f"`{n}`" for n in part.batch_kinds), "batches.kind"
    )
    return kinds


def metrics() -> str:
    """Return what can be measured on examples held back."""
    return _registered(METRICS, "metric", lambda part: "more" if part.higher_is_better else "less", "better is")


def rewards() -> str:
    """Return what an answer can be worth."""
    return _registered(REWARDS, "reward")


def recipe() -> str:
    """Return the sections of a recipe, each with its keys."""
    rows = [("", _said(Recipe.__doc__), _keys(Recipe))]
    for name, field in Recipe.model_fields.items():
        if any(isinstance(each, Registry) for each in field.metadata):
            continue  # the parts of a registry have a table of their own
        for one in (field.annotation, *get_args(field.annotation)):
            if isinstance(one, type) and issubclass(one, Section):
                rows.append((f"`{name}`", _said(one.__doc__), _keys(one)))
    return table(("section", "", "keys"), rows)


def kinds() -> str:
    """Return every kind of part that a name chooses, with the names and what makes more of them known."""
    registries = (OBJECTIVES, SOURCES, METRICS, REWARDS, HEADS, TRANSFORMS, GENERATED, TOKENIZERS, OBSERVERS)
    rows = [(each.what, each.names(), f"`{each.package}.register`") for each in registries]
    more = f"`{TASKS.package}.register`"
    asked = (task for task in map(TASKS.find, TASKS.names()) if issubclass(task, Pipeline))
    answers = sorted(name for task in asked for name in (task.kind, *task.names))
    rows += [("task to fine-tune on", learned(), more), ("task that answers", answers, more)]
    rows += [("frame of a tokenizer", FRAMES, ""), ("chat format", CHATS, "")]
    listed = [(what, ", ".join(f"`{name}`" for name in listed_names), more) for what, listed_names, more in rows]
    return table(("part", "names", "more by"), sorted(listed))


def observers() -> str:
    """Return who can be told of a run as it goes."""
    return _registered(OBSERVERS, "observer")


def optimizers() -> str:
    """Return the optimizers and their settings."""
    return _union(Optimizer, "training.optimizer.kind")


def schedules() -> str:
    """Return the schedules and their settings."""
    return _union(Schedule, "training.schedule.kind")


def compiled() -> str:
    """Return the families whose step is compiled, as the law of it finds them."""
    if reason := why_not_here():
        raise RuntimeError(reason)
    compiled_names = [name for name in names() if spec_of(name).writes and why_not(tiny(name, torch.float32)) is None]
    return f"{len(compiled_names)} families have it: {', '.join(f'`{name}`' for name in compiled_names)}.\n"


def _registered(registry: Any, head: str, last: Callable[[Any], str] = lambda part: "", title: str = "") -> str:
    parts = [(name, registry.find(name)) for name in registry.names()]
    rows = [
        (f"`{name}`", _said(part.__doc__), _keys(settings_of(part)), *([last(part)] if title else []))
        for name, part in parts
    ]
    return table((head, "", "keys", *([title] if title else [])), rows)


def _union(union: Any, head: str) -> str:
    sections = [get_args(one)[0] for one in get_args(get_args(union)[0])]
    rows = [(f"`{one.model_fields['kind'].default}`", _said(one.__doc__), _keys(one)) for one in sections]
    return table((head, "", "keys"), rows)


def _keys(section: Any) -> str:
    """Return the keys of a section, each with its default where it has one that is a value."""
    shown = []
    for name, field in section.model_fields.items():
        if name != "kind" or field.is_required() or field.default is None:
            plain = field.default is not PydanticUndefined and field.default not in (None, (), {})
            value = f" {_value(field.default)}" if plain and not isinstance(field.default, BaseModel) else ""
            shown.append(f"`{field.alias or name}`{value}")
    return ", ".join(shown)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"({', '.join(map(str, value))})" if isinstance(value, tuple) else str(value)


def _said(text: str | None) -> str:
    """Return the first sentence of a documentation, as Markdown on a line."""
    first = " ".join((text or "").partition("\n\n")[0].split())
    return re.sub(r"[;,] see `\w+`", "", first.replace("``", "`"))


def requests() -> str:
    """Return the fields of requests that change nothing or are refused, with the reason or what to do instead."""
    doors: dict[str, type[Body]] = {
        "`/v1/completions`": CompletionRequest,
        "`/v1/chat/completions`": ChatRequest,
        "`/v1/responses`": ResponsesRequest,
        "`/v1/messages`": MessagesRequest,
        "`/v1/embeddings`": EmbeddingsRequest,
        "`/v1/rerank`": RerankRequest,
        "`/embed`": inference.EmbedRequest,
        "`/api/chat`": ollama.OllamaChatRequest,
        "`/api/generate`": ollama.GenerateRequest,
        "`/api/embed`": ollama.EmbedRequest,
    }
    rows: dict[tuple[str, str, str], list[str]] = {}
    for door, body in doors.items():
        for said, fields in (("changes nothing", body.HARMLESS), ("refused", body.UNSUPPORTED)):
            for name, why in fields.items():
                rows.setdefault((name, said, why), []).append(door)
    options = "`options` of Ollama"
    rows |= {(name, "changes nothing", why): [options] for name, why in ollama_options.HARMLESS.items()}
    rows |= {(name, "refused", why): [options] for name, (_, why) in ollama_options.UNSUPPORTED.items()}
    alike: dict[tuple[str, str, str], list[str]] = {}
    for (name, said, why), of in sorted(rows.items()):
        alike.setdefault((", ".join(of), said, why), []).append(f"`{name}`")
    lines = [(", ".join(names), of, said, why) for (of, said, why), names in alike.items()]
    return table(("field", "of", "", "why, or what to do instead"), lines)


_DOORS = {
    "python": "Python", "flag": "flags", "http": "requests", "translate": "`/v1/translate`", "pipeline": "pipelines",
    "recipe": "recipes", "file": "`generation_config.json`",
}  # fmt: skip


def drawing() -> str:
    """Return the settings that say how a token is chosen."""
    return _settings(name for name, one in SETTINGS.items() if one.group == "Drawing")


def searching() -> str:
    """Return the other settings of writing."""
    return _settings(name for name, one in SETTINGS.items() if one.group != "Drawing")


def _settings(names: Iterable[str]) -> str:
    """Return settings of writing with their numbers, where they can be said, and where they come from."""
    rows = []
    for name in names:
        one = SETTINGS[name]
        numbers = one.allowed if one.number or one.keyed else ""
        doors = "everywhere" if one.about.doors == EVERY else ", ".join(_DOORS[door] for door in one.about.doors)
        rows.append((f"`{name}`", one.about.help.removesuffix("."), numbers, doors, one.about.source))
    return table(("setting", "does", "numbers", "said in", "from"), rows)


TABLES = {
    each.__name__: each
    for each in (
        *(verbs, recipe, kinds, objectives, data, metrics, rewards, observers, optimizers),
        *(schedules, compiled, requests, drawing, searching),
    )
} | _course.TABLES


def written(page: str) -> str:
    """Return the text of a page with its tables as they are now."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return BLOCK.sub(lambda match: f"{match[1]}{TABLES[match['name']]()}{match[4]}", text)


def main(pages: Sequence[str] = PAGES) -> None:
    """Write the tables of the pages."""
    for page in pages:
        (ROOT / page).write_text(written(page), encoding="utf-8")


if __name__ == "__main__":
    main()
