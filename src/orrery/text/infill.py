"""Fill in the middle: where the text before and the text behind a gap stand among the tokens that a model learned."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from orrery.text.tokenizer import Tokenizer

BEFORE, BEHIND = "before", "behind"
_ENDS = ("<|endoftext|>", "<|fim_pad|>", "<fim_pad>", "<|file_sep|>", "<file_sep>", "<EOT>", "▁<EOT>")
"""What models write behind what they have filled in, beside the end that their files name."""
FORMS = (
    ("<|fim_prefix|>", BEFORE, "<|fim_suffix|>", BEHIND, "<|fim_middle|>"),  # Qwen2.5-Coder, CodeGemma
    ("<fim_prefix>", BEFORE, "<fim_suffix>", BEHIND, "<fim_middle>"),  # StarCoder, StarCoder 2, Granite
    ("<fim-prefix>", BEFORE, "<fim-suffix>", BEHIND, "<fim-middle>"),  # SantaCoder
    ("<｜fim▁begin｜>", BEFORE, "<｜fim▁hole｜>", BEHIND, "<｜fim▁end｜>"),  # noqa: RUF001 - DeepSeek-Coder
    ("▁<PRE>", BEFORE, "▁<SUF>", BEHIND, "▁<MID>"),  # Code Llama
    ("[SUFFIX]", BEHIND, "[PREFIX]", BEFORE),  # Codestral
)
"""How published models were trained to fill in (Bavarian et al. 2022): control tokens around the two texts."""


@final
@dataclass(frozen=True)
class Infill:
    """The form of one tokenizer.

    Attributes:
        parts: ids of control tokens, and the names of the two texts where they stand.
        ends: ids that end what is filled in.
    """

    parts: tuple[int | str, ...]
    ends: frozenset[int]

    def around(self, before: Sequence[int], behind: Sequence[int]) -> list[int]:
        """Return the prompt whose continuation stands between the two."""
        texts = {BEFORE: before, BEHIND: behind}
        ids: list[int] = []
        for part in self.parts:
            ids += texts[part] if isinstance(part, str) else [part]
        return ids


def infill_of(tokenizer: Tokenizer) -> Infill | None:
    """Return the form whose control tokens the tokenizer has; none where it has no such form.

    They are added tokens; Qwen's files do not call them special.
    """
    added: dict[str, int] = {entry["content"]: entry["id"] for entry in tokenizer.definition.get("added_tokens", ())}
    for form in FORMS:
        own = [part for part in form if part not in (BEFORE, BEHIND)]
        if all(part in added for part in own):
            parts = tuple(added[part] if part in own else part for part in form)
            return Infill(parts, frozenset(added[part] for part in (*own, *_ENDS) if part in added))
    return None
