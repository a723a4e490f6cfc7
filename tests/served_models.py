"""Folders of tiny models as they are served: with a chat template that takes tools, with heads, with sources."""

from pathlib import Path

import torch

from chat_published import published, tokenizer_of
from orrery.families import load_family
from orrery.saving.save import save_model
from orrery.text.chat.folder import FILE
from tiny_models import randomised

CHAT = "qwen-2.5"
CONTEXT = 512


def chat_folder(folder: Path, context: int = CONTEXT, layers: int = 2) -> Path:
    """Save a llama that chats in Qwen's format, and return its folder."""
    tokenizer = tokenizer_of(CHAT)
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
    (folder / FILE).write_text(published()[CHAT].source, encoding="utf-8")
    return folder
