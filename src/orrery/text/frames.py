"""Special tokens around texts, by family: BERT's ``[CLS] A [SEP] B [SEP]``, T5's ``A </s>``, Llama's ``<s> A``.

They stand in the post-processor of a tokenizer.json, so that every program that reads the file adds the same.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orrery.errors import ModelFileError

Rule = Mapping[str, Any]
Find = Callable[[str], int | None]
Slot = tuple[str, int]
"""A text (A or B) or the spelling of a token, and the token type it belongs to."""
Templates = tuple[Sequence[Slot], Sequence[Slot]]
"""What stands around a text, and around two."""

_ALONE: tuple[Slot, ...] = (("A", 0),)
_BESIDE: tuple[Slot, ...] = (("A", 0), ("B", 1))
_BERT = (("[CLS]", 0), ("A", 0), ("[SEP]", 0)), (("[CLS]", 0), ("A", 0), ("[SEP]", 0), ("B", 1), ("[SEP]", 1))
_ROBERTA = (
    (("<s>", 0), ("A", 0), ("</s>", 0)),
    (("<s>", 0), ("A", 0), ("</s>", 0), ("</s>", 0), ("B", 0), ("</s>", 0)),
)
# The class of a tokenizer_config.json, without "Tokenizer" or "Fast": what stands before and after each text.
_ENDS = {
    "T5": ("", "</s>"),
    "MT5": ("", "</s>"),
    "Siglip": ("", "</s>"),
    "Llama": ("<s>", ""),
    "CodeLlama": ("<s>", ""),
    "Gemma": ("<bos>", ""),
}
GPT2_END = "<|endoftext|>"
_LIKE_BERT = ("Albert", "DebertaV2", "BigBird")
RENUMBERED = ("Barthez", "M2M100", "XGLM", "Marian", "PLBart")
"""Classes that number pieces otherwise than their SentencePiece model, in ways that are not known here."""


@dataclass(frozen=True)
class Framed:
    """The ids of a text or of two with the special tokens of the family, and for each the token type it belongs to.

    ``texts`` says of each whether it is of the first text (0), of the second (1) or a special token (-1).
    """

    ids: list[int]
    token_types: list[int]
    texts: list[int]


class Frame:
    """What a tokenizer.json adds around a text and around two; nothing where it says nothing."""

    def __init__(self, definition: Mapping[str, Any]) -> None:
        """Read the post-processor. Raises `ModelFileError` for one of an unknown kind, or several that add tokens."""
        steps = [step for step in _steps(definition.get("post_processor")) if step.get("type") != "ByteLevel"]
        if len(steps) > 1:
            raise ModelFileError("the post-processor of tokenizer.json adds special tokens twice", "export it again")
        self._single, self._pair, self._ids = _read(steps[0]) if steps else (_ALONE, _BESIDE, {})

    def around(self, first: Sequence[int], second: Sequence[int] | None = None) -> Framed:
        """Return the ids of a text, or of two, with the special tokens."""
        parts: dict[str, Sequence[int]] = {**self._ids, "A": first, "B": second or []}
        slots = self._single if second is None else self._pair
        ids = [id for name, _ in slots for id in parts[name]]
        texts = [{"A": 0, "B": 1}.get(name, -1) for name, _ in slots for _ in parts[name]]
        return Framed(ids, [token_type for name, token_type in slots for _ in parts[name]], texts)


def of_bert(find: Find, named: Mapping[str, str] | None = None) -> Rule | None:
    """Return BERT's post-processor, where the vocabulary has its tokens.

    Args:
        find: returns the id of a token, if the vocabulary has it.
        named: what a tokenizer_config.json calls ``cls_token`` and ``sep_token``, where that is not the usual.
    """
    return _rule(_renamed(_BERT, named or {}), find)


def of_roberta(find: Find, named: Mapping[str, str] | None = None) -> Rule | None:
    """Return RoBERTa's and BART's post-processor, where the vocabulary has their tokens: GPT-2's has not."""
    return _rule(_renamed(_ROBERTA, named or {}), find) if find("<mask>") is not None else None


def _renamed(templates: Templates, named: Mapping[str, str]) -> Templates:
    """Return templates with the tokens that have these names: the first opens texts, the last ends them."""
    (first, _), (last, _) = templates[0][0], templates[0][-1]
    names = {first: named.get("cls_token", first), last: named.get("sep_token", last)}
    single, pair = ([(names.get(slot, slot), kind) for slot, kind in template] for template in templates)
    return single, pair


def of_sentencepiece(config: Mapping[str, Any], find: Find) -> Rule | None:
    """Return the post-processor of a family with a SentencePiece model, which its tokenizer_config.json tells.

    Raises `ModelFileError` for a family that numbers the pieces otherwise than its model does.
    """
    name = class_of(config)
    if name in RENUMBERED:
        raise ModelFileError(
            f"{name} numbers its pieces otherwise than its SentencePiece model",
            "put the tokenizer.json of the model into the folder: it holds the numbers",
        )
    if name in _LIKE_BERT:
        return _rule(_BERT, find)
    before, after = _ENDS.get(name, ("", ""))
    said = _with_usual(config, *(("<bos>", "<eos>") if name == "Gemma" else ("<s>", "</s>")))
    return _of_ends(_asked(said, "bos", before), _asked(said, "eos", after), find)


def of_gpt2(config: Mapping[str, Any], find: Find) -> Rule | None:
    """Return the post-processor that a tokenizer_config.json asks GPT-2's tokenizer for; by itself it adds nothing."""
    said = _with_usual(config, GPT2_END, GPT2_END)
    return _of_ends(_asked(said, "bos", ""), _asked(said, "eos", ""), find)


def _with_usual(config: Mapping[str, Any], start: str, end: str) -> Mapping[str, Any]:
    """Return a configuration with the names that a family's tokens have where it gives none."""
    said = {key: value for key, value in config.items() if value is not None}
    return {"bos_token": start, "eos_token": end, **said}


def _of_ends(before: str, after: str, find: Find) -> Rule | None:
    """Return the post-processor with a token before and one after each text; an empty one is none."""
    left, right = ([(token, 0)] if token else [] for token in (before, after))
    single = (*left, ("A", 0), *right)
    return _rule((single, (*single, *left, ("B", 0), *right)), find) if before or after else None


def class_of(config: Mapping[str, Any]) -> str:
    """Return the class of a tokenizer_config.json, without "Tokenizer" or "Fast"."""
    return str(config.get("tokenizer_class") or "").removesuffix("Fast").removesuffix("Tokenizer")


def of_slots(single: Sequence[str], pair: Sequence[str], find: Find) -> Rule | None:
    """Return a post-processor of one token type: A and B are texts, all else tokens; None where one has no id."""
    return _rule(([(slot, 0) for slot in single], [(slot, 0) for slot in pair]), find)


def _asked(config: Mapping[str, Any], role: str, default: str) -> str:
    """Return the token that ``add_bos_token`` or ``add_eos_token`` asks for; the family's where it is not said."""
    adds, token = config.get(f"add_{role}_token"), config.get(f"{role}_token")
    token = token.get("content") if isinstance(token, Mapping) else token
    wanted = adds if isinstance(adds, bool) else bool(default)
    return "" if not wanted else token if isinstance(token, str) else default


def _rule(templates: Templates, find: Find) -> Rule | None:
    """Return templates as a post-processor; None where a token of theirs is not in the vocabulary."""
    names = [name for name in dict.fromkeys(name for slots in templates for name, _ in slots) if name not in ("A", "B")]
    ids = {name: find(name) for name in names}
    if None in ids.values():
        return None

    def spelt(slots: Sequence[Slot]) -> list[dict[str, Any]]:
        kinds = [("Sequence" if name in ("A", "B") else "SpecialToken", name, token_type) for name, token_type in slots]
        return [{kind: {"id": name, "type_id": token_type}} for kind, name, token_type in kinds]

    tokens = {name: {"id": name, "ids": [id], "tokens": [name]} for name, id in ids.items()}
    single, pair = map(spelt, templates)
    return {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": tokens}


def _read(rule: Rule) -> tuple[Sequence[Slot], Sequence[Slot], dict[str, list[int]]]:
    kind = rule.get("type")
    if kind == "TemplateProcessing":
        ids = {name: list(token["ids"]) for name, token in rule["special_tokens"].items()}
        return _slots(rule["single"]), _slots(rule["pair"]), ids
    if kind not in ("BertProcessing", "RobertaProcessing"):
        raise ModelFileError(f"the post-processor of tokenizer.json is of the unknown kind {kind!r}", "export it again")
    names = ("[CLS]", "[SEP]") if kind == "BertProcessing" else ("<s>", "</s>")
    single, pair = _BERT if kind == "BertProcessing" else _ROBERTA
    return single, pair, {name: [int(rule[key][1])] for name, key in zip(names, ("cls", "sep"), strict=True)}


def _slots(template: Sequence[Mapping[str, Mapping[str, Any]]]) -> list[Slot]:
    return [(str(slot["id"]), int(slot["type_id"])) for part in template for slot in part.values()]


def _steps(rule: Rule | None) -> Iterator[Rule]:
    """Yield a post-processor, or those of a sequence."""
    if rule is not None:
        inner = rule.get("processors")
        yield from [rule] if inner is None else [step for one in inner for step in _steps(one)]
