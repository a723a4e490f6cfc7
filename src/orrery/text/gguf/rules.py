"""The pre-tokenizers of llama.cpp by name: a GGUF file names the rule that cuts a text before pieces are merged.

Source of the names: https://github.com/ggml-org/llama.cpp, ``convert_hf_to_gguf_update.py`` and ``llama-vocab.cpp``.
The rules are those of the published ``tokenizer.json`` files, which llama.cpp writes for an engine without cases.
"""

from dataclasses import dataclass
from typing import Any

from orrery.text.chunks import BYTES, GPT2

_SHORT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_WORD = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_MARKED_WORD = r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+"
_MARKS = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
_BLANKS = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_CAMEL = tuple(rf"[^\r\n\p{{L}}\p{{N}}]?{word}" for word in (f"{_UPPER}*{_LOWER}+", f"{_UPPER}+{_LOWER}*"))
_PATHS = r" ?[^\s\p{L}\p{N}]+[\r\n/]*"
_STOPS = r" ?[^(\s|[.,!?…。，、।۔،])]+"  # noqa: RUF001 - the stops of many scripts
_HAN = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
_CASED = (
    "41-5A 61-7A B5 C0-D6 D8-F6 F8-1BA 1BC-1BF 1C4-293 295-2AF 370-373 376 377 37B-37D 37F 386 388-38A 38C 38E-3A1 "
    "3A3-3F5 3F7-481 48A-52F 531-556 10A0-10C5 13A0-13F5 13F8-13FD 1C90-1CBA 1CBD-1CBF 1D00-1D2B 1D6B-1D77 1D79-1D9A "
    "1E00-1F15 1F18-1F1D 1F20-1F45 1F48-1F4D 1F50-1F57 1F59 1F5B 1F5D 1F5F-1F7D 1F80-1FB4 1FB6-1FBC 1FBE 1FC2-1FC4 "
    "1FC6-1FCC 1FD0-1FD3 1FD6-1FDB 1FE0-1FEC 1FF2-1FF4 1FF6-1FFC 2102 2107 210A-2113 2115 2119-211D 2124 2126 2128 "
    "212A-212D 212F-2134 2139 213C-213F 2145-2149 214E 2183 2184 2C00-2C7B 2C7E-2CE4 2CEB-2CEE 2CF2 2CF3 A640-A66D "
    "A680-A69B A722-A76F A771-A787 A78B-A78E AB70-ABBF FB00-FB06 FB13-FB17 FF21-FF3A FF41-FF5A 10400-1044F 104B0-104D3 "
    "104D8-104FB 10C80-10CB2 10CC0-10CF2 118A0-118DF 1E900-1E943"
)
"""The letters of DeepSeek's first tokenizer, those that have case, as its file lists them."""
_PUNCTUATED = "21-2F 3A-7E FF01-FF0F FF1A-FF5E 2018-201F 3000-3002"
_ASIAN = "[一-龥ࠀ-一가-퟿]+"
_DEEPSEEK = (
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
    rf"| ?[\p{{P}}\p{{S}}]+[\r\n]*|{_BLANKS}"
)


def _any(*patterns: str) -> str:
    return "|".join(patterns)


def _among(ranges: str) -> str:
    """Return the class of the characters in ranges of hexadecimal numbers."""
    ends = ([chr(int(end, 16)) for end in part.split("-")] for part in ranges.split())
    return f"[{''.join('-'.join(pair) for pair in ends)}]"


@dataclass(frozen=True)
class CuttingRule:
    """How a text is cut.

    Attributes:
        cuts: patterns, each of which cuts what the one before has left; none for GPT-2's own rule.
        whole: a word that is a token is taken whole.
        starts: a text begins with the start token where the file says nothing of it.
        composed: characters are composed before (NFC), which llama.cpp leaves away.
    """

    cuts: tuple[str, ...] = ()
    whole: bool = False
    starts: bool = False
    composed: bool = False

    @property
    def definition(self) -> Any:
        """The pre-tokenizer of a tokenizer.json."""
        if not self.cuts:
            return {**GPT2, "trim_offsets": True}
        steps = [
            {"type": "Split", "pattern": {"Regex": cut}, "behavior": "Isolated", "invert": False} for cut in self.cuts
        ]
        return {"type": "Sequence", "pretokenizers": [*steps, {**BYTES, "trim_offsets": True}]}


_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_LLAMA3 = _any(_SHORT, _WORD, r"\p{N}{1,3}", _MARKS, _BLANKS)
_QWEN2 = _any(_SHORT, _WORD, r"\p{N}", _MARKS, _BLANKS)
_QWEN35 = _any(_SHORT, _MARKED_WORD, r"\p{N}", r" ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*", _BLANKS)
_GPT4O = _any(*(f"{word}{_SHORT}?" for word in _CAMEL), r"\p{N}{1,3}", _PATHS, _BLANKS)
_TEKKEN = _any(*_CAMEL, r"\p{N}", _PATHS, _BLANKS)
_SEED = _any(_SHORT, _WORD, r"\p{N}", r" ?[^\s\p{L}\p{N}\r\n]+", _BLANKS)
_BAILING = _any(
    r"'(?i:[sdmt]|ll|ve|re)", r"[^\r\n\p{L}\p{N}]?+\p{L}+", r"\p{N}", r" ?[^\s\p{L}\p{N}]++[\r\n]*",
    r"\s*[\r\n]|\s+(?!\S)|\s+",
)  # fmt: skip
_EXAONE = _any(
    _SHORT, r"[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+", r"\p{N}", r" ?[^\s\p{L}\p{N}]+[\r\n/]?",
    r"\s*[\r\n]|\s+(?!\S)|\s+",
)  # fmt: skip
_MINICPM5 = _any(_SHORT, _WORD, r"\p{N}+", _MARKS, _BLANKS)
_JAIS2 = _any(
    _SHORT, _WORD, r"\p{N}{1,3}", _MARKS, r"\s*[\r\n]+", *(rf"\s{{{2**n}}}(?!\S)" for n in range(9, 1, -1)),
    r"\s{1,2}(?!\S)", r"\s",
)  # fmt: skip
_SPARK = _DEEPSEEK.replace(rf"[\r\n]*|{_BLANKS}", r"|[\r\n]|\s+(?!\S)|\s+")
_YOUTU_SCRIPTS = (
    "[\uac00-\ud7a3\u3131-\u318e]+|[！…“”‘’—：；，\u3001-\u303f\ufe30-\ufe4f]+"  # noqa: RUF001 - its own marks
    "|[\u3105-\u312f]+|[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
)
_YOUTU = _any(*(f"{word}{_SHORT}?" for word in _CAMEL), r"\p{N}", _PATHS, _BLANKS)
_NOT_HAN = tuple(rf"(?:(?!\p{{Han}}){letter})" for letter in (_UPPER, _LOWER))
_KIMI = _any(
    r"\p{Han}+",
    rf"[^\r\n\p{{L}}\p{{N}}]?{_NOT_HAN[0]}*{_NOT_HAN[1]}+{_SHORT}?",
    rf"[^\r\n\p{{L}}\p{{N}}]?{_NOT_HAN[0]}+{_NOT_HAN[1]}*{_SHORT}?",
    r"\p{N}{1,3}", _MARKS, _BLANKS,
)  # fmt: skip
_PUNCTUATION, _THREE = r"[\p{P}\$\+<=>\^~\|`]+", "[0-9][0-9][0-9]"

_NAMES: dict[str, CuttingRule] = {
    "gpt-2 phi-2 mpt olmo jais trillion granite-docling jina-es jina-de jina-v2-es jina-v2-de gigachat a.x-4.0 mellum "
    "modern-bert exaone4 jina-v1-en jina-v2-code roberta-bpe": CuttingRule(),
    "smollm starcoder refact command-r codeshell exaone minerva-7b mellum2": CuttingRule((r"\p{N}", _GPT2)),
    "llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano": CuttingRule(
        (_LLAMA3,), True, True
    ),
    "dbrx smaug-bpe chatglm-bpe": CuttingRule((_LLAMA3,)),
    "glm4 glm5": CuttingRule((_LLAMA3,), True),
    "minicpm5": CuttingRule((r"\p{N}{1,3}", _MINICPM5), True),
    "jais-2": CuttingRule((_JAIS2,)),
    "qwen2 deepseek-r1-qwen kormo f2llmv2 megrez": CuttingRule((_QWEN2,), composed=True),
    "stablelm2 hunyuan solar-open grok-2": CuttingRule((_QWEN2,)),
    "qwen35": CuttingRule((_QWEN35,), composed=True),
    "gpt-4o llama4 kanana2 minimax-m2 talkie": CuttingRule((_GPT4O,)),
    "granite-embed-multi-97m": CuttingRule((_GPT4O,), True),
    "tiny_aya cohere2moe": CuttingRule((r"\d{1,3}(?=(?:\d{3})*\b)", _GPT4O)),
    "kimi-k2": CuttingRule((_KIMI,)),
    "youtu": CuttingRule((_YOUTU_SCRIPTS, _YOUTU), True),
    "tekken": CuttingRule((_TEKKEN,), True, True),
    "deepseek-v3 hunyuan-dense joyai-llm hy_v4": CuttingRule((r"\p{N}{1,3}", _HAN, _DEEPSEEK)),
    "spark2_5": CuttingRule((r"\p{N}{1,3}", _HAN, _SPARK, r"\p{N}")),
    "deepseek-coder": CuttingRule((r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _ASIAN, r"\p{N}")),
    "deepseek-llm": CuttingRule(
        (r"[\r\n]", rf"\s?{_among(_CASED)}+", rf"\s?{_among(_PUNCTUATED)}+", r"\s+$", _ASIAN, r"\p{N}")
    ),
    "falcon": CuttingRule((_PUNCTUATION, _GPT2, _THREE)),
    "default": CuttingRule((r"[\p{P}\$\+<=>\^~\|]+", _GPT2, r"\p{N}+", _THREE)),
    "bloom poro-chat gpt3-finnish": CuttingRule((_STOPS,)),
    "viking": CuttingRule((_STOPS, r"\p{N}")),
    "seed-coder": CuttingRule((_SEED,)),
    "ufakzeka": CuttingRule((_any(_WORD, r"\p{N}", _MARKS, _BLANKS),)),
    "laguna": CuttingRule((r"[^\n]+|[\n]+", _QWEN2)),
    "bailingmoe bailingmoe2 llada-moe": CuttingRule((_BAILING,)),
    "exaone-moe": CuttingRule((_EXAONE,)),
    "superbpe": CuttingRule((r"\p{N}+", r"(?=(\d{3})+(?!\d))")),
}
RULES: dict[str, CuttingRule] = {name: rule for names, rule in _NAMES.items() for name in names.split()}
"""By llama.cpp's name; of several names for one rule the first is the one to write."""
