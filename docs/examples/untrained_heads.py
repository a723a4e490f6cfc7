"""Write folders with tiny models whose heads nobody has trained, for pages that show how such models are used.

python docs/examples/untrained_heads.py FOLDER TEXTS makes FOLDER/classes, FOLDER/tags, FOLDER/spans and
FOLDER/masks: BERTs of two layers with random weights, and a tokenizer trained on the lines of TEXTS.
"""

import json
import sys
from pathlib import Path

import torch

from orrery.exchange.saving.save import save_model
from orrery.families import load_family
from orrery.text.tokenizer import Tokenizer
from orrery.text.train import train_tokenizer

HEADS = {
    "classes": ("SequenceClassification", ["contradiction", "neutral", "entailment"]),
    "tags": ("TokenClassification", ["O", "B-PLACE", "I-PLACE"]),
    "spans": ("QuestionAnswering", ["LABEL_0", "LABEL_1"]),
    "masks": ("MaskedLM", ["LABEL_0", "LABEL_1"]),
}
SIZES = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}


def tokenizer_of(texts: Path) -> Tokenizer:
    """Return WordPiece with BERT's special tokens around every text."""
    lines = texts.read_text(encoding="utf-8").splitlines()
    definition = json.loads(json.dumps(train_tokenizer("wordpiece", lines, 300).definition))
    vocabulary, special = definition["model"]["vocab"], ["[CLS]", "[SEP]", "[MASK]", "[PAD]"]
    definition["added_tokens"] = []
    for token in special:
        vocabulary[token] = len(vocabulary)
        definition["added_tokens"].append({
            "id": vocabulary[token], "content": token, "single_word": False, "lstrip": False, "rstrip": False,
            "normalized": False, "special": True,
        })  # fmt: skip
    ends = [[token, vocabulary[token]] for token in ("[SEP]", "[CLS]")]
    definition["post_processor"] = {"type": "BertProcessing", "sep": ends[0], "cls": ends[1]}
    return Tokenizer(json.dumps(definition))


def main(folder: Path, texts: Path) -> None:
    """Write the folders."""
    tokenizer, family = tokenizer_of(texts), load_family("bert")
    for name, (architecture, labels) in HEADS.items():
        config = {**SIZES, "vocab_size": tokenizer.size, "architectures": [f"BertFor{architecture}"]}
        config["id2label"] = {str(number): label for number, label in enumerate(labels)}
        torch.manual_seed(1)
        model = family.spec(config).build(0).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.normal_(std=0.3)
        save_model(folder / name, model, "bert", config, tokenizer)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
