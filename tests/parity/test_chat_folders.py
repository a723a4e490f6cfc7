"""The templates of chats, wherever a folder keeps them and whatever they call, write what transformers writes."""

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoTokenizer
from transformers.processing_utils import ProcessorMixin

from orrery.text.chat.folder import read_templates
from orrery.text.chat.of_run import template_of_run, templates_of_run
from orrery.text.chat.render import load_chat_template
from orrery.text.tokenizer import load_tokenizer

CHAT = [
    {"role": "system", "content": "S"},
    {"role": "user", "content": " Hi <b> & 'ü' "},
    {"role": "assistant", "content": "Yes\n"},
    {"role": "user", "content": "more"},
]
TOOLS = [{"type": "function", "function": {"name": "f", "description": "ü <b>", "parameters": {"type": "object"}}}]
CALL = {"type": "function", "id": "abcdefghi", "function": {"name": "f", "arguments": {"a": [1.5, True, None]}}}
CALLED = [*CHAT[:2], {"role": "assistant", "content": "", "tool_calls": [CALL]}]
TEMPLATES = {
    "set inside a reply": "{% set x = 1 %}{% for m in messages %}"
    "{% generation %}{% set x = m.content %}{{ x }}{% endgeneration %}{{ x }}{{ y }}{% endfor %}",
    "a reply in a macro": "{% macro say(m) %}{% generation %}{{ m.content }}{% endgeneration %}{% endmacro %}"
    "{% for m in messages %}{{ say(m) if m.role == 'assistant' else m.content }}{% endfor %}",
    "json": "{{ tools | tojson(indent=4) }}{{ tools | tojson(ensure_ascii=True, separators=(',', ':')) }}"
    "{% for m in messages %}{{ m | tojson(sort_keys=true) }}{% endfor %}",
    "loops": "{% for m in messages %}{% if loop.index == 4 %}{% break %}{% endif %}"
    "{% if loop.previtem is defined and loop.previtem.role == 'user' %}P{% continue %}{% endif %}"
    "{{ loop.cycle('a', 'b') }}{{ loop.changed(m.role) }}{{ m.content }}{% endfor %}",
    "names": "{% set ns = namespace(n=0, l=[]) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}"
    "{% set ns.l = ns.l + [m.role] %}{{ m.content }}{% endfor %}{{ ns.n }}{{ ns.l | join(',') }}{{ dict(a=1) }}",
    "blanks": "  {% for m in messages %}  \n  {{ m.content }}\n  {%- if true %}\n x \n  {%- endif %}\n{% endfor %}\n\n",
    "calls": "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}{{ c.function.name }}"
    "{% for k, v in c.function.arguments | items %}{{ k }}={{ v }}{% endfor %}{% endfor %}{% endfor %}{{ tools }}",
    "a day": "{{ strftime_now('%Y') }}{% for m in messages %}{{ m.content }}{% endfor %}",
}
NAMED = {
    "default": "{% for m in messages %}D{{ m.content }}{% endfor %}",
    "tool_use": "{% for m in messages %}U{{ m.content }}{% for c in m.tool_calls or [] %}{{ c.function.name }}"
    "{% endfor %}{% endfor %}{{ tools | tojson }}",
    "rag": "{% for m in messages %}R{{ m.content }}{% endfor %}{{ documents }}",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    alphabet = {letter: id for id, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Tokenizer(models.BPE(vocab=alphabet, merges=[]))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken("</s>", special=True, normalized=False)])
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    configure(tmp_path)
    return tmp_path


def configure(folder: Path, **more: Any) -> None:
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "</s>", **more}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))


def in_files(folder: Path) -> None:
    (folder / "chat_template.jinja").write_text(NAMED["default"])
    (folder / "additional_chat_templates").mkdir()
    for name in ("tool_use", "rag"):
        (folder / "additional_chat_templates" / f"{name}.jinja").write_text(NAMED[name])


def in_list(folder: Path) -> None:
    configure(folder, chat_template=[{"name": name, "template": source} for name, source in NAMED.items()])


def file_beside_list(folder: Path) -> None:
    in_list(folder)
    (folder / "chat_template.jinja").write_text("{% for m in messages %}F{{ m.content }}{% endfor %}{{ tools }}")


def written(folder: Path, chat: list[dict[str, Any]], name: str = "default", **variables: Any) -> str:
    tokenizer = load_tokenizer(folder)
    return tokenizer.decode(load_chat_template(folder, tokenizer, name).render(chat, **variables).ids, special=True)


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_writes_what_it_writes_in_transformers(folder: Path, name: str) -> None:
    configure(folder, chat_template=TEMPLATES[name])
    theirs = AutoTokenizer.from_pretrained(folder)
    tools = TOOLS if "tools" in TEMPLATES[name] else None
    for chat in (CHAT, CALLED):
        assert written(folder, chat, tools=tools) == theirs.apply_chat_template(chat, tools=tools, tokenize=False)


@pytest.mark.parametrize("put", [in_files, in_list, file_beside_list])
def test_chats_with_tools_have_the_template_of_transformers(folder: Path, put: Any) -> None:
    put(folder)
    theirs = AutoTokenizer.from_pretrained(folder)
    for chat, tools in ((CHAT, None), (CHAT, TOOLS), (CALLED, TOOLS), (CALLED, None)):
        assert written(folder, chat, tools=tools) == theirs.apply_chat_template(chat, tools=tools, tokenize=False)


def test_a_template_by_name_is_taken_with_tools_too(folder: Path) -> None:
    in_list(folder)
    theirs = AutoTokenizer.from_pretrained(folder)
    expected = theirs.apply_chat_template(CHAT, chat_template="rag", tools=TOOLS, tokenize=False)
    assert written(folder, CHAT, "rag", documents=None) == expected
    # A run that learns in another format forgets that of chats with tools, too.
    tokenizer, own = load_tokenizer(folder), read_templates(folder)
    assert templates_of_run(None, own) == own
    assert set(templates_of_run("zephyr", own)) == {"default", "rag"}
    used = template_of_run(own, tokenizer).render(CHAT, tools=TOOLS)
    assert tokenizer.decode(used.ids) == theirs.apply_chat_template(CHAT, tools=TOOLS, tokenize=False)


@pytest.mark.parametrize("file", ["chat_template.json", "processor_config.json"])
def test_the_template_of_a_processor_is_taken_where_there_is_no_other(folder: Path, file: str) -> None:
    (folder / file).write_text(json.dumps({"chat_template": NAMED["default"]}))
    found, _ = ProcessorMixin.get_processor_dict(folder)
    assert read_templates(folder) == {"default": found["chat_template"]}
    assert written(folder, CHAT).startswith("DS")
    configure(folder, chat_template=NAMED["rag"])
    assert read_templates(folder) == {"default": AutoTokenizer.from_pretrained(folder).chat_template}
