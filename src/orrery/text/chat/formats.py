"""The chat formats that Orrery writes itself, span by span; each equals its file in ``templates/``."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from orrery.errors import DataError, UsageError
from orrery.text.chat.messages import Message, text_of
from orrery.text.chat.spans.encoding import ChatSpan, Control, TextSpan

Turns = list[tuple[str, str]]
Builder = Callable[[Turns, bool], Iterator[ChatSpan]]


def chatml(turns: Turns, prompt: bool) -> Iterator[ChatSpan]:
    """ChatML: ``<|im_start|>role``, a new line, the text, ``<|im_end|>``, a new line."""
    for role, text in turns:
        yield Control("<|im_start|>")
        yield TextSpan(f"{role}\n")
        yield TextSpan(text, role == "assistant")
        yield Control("<|im_end|>", role == "assistant")
        yield TextSpan("\n")
    if prompt:
        yield Control("<|im_start|>")
        yield TextSpan("assistant\n")


def llama3(turns: Turns, prompt: bool) -> Iterator[ChatSpan]:
    """Llama 3: the role between header tokens, an empty line, the stripped text, ``<|eot_id|>``."""
    yield Control("<|begin_of_text|>")
    for role, text in turns:
        yield from _header(role)
        yield TextSpan(text.strip(), role == "assistant")
        yield Control("<|eot_id|>", role == "assistant")
    if prompt:
        yield from _header("assistant")


def llama2(turns: Turns, prompt: bool) -> Iterator[ChatSpan]:
    """Llama 2: ``[INST] question [/INST] answer </s>``; the system's text stands inside the first question."""
    for role, text in _system_in_question(turns, "<<SYS>>\n{}\n<</SYS>>\n\n"):
        if role == "user":
            yield Control("<s>")
            yield TextSpan(f"[INST] {text} [/INST]")
        else:
            yield TextSpan(f" {text.strip()} ", reply=True)
            yield Control("</s>", reply=True)


def mistral(turns: Turns, prompt: bool) -> Iterator[ChatSpan]:
    """Mistral with control tokens: ``[INST] question[/INST] answer</s>``."""
    yield Control("<s>")
    for role, text in _system_in_question(turns, "{}\n\n"):
        if role == "user":
            yield Control("[INST]")
            yield TextSpan(f" {text}")
            yield Control("[/INST]")
        else:
            yield TextSpan(f" {text.strip()}", reply=True)
            yield Control("</s>", reply=True)


def gemma(turns: Turns, prompt: bool) -> Iterator[ChatSpan]:
    """Gemma: turns of ``user`` and ``model`` between turn tokens; the system's text opens the first question."""
    yield Control("<bos>")
    for role, text in _system_in_question(turns, "{}\n\n"):
        yield Control("<start_of_turn>")
        yield TextSpan("user\n" if role == "user" else "model\n")
        yield TextSpan(text.strip(), role == "assistant")
        yield Control("<end_of_turn>", role == "assistant")
        yield TextSpan("\n")
    if prompt:
        yield Control("<start_of_turn>")
        yield TextSpan("model\n")


def zephyr(turns: Turns, prompt: bool) -> Iterator[ChatSpan]:
    """Zephyr: ``<|role|>`` as ordinary text, a new line, the text, ``</s>``, a new line."""
    for role, text in turns:
        yield TextSpan(f"<|{role}|>\n")
        yield TextSpan(text, role == "assistant")
        yield Control("</s>", role == "assistant")
        yield TextSpan("\n")
    if prompt:
        yield TextSpan("<|assistant|>\n")


FORMATS: dict[str, Builder] = {
    "chatml": chatml,
    "gemma": gemma,
    "llama-2": llama2,
    "llama-3": llama3,
    "mistral": mistral,
    "zephyr": zephyr,
}

# Delimiters that are ordinary text in these formats: no tokenizer tells them from a message that contains them.
TAGS: dict[str, tuple[str, ...]] = {
    "llama-2": ("[INST]", "[/INST]", "<<SYS>>", "<</SYS>>"),
    "zephyr": ("<|system|>", "<|user|>", "<|assistant|>"),
}


class ChatFormat:
    """One of Orrery's own formats by name, built without any string that a message could break out of."""

    def __init__(self, name: str) -> None:
        if name not in FORMATS:
            raise UsageError(f"no chat format {name!r}", f"the formats are {', '.join(FORMATS)}")
        self.name = name

    def spans(self, messages: Sequence[Message], prompt: bool, read: Callable[[str], str] = str) -> list[ChatSpan]:
        """Return the spans; ``prompt`` ends them where the assistant's reply begins.

        ``read`` gives a text as the tokenizer sees it. Raises `DataError` for turns in another order than the format
        has, and for text that holds one of its plain delimiters.
        """
        turns = [("system" if m["role"] == "developer" else str(m["role"]), text_of(m)) for m in messages]
        for _, text in turns:
            self._refuse_tags(text, read)
        return list(FORMATS[self.name](turns, prompt))

    def jinja(self) -> str:
        """Return the same format as a template for chat_template.jinja, which other programs read."""
        return (Path(__file__).parent / "templates" / f"{self.name}.jinja").read_text(encoding="utf-8")

    def _refuse_tags(self, text: str, read: Callable[[str], str]) -> None:
        for tag in TAGS.get(self.name, ()):
            # As the tokenizer reads both: a full-width bracket may be the same token as the plain one.
            if tag in text or read(tag) in read(text):
                raise DataError(
                    f"a message holds {tag}, a delimiter that the format {self.name} writes as ordinary text",
                    "take it out, or use a format whose delimiters are control tokens",
                )


def _header(role: str) -> Iterator[ChatSpan]:
    yield Control("<|start_header_id|>")
    yield TextSpan(role)
    yield Control("<|end_header_id|>")
    yield TextSpan("\n\n")


def _system_in_question(turns: Turns, form: str) -> Turns:
    """Move a leading system text into the first question, for formats that know only questions and answers."""
    system = [text for role, text in turns[:1] if role == "system"]
    rest = [(role, text.strip() if role == "user" else text) for role, text in turns[len(system) :]]
    if [role for role, _ in rest] != ["user", "assistant"] * (len(rest) // 2) + ["user"] * (len(rest) % 2) or not rest:
        raise DataError(
            "this chat format needs questions and answers in turn, the question first",
            "join neighbouring messages of one role; a system message stands only at the start",
        )
    first = "".join(form.replace("{}", text.strip()) for text in system) + rest[0][1]
    return [("user", first), *rest[1:]]
