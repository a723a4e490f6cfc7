"""The chat templates of a run: which it has, the format that they mean, and the control tokens that this needs."""

from collections.abc import Mapping
from pathlib import Path

from orrery.errors import UsageError
from orrery.text.chat.folder import DEFAULT, read_source, with_default
from orrery.text.chat.formats import FORMATS, ChatFormat
from orrery.text.chat.render import ChatTemplate, form_of
from orrery.text.chat.spans.encoding import Control
from orrery.text.tokenizer import Tokenizer

USUAL = "chatml"
"""The format of a run whose base has no template, where none is named."""


def templates_of_run(choice: str | None, base: Mapping[str, str]) -> dict[str, str]:
    """Return the templates by name of a run that renders conversations; ``default`` is the one that it does so with.

    Args:
        choice: the name of one of Orrery's formats, or the file of a Jinja template; by default the base's own
            template, else `USUAL`.
        base: the templates of the model that the run begins from.

    Raises:
        UsageError: it is neither a name nor a file.
        ModelFileError: the file is too large, or no UTF-8.
    """
    if choice is None and DEFAULT in base:
        return dict(base)
    name = USUAL if choice is None else choice
    if name in FORMATS:
        return with_default(base, ChatFormat(name).jinja())
    file = Path(name)
    if len(name) > 4096 or "\0" in name or not file.is_file():
        message = f"data.template {name[:80]!r} is neither a chat format nor a file"
        raise UsageError(message, f"the formats are {', '.join(FORMATS)}")
    return with_default(base, read_source(file))


def named_format(templates: Mapping[str, str]) -> str | None:
    """Return the name of Orrery's own format whose template this is, byte for byte; none for another template."""
    return next((name for name in FORMATS if ChatFormat(name).jinja() == templates.get(DEFAULT)), None)


def template_of_run(templates: Mapping[str, str], tokenizer: Tokenizer) -> ChatTemplate:
    """Return the format that conversations are rendered in: one of Orrery's own needs no sandbox, and no Jinja.

    Raises:
        UsageError: the run has none.
    """
    if DEFAULT not in templates:
        message = "the run has no chat template"
        raise UsageError(message, f"name one with data.template: {', '.join(FORMATS)}, or a Jinja file")
    name = named_format(templates)
    return ChatTemplate(tokenizer, ChatFormat(name)) if name else form_of(templates, tokenizer)


def control_tokens(templates: Mapping[str, str]) -> tuple[str, ...]:
    """Return the control tokens that the format of a run writes; of a Jinja template they are not known."""
    name = named_format(templates)
    return () if name is None else control_tokens_of(name)


def control_tokens_of(name: str) -> tuple[str, ...]:
    """Return the control tokens that one of Orrery's own formats writes, in the order of their first use.

    Raises:
        UsageError: there is no format of this name.
    """
    probe = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    spans = ChatFormat(name).spans(probe, True)
    return tuple(dict.fromkeys(span.token for span in spans if isinstance(span, Control)))
