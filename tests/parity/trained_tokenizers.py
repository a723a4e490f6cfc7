"""The tokenizers of the tests of pipelines, trained; `recorded_pipelines.py` stores them."""

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

SENTENCES = [
    "The cat sat on the mat, and the dog sat on the log near Berlin.",
    "Ada Lovelace wrote to Charles Babbage in London about his engine!",
    "Äpfel und Öl kosten 3 Euro; naïve café owners in 日本 agree 🙂.",
    "A long winter followed a short summer, while nobody was looking.",
]
"""What the tokenizers are trained on."""


def wordpiece() -> tokenizers.Tokenizer:
    """Return BERT's kind of tokenizer, in lower case and without accents."""
    made = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece(prefix="##")
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    made.train_from_iterator(SENTENCES, trainers.WordPieceTrainer(vocab_size=150, special_tokens=special))
    slots = [(name, made.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=slots
    )
    return made


def byte_level(framed: bool) -> tokenizers.Tokenizer:
    """Return RoBERTa's kind of tokenizer, or GPT-2's, which puts nothing around a text."""
    made = tokenizers.Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=330, special_tokens=special[:4], initial_alphabet=alphabet)
    made.train_from_iterator(SENTENCES, trainer)
    made.add_special_tokens([tokenizers.AddedToken("<mask>", lstrip=True, special=True)])
    made.post_processor = processors.ByteLevel(trim_offsets=True)
    if framed:
        ends = [(name, made.token_to_id(name)) for name in ("</s>", "<s>")]
        made.post_processor = processors.RobertaProcessing(*ends, trim_offsets=True, add_prefix_space=False)
    return made


def unigram(frame: str) -> tokenizers.Tokenizer:
    """Return SentencePiece's kind of tokenizer, with the special tokens of T5 (``A </s>``) or of DeBERTa."""
    made = tokenizers.Tokenizer(models.Unigram())
    made.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(tokenizers.Regex(" {2,}"), " ")])
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    special = ["[PAD]", "</s>", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.UnigramTrainer(vocab_size=160, special_tokens=special, unk_token="[UNK]")
    made.train_from_iterator(SENTENCES, trainer)
    used = [name for name in ("</s>", "[CLS]", "[SEP]") if name in frame]
    slots = [(name, made.token_to_id(name)) for name in used]
    pair = "$A </s> $B </s>" if frame.endswith("</s>") else "[CLS] $A [SEP] $B:1 [SEP]:1"
    made.post_processor = processors.TemplateProcessing(single=frame, pair=pair, special_tokens=slots)
    return made


def all_of_them() -> dict[str, tokenizers.Tokenizer]:
    """Return the tokenizers by name."""
    return {
        "wordpiece": wordpiece(),
        "bytes": byte_level(False),
        "framed_bytes": byte_level(True),
        "framed_pieces": unigram("[CLS] $A [SEP]"),
        "ended_pieces": unigram("$A </s>"),
    }
