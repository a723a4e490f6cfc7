"""The chat templates of a model folder, read and written: names to sources, ``default`` the one for chats."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orrery.errors import ModelFileError
from orrery.text.chat.sandbox import SIZE

FILE, OTHERS, CONFIG = "chat_template.jinja", "additional_chat_templates", "tokenizer_config.json"
OLD = ("chat_template.json", "processor_config.json")
"""Where older models that read pictures too keep their template: it is taken where no other file has one."""
DEFAULT, TOOLS = "default", "tool_use"
"""The templates of all chats, and of those in which there are tools."""
CONFIG_LIMIT = 4_000_000
"""Bytes: a tokenizer_config.json that lists 10,000 added tokens has two millions."""
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")


def read_templates(folder: Path) -> dict[str, str]:
    """Return a folder's templates: chat_template.jinja and the others beside it, else tokenizer_config.json's.

    Raises `ModelFileError` for one that is larger than the sandbox takes, or that is no UTF-8.
    """
    templates = {file.stem: _read(file, SIZE) for file in sorted((folder / OTHERS).glob("*.jinja"))}
    if (folder / FILE).is_file():
        templates[DEFAULT] = _read(folder / FILE, SIZE)
    for name in (CONFIG, *OLD):
        templates = templates if DEFAULT in templates else {**_configured(folder / name), **templates}
    for name, source in templates.items():
        if not _is_sound(name, source):
            raise ModelFileError(
                f"{folder}: the chat template {name[:64]!r} has no plain name, is larger than {SIZE >> 10} KiB, or no "
                "UTF-8",
                "no published model has such a one; get the folder again from its source",
            )
    return templates


def read_source(file: Path) -> str:
    """Return the source of a template. Raises `ModelFileError` for more than the sandbox takes, or no UTF-8."""
    return _read(file, SIZE)


def with_default(templates: Mapping[str, str], source: str) -> dict[str, str]:
    """Return templates with another one for all chats, those with tools too."""
    return {**{name: other for name, other in templates.items() if name != TOOLS}, DEFAULT: source}


def write_templates(folder: Path, templates: Mapping[str, str]) -> None:
    """Write templates where `read_templates` and transformers look for them, byte for byte as they were."""
    for name, source in templates.items():
        file = folder / FILE if name == DEFAULT else folder / OTHERS / f"{name}.jinja"
        file.parent.mkdir(parents=True, exist_ok=True)
        # Through a temporary file, so that a killed process leaves the old one or the new one.
        temporary = file.with_name(f".{file.name}.{os.getpid()}")
        temporary.write_bytes(source.encode())
        os.replace(temporary, file)


def _is_sound(name: str, source: str) -> bool:
    try:
        return bool(_NAME.fullmatch(name)) and len(source.encode()) <= SIZE
    except UnicodeEncodeError:  # half a character, which JSON can spell
        return False


def _configured(file: Path) -> dict[str, str]:
    """Return the templates of a tokenizer_config.json, or another: one text, or a list of names and texts."""
    if not file.is_file():
        return {}
    try:
        config = json.loads(_read(file, CONFIG_LIMIT))
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{file} cannot be read: {error}", "export the model again") from None
    given: Any = config.get("chat_template") if isinstance(config, dict) else None
    named = given if isinstance(given, list) else [{"name": DEFAULT, "template": given}]
    pairs = [(one.get("name"), one.get("template")) for one in named if isinstance(one, dict)]
    return {name: source for name, source in pairs if isinstance(name, str) and isinstance(source, str)}


def _read(file: Path, limit: int) -> str:
    try:
        with file.open("rb") as stream:
            content = stream.read(limit + 1)
        if len(content) > limit:
            raise ModelFileError(f"{file} is larger than {limit >> 10:,} KiB", "get the file again from its source")
        return content.decode()
    except UnicodeDecodeError as error:
        raise ModelFileError(f"{file} cannot be read: {error}", "it must be UTF-8; export the model again") from None
