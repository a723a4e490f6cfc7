"""Chat templates of published models, written again from their documented formats, each with a small tokenizer."""

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import tokenizers
import transformers
import yaml
from tokenizers import AddedToken

from chat_toy import chat_tokenizer
from orrery.text.tokenizer import Tokenizer

FOLDER = Path(__file__).parent / "chat_templates"
_GENERATION = re.compile(r"\{%-?\s*(end)?generation\s*-?%\}")


@dataclass(frozen=True)
class Published:
    """A chat format: its template with ``{% generation %}`` around what the assistant writes, and its tokens."""

    name: str
    annotated: str
    bos: str | None
    end: str | None
    tokens: tuple[str, ...]
    added: tuple[str, ...]
    kind: str
    reads: tuple[str, ...]
    """What it can say beside turns: ``tools``, ``reasoning``."""

    @property
    def source(self) -> str:
        """The template as it is published: without marks of what the assistant writes."""
        return _GENERATION.sub("", self.annotated)


@cache
def published() -> dict[str, Published]:
    """Return all formats by name."""
    by_name = {}
    for file in sorted(FOLDER.glob("*.yaml")):
        for name, entry in yaml.safe_load(file.read_text(encoding="utf-8")).items():
            assert name not in by_name
            by_name[name] = Published(
                name,
                entry["template"] if "template" in entry else _turns(entry),
                entry.get("bos"),
                entry.get("end"),
                tuple(entry.get("tokens", [])) + tuple(entry.get("tokens_in_turns", [])),
                tuple(entry.get("added", [])),
                entry.get("kind", "bytes"),
                tuple(entry.get("reads", [])),
            )
    return by_name


@cache
def tokenizer_of(name: str) -> Tokenizer:
    """Return a tokenizer that has the control tokens of a format."""
    form = published()[name]
    base = chat_tokenizer("chatml" if form.kind == "bytes" else "zephyr")
    engine = tokenizers.Tokenizer.from_str(json.dumps(base.definition))
    named = [token for token in (form.bos, form.end) if token and token not in form.tokens]
    special = [token for token in dict.fromkeys([*form.tokens, *named]) if token != "[gMASK]<sop>"]
    engine.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    engine.add_tokens([AddedToken(token, special=False, normalized=False) for token in form.added])
    definition = json.loads(engine.to_str())
    used = {*special, *form.added}
    # What the base had of control tokens, and this format has not, is an ordinary piece of the vocabulary.
    definition["added_tokens"] = [token for token in definition["added_tokens"] if token["content"] in used]
    roles = {"start": form.bos, "end": form.end, "unknown": "<unk>" if "<unk>" in special else None}
    return Tokenizer(json.dumps(definition), {role: token for role, token in roles.items() if token in special})


@cache
def reference_of(name: str) -> transformers.PreTrainedTokenizerFast:
    """Return the same tokenizer as transformers has it."""
    tokenizer = tokenizer_of(name)
    names = {"start": "bos_token", "end": "eos_token", "unknown": "unk_token"}
    given = {names[role]: token for role, token in tokenizer.roles.items() if role in names}
    engine = tokenizers.Tokenizer.from_str(json.dumps(tokenizer.definition))
    return transformers.PreTrainedTokenizerFast(tokenizer_object=engine, **given)


def _turns(entry: dict[str, Any]) -> str:
    """Write the template of a format that is turns between delimiters."""
    said = "m.content | trim" if entry.get("strip") else "m.content"
    (ask_before, ask_after), (before, end, after) = entry["user"], entry["assistant"]
    lines = [f"{{{{- {_quoted(entry['bos'])} }}}}"] if "bos" in entry else []
    if entry.get("no_system"):
        lines += ["{%- if messages[0].role == 'system' -%}{{ raise_exception('no system role') }}{%- endif -%}"]
    if "default" in entry:
        text = _quoted(entry["system"][0] + entry["default"] + entry["system"][1])
        lines += [f"{{%- if messages[0].role != 'system' -%}}{{{{ {text} }}}}{{%- endif -%}}"]
    opening = "''"
    if "fold" in entry:
        left, right = map(_quoted, entry["fold"].split("{}"))
        system = said.replace("m.", "messages[0].")
        lines += [
            f"{{%- set opening = {left} + ({system}) + {right} if messages[0].role == 'system' else '' -%}}",
            "{%- set messages = messages[1:] if messages[0].role == 'system' else messages -%}",
        ]
        opening = "(opening if loop.first else '')"
    lines += ["{%- for m in messages -%}"]
    if entry.get("alternate"):
        odd = "(m.role == 'user') != ((loop.index0 - (1 if messages[0].role == 'system' else 0)) % 2 == 0)"
        lines += [
            f"{{%- if m.role != 'system' and {odd} -%}}{{{{ raise_exception('turns alternate') }}}}{{%- endif -%}}"
        ]
    if "system" in entry:
        left, right = map(_quoted, entry["system"])
        lines += [f"{{%- if m.role == 'system' -%}}{{{{ {left} + ({said}) + {right} }}}}{{%- endif -%}}"]
    lines += [
        f"{{%- if m.role == 'user' -%}}{{{{ {_quoted(ask_before)} + {opening} + ({said}) + {_quoted(ask_after)} }}}}",
        f"{{%- elif m.role == 'assistant' -%}}{{{{ {_quoted(before)} }}}}"
        f"{{% generation %}}{{{{ ({said}) + {_quoted(end)} }}}}{{% endgeneration %}}{{{{ {_quoted(after)} }}}}",
        "{%- elif m.role != 'system' -%}{{ raise_exception('no role ' + m.role) }}{%- endif -%}",
        "{%- endfor -%}",
        f"{{%- if add_generation_prompt -%}}{{{{ {_quoted(entry.get('ask', before))} }}}}",
        f"{{%- else -%}}{{{{ {_quoted(entry.get('last', ''))} }}}}{{%- endif -%}}",
    ]
    return "\n".join(lines)


def _quoted(text: str) -> str:
    """Return a text as Jinja spells it."""
    return json.dumps(text, ensure_ascii=False)
