"""Which family's tokenizer a published vocabulary is of, and which families' rules are known for each kind of file.

Most rules of a family stand in the class of its tokenizer and in no file: how words are cut, what is put around a text.
Read by another family's rules, a vocabulary gives other ids.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orrery.errors import ModelFileError
from orrery.text.frames import RENUMBERED, class_of
from orrery.text.published import ended
from orrery.text.published.renumbered import NUMBERINGS

LIKE_ROBERTA = ("Roberta", "Bart", "Longformer", "LED", "Mvp")
MERGES: tuple[str, ...] = ("GPT2", "CodeGen", "Qwen2", "Qwen3_5", "Deberta", *LIKE_ROBERTA, *ended.CONTROL)
"""Classes that are read from vocab.json and merges.txt."""
WORD_PIECES = (
    "Bert", "DistilBert", "Electra", "MobileBert", "SqueezeBert", "ConvBert", "LayoutLM", "Lxmert", "Retribert",
    "Realm", "DPRContextEncoder", "DPRQuestionEncoder", "DPRReader", "MPNet",
)  # fmt: skip
"""Classes that are read from vocab.txt."""
SENTENCEPIECE = (
    "T5", "MT5", "Siglip", "Llama", "CodeLlama", "Gemma", "Albert", "DebertaV2", "BigBird", "Nllb",
    *NUMBERINGS, *RENUMBERED,
)  # fmt: skip
"""Classes that are read from a SentencePiece model; the last ones are refused with the reason where it is read."""
UNSAID = ("", "PreTrained", "TokenizersBackend", "Auto")
"""Names that say nothing of the rules."""
_OTHERS = (
    *ended.CONTROL, "Qwen3_5", "CTRL", "XLM", "Flaubert", "BioGpt", "Whisper", "Blenderbot", "XLNet", "RemBert", "FNet",
    "Speech2Text", "RoFormer", "Tapas", "Splinter", "ProphetNet", "Funnel", "Esm", "Luke", "LayoutLMv3", "GPTSw3",
    "BertGeneration", "SeamlessM4T", *RENUMBERED,
)  # fmt: skip
"""Classes of families that are known by their model_type, and whose vocabularies are not read."""
_NEVER_PUBLISHED = ("Marian", "M2M100")
"""Classes of which no tokenizer.json is published."""
_OTHERWISE = {
    "BertJapanese": "lets MeCab, Sudachi or Juman find the words",
    "Phobert": "reads words that VnCoreNLP has found",
    "Rwkv": "takes the longest piece that fits at each byte",
}
"""What classes do that no tokenizer.json says, by their names."""
_FAMILIES = {
    "umt5": "T5", "xlmrobertaxl": "XLMRoberta", "mistral": "Llama", "mixtral": "Llama", "gemma2": "Gemma",
    "gemma3text": "Gemma", "cliptextmodel": "CLIP", "nllbmoe": "Nllb",
    **dict.fromkeys(("qwen2moe", "qwen2vl", "qwen25vl", "qwen25omni", "qwen2audio", "qwen3", "qwen3moe", "qwen3next",
                     "qwen3vl", "qwen3vlmoe", "qwen3omnimoe"), "Qwen2"),
    **dict.fromkeys(("qwen35", "qwen35text", "qwen35moe", "qwen35moetext"), "Qwen3_5"),
}  # fmt: skip
"""Families that have another's tokenizer, by their model_type."""


def sentencepiece_class(tokenizer: Mapping[str, Any], model: Mapping[str, Any]) -> str:
    """Return the class that reads a SentencePiece model, as `class_said` does.

    A class of a folder's own code (InternLM's, Baichuan's) says with ``add_bos_token`` what it puts before a text: the
    model holds the other rules.

    Raises:
        ModelFileError: a class whose rules are not known.
    """
    name = class_of(tokenizer)
    own_code = "AutoTokenizer" in (tokenizer.get("auto_map") or {}) and name not in (*SENTENCEPIECE, *_OTHERS)
    if own_code and isinstance(tokenizer.get("add_bos_token"), bool):
        return ""
    return class_said(tokenizer, model, SENTENCEPIECE)


def class_said(tokenizer: Mapping[str, Any], model: Mapping[str, Any], known: tuple[str, ...]) -> str:
    """Return the class, without "Tokenizer" or "Fast", that is read from a file beside configurations; "" if unsaid.

    As in transformers, the class of tokenizer_config.json counts for more than that of config.json, and that for more
    than its model_type.

    Args:
        tokenizer: tokenizer_config.json.
        model: config.json.
        known: the classes that are read from this kind of file.

    Raises:
        ModelFileError: a class whose rules are not known for the file.
    """
    for file, config in (("tokenizer_config.json", tokenizer), ("config.json", model)):
        if (name := class_of(config)) not in UNSAID:
            if name not in known:
                raise _unknown(name, known, f"; where it cuts as {known[0]} does, take tokenizer_class out of {file}")
            return name
    family = str(model.get("model_type") or "").replace("-", "").replace("_", "").lower()
    name = {one.lower(): one for one in (*_OTHERS, *known)}.get(family) or _FAMILIES.get(family, "")
    if name in _OTHERS and name not in known:
        raise _unknown(name, known, "")
    return name if name in known else ""


def of_rwkv(file: Path) -> str:
    """Refuse RWKV's own list of pieces, by what is done with it. Raises `ModelFileError`."""
    raise _unknown("Rwkv", (), "")


def without_rules(subject: str, way: str = "") -> ModelFileError:
    """Return the error of a vocabulary whose rules are not known; ``way`` is another way out than a tokenizer.json."""
    return ModelFileError(
        f"{subject} for cutting texts stand in no file beside it",
        f"put the model's tokenizer.json into the folder, which holds them{way}",
    )


def _unknown(name: str, known: tuple[str, ...], way: str) -> ModelFileError:
    if name in _NEVER_PUBLISHED:
        return ModelFileError(
            f"it is a vocabulary of {name}Tokenizer, which numbers the pieces of SentencePiece by a list of its own",
            "put its SentencePiece model beside: source.spm of Marian, sentencepiece.bpe.model of M2M-100",
        )
    if name in _OTHERWISE:
        way = "; those of the Pile have 20B_tokenizer.json" if name == "Rwkv" else way
        return ModelFileError(
            f"it is a vocabulary of {name}Tokenizer, which {_OTHERWISE[name]}: that is not done here",
            f"take a model that has a tokenizer.json{way}",
        )
    read = ", ".join(one for one in known if one not in RENUMBERED)
    return without_rules(f"it is a vocabulary of {name}Tokenizer, whose rules", f"; known without it: {read}{way}")
