"""``orrery tokenizer chat``: what a model gets of a conversation, and who wrote which part of it."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from orrery.cli.console import printable
from orrery.cli.numbers import COUNT
from orrery.cli.places import RUN_OR_PATH

if TYPE_CHECKING:
    from orrery.text.chat.spans.sources import AuthoredSpan
    from orrery.text.tokenizer import Tokenizer


def chat(
    model: Annotated[Path, RUN_OR_PATH],
    messages: Path,
    /,
    *,
    template: str | None = None,
    prompt: bool = False,
    line: Annotated[int, COUNT] = 1,
) -> None:
    """Print a rendered conversation: control tokens in brackets, the template's text, the messages' text, the ids.

    Parameters
    ----------
    model
        A folder with tokenizer.json, and with chat_template.jinja where --template is not given.
    messages
        A .json file with a list of messages or {"messages": [...], "tools": [...]}, or a .jsonl file of such lines.
    template
        chatml, gemma, llama-2, llama-3, mistral, zephyr, or a Jinja file.
    prompt
        End where the assistant's next answer begins.
    line
        Of the .jsonl file, counted from 1.
    """
    from orrery.text import load_tokenizer
    from orrery.text.chat.messages import read_conversation
    from orrery.text.chat.render import choose_template, load_chat_template
    from orrery.text.chat.spans.sources import authored_spans

    tokenizer = load_tokenizer(model)
    form = choose_template(template, tokenizer) if template is not None else load_chat_template(model, tokenizer)
    conversation, variables = read_conversation(messages, line)
    rendered = form.render(conversation, prompt, **variables)
    parts = authored_spans(form, conversation, prompt, **variables)
    for part in parts:
        print(_shown(part, form.tokenizer))
    if any(part.origin == "text" for part in parts):
        print("text: this template changes with what the messages say, so who wrote it cannot be told")
    print(f"{len(rendered.ids):,} ids: {' '.join(map(str, rendered.ids))}")


def _shown(part: "AuthoredSpan", tokenizer: "Tokenizer") -> str:
    if part.origin == "control":
        return f"control   [{printable(part.text)}]  id {tokenizer.special(part.text)}"
    return f"{part.origin:<8}  {printable(json.dumps(part.text, ensure_ascii=False))}"
