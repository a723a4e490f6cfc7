"""Folders of tiny models as they are served: with a chat template that takes tools, with heads, with sources."""

import json
from pathlib import Path
from typing import Any

import torch

from chat_published import published, tokenizer_of
from orrery.exchange.saving.own import save_own
from orrery.exchange.saving.save import save_model
from orrery.families import load_family
from orrery.models.decoder import Decoder
from orrery.nn.heads import Last, Pooler, SequenceHead
from orrery.text.chat.folder import FILE
from orrery.text.tokenizer import Tokenizer
from tiny_models import TOKENIZER, randomised, tiny

CHAT = "qwen-2.5"
CONTEXT = 512


def filling_folder(folder: Path) -> Path:
    """Save a llama whose tokenizer has the tokens with which Qwen2.5-Coder fills in what is missing."""
    names = [f"<|fim_{part}|>" for part in ("prefix", "middle", "suffix", "pad")]
    return chat_folder(folder, tokenizer=with_tokens(tokenizer_of(CHAT), names))


def with_tokens(tokenizer: Tokenizer, names: list[str]) -> Tokenizer:
    """Return the tokenizer with more added tokens, which are not called special, as in Qwen's files."""
    definition = json.loads(json.dumps(tokenizer.definition))
    for place, name in enumerate(names):
        flags = dict.fromkeys(("special", "normalized", "single_word", "lstrip", "rstrip"), False)
        definition["added_tokens"].append({"id": tokenizer.size + place, "content": name, **flags})
    return Tokenizer(json.dumps(definition), tokenizer.roles)


def chat_folder(
    folder: Path, context: int = CONTEXT, layers: int = 2, tokenizer: Tokenizer | None = None, chat: str = CHAT
) -> Path:
    """Save a llama that chats in the format of a published model, and return its folder."""
    tokenizer = tokenizer or tokenizer_of(chat)
    config = {
        "hidden_size": 32,
        "intermediate_size": 56,
        "num_hidden_layers": layers,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": context,
        "vocab_size": tokenizer.size,
        "eos_token_id": tokenizer.special("end"),
    }
    model = randomised(load_family("llama").spec(config).build(0).to(torch.float64).eval()).to(torch.float32)
    save_model(folder, model, "llama", config, tokenizer)
    (folder / FILE).write_text(published()[chat].source, encoding="utf-8")
    return folder


def headed_folder(folder: Path, **heads: Any) -> Path:
    """Save a decoder with heads, in our own layout: no published one can hold it."""
    base = tiny("llama", torch.float32).spec
    spec = Decoder.Spec(
        width=base.width, context=base.context, embed=base.embed, stack=base.stack, head=base.head, heads=heads
    )
    save_own(folder, randomised(spec.build().eval()), TOKENIZER)
    return folder


def last_head(*names: str) -> SequenceHead.Spec:
    """Return a head for classes of these names, which reads the last token."""
    return SequenceHead.Spec(labels=len(names), pooler=Pooler.Spec(pool=Last()), names=names)
