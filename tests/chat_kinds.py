"""Tokenizers of every kind with the control tokens of any chat format, and folders as they are published."""

import json
from functools import cache
from pathlib import Path

import tokenizers
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, trainers

from chat_toy import CONTROLS, CORPUS, ROLES, chat_tokenizer, prepending_first
from orrery.text.tokenizer import Tokenizer

KINDS = ("gpt2", "bert", "sentencepiece", "unigram", "nfkc", "lower", "plain added", "plain nfkc", "stripping", "first")


@cache
def kind_of_tokenizer(kind: str, name: str) -> Tokenizer:
    """Return a tokenizer of this kind with the control tokens of this chat format.

    The kinds from ``nfkc`` on are byte-level or SentencePiece-like with a normaliser that maps look-alikes onto the
    control tokens, control tokens that their file calls ordinary, ones that take white space with them, and a blank
    before the whole only.
    """
    make = {
        "gpt2": lambda: chat_tokenizer(name, "bytes"),
        "bert": lambda: _bert(name),
        "sentencepiece": lambda: chat_tokenizer(name, "sentencepiece"),
        "unigram": lambda: _unigram(name),
        "nfkc": lambda: _changed(chat_tokenizer(name, "bytes"), normalizers.NFKC(), normalized=True),
        "lower": lambda: _changed(chat_tokenizer(name, "bytes"), _folding(), normalized=True),
        "plain added": lambda: _changed(chat_tokenizer(name, "bytes"), None, special=False),
        "plain nfkc": lambda: _changed(
            chat_tokenizer(name, "bytes"), normalizers.NFKC(), special=False, normalized=True
        ),
        "stripping": lambda: _changed(chat_tokenizer(name, "bytes"), None, lstrip=True, rstrip=True),
        "first": lambda: prepending_first(chat_tokenizer(name, "sentencepiece")),
    }
    return make[kind]()


def published_folder(folder: Path, tokenizer: Tokenizer, source: str, form: str) -> Path:
    """Write tokenizer and template as they are published: ``file``, ``config`` (one text) or ``list`` (by name)."""
    tokenizer.save(folder)
    if form == "file":
        (folder / "chat_template.jinja").write_bytes(source.encode())
        return folder
    named = [{"name": "tool_use", "template": "x"}, {"name": "default", "template": source}]
    file = folder / "tokenizer_config.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    content["chat_template"] = source if form == "config" else named
    file.write_text(json.dumps(content), encoding="utf-8")
    return folder


def _changed(tokenizer: Tokenizer, normalizer: normalizers.Normalizer | None, **flags: bool) -> Tokenizer:
    engine = tokenizers.Tokenizer.from_str(json.dumps(tokenizer.definition))
    if normalizer is not None:
        engine.normalizer = normalizer
    definition = json.loads(engine.to_str())
    for token in definition["added_tokens"]:
        token.update(flags)
    return Tokenizer(json.dumps(definition), tokenizer.roles)


def _folding() -> normalizers.Normalizer:
    """Decompose, drop accents and invisible joiners, lower: as uncased vocabularies do."""
    joiners = normalizers.Replace(tokenizers.Regex("[\u200b-\u200d\ufeff]"), "")
    return normalizers.Sequence([normalizers.NFKD(), joiners, normalizers.StripAccents(), normalizers.Lowercase()])


def _bert(name: str) -> Tokenizer:
    engine = tokenizers.Tokenizer(models.WordPiece(unk_token="<unk>"))
    engine.normalizer = normalizers.BertNormalizer(lowercase=False, strip_accents=True)
    engine.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    engine.decoder = decoders.WordPiece()
    controls = list(dict.fromkeys([*CONTROLS[name], "<unk>"]))
    engine.train_from_iterator(
        CORPUS, trainers.WordPieceTrainer(vocab_size=300, special_tokens=controls, show_progress=False)
    )
    return Tokenizer(engine.to_str(), ROLES.get(name))


def _unigram(name: str) -> Tokenizer:
    """SentencePiece's Unigram with byte fallback and NFKC; the control tokens lie outside the model's own pieces."""
    pieces = [("<unk>", 0.0), *((f"<0x{byte:02X}>", -12.0) for byte in range(256))]
    pieces += [(character, -5.0) for character in sorted(set("▁" + "".join(CORPUS)))]
    engine = tokenizers.Tokenizer(models.Unigram(pieces, unk_id=0, byte_fallback=True))
    engine.normalizer = normalizers.NFKC()
    engine.pre_tokenizer = pre_tokenizers.Metaspace()
    engine.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
    engine.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in CONTROLS[name]])
    return Tokenizer(engine.to_str(), ROLES.get(name))
