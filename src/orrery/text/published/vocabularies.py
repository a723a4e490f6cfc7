"""Vocabularies as they were published before tokenizer.json or beside it: GPT-2, BERT, SentencePiece, tiktoken."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from orrery.errors import ModelFileError
from orrery.text import frames
from orrery.text.frames import GPT2_END
from orrery.text.gguf.rules import RULES as CUTTING_RULES
from orrery.text.named import named_tokens
from orrery.text.pieces import byte_alphabet
from orrery.text.published import classes, ended
from orrery.text.published.blanks import at_the_beginning, without_blank
from orrery.text.published.canonical import canonical, without_accents
from orrery.text.published.classes import class_said
from orrery.text.published.listed import m2m_100, marian, nllb
from orrery.text.published.ranked import TEKKEN, tekken
from orrery.text.published.renumbered import NUMBERINGS, renumbered
from orrery.text.published.tiktoken import SUFFIX, is_tiktoken, tiktoken
from orrery.text.sentencepiece import export

HINT = "the file is damaged or of another kind: take it from its origin again"
NAMES = (
    "vocab.txt, vocab.json with merges.txt, encoder.json with vocab.bpe, source.spm with vocab.json, tekken.json, "
    "*.model of SentencePiece, *.tiktoken"
)
"""The files that are known by their names."""
GPT2_MERGES = {"vocab.json": "merges.txt", "encoder.json": "vocab.bpe"}
_OF_A_VERSION = re.compile(r"\.model\.v\d\w*$")
"""The end of the name of a SentencePiece model of Mistral's: ``tokenizer.model.v3``."""
_RWKV = "rwkv_vocab*.txt"
"""RWKV's list of pieces: ``rwkv_vocab_v20230424.txt``."""
VOCABULARY, SOURCE = "vocab.json", "source.spm"
"""A list of pieces with their numbers, and the SentencePiece model of Marian's sources beside it."""
CONTROL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
LONGEST_WORD = 100
CONFIG = "tokenizer_config.json"
BYT5_SENTINELS, T5_SENTINELS, MOST_SENTINELS = 125, 100, 10_000
"""The sentinels where nothing is said, and the most that a file may ask for."""
_OF_ROBERTA = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
_OF_MPNET = ("<s>", "<pad>", "</s>", "<mask>")
_ENDS_OF_WORDS = frozenset(f"{letter}</w>" for letter in "aeinst")
"""Pieces that every vocabulary with marked ends of words has, and hardly any other."""


def find(folder: Path) -> Path | None:
    """Return the published vocabulary in a folder, if there is one."""
    if (folder / SOURCE).is_file():
        return folder / SOURCE
    lists = [name for name, merges in GPT2_MERGES.items() if name != VOCABULARY or (folder / merges).is_file()]
    named = [folder / name for name in (*lists, "vocab.txt", TEKKEN)]
    by_suffix = [file for end in (".model", ".model.v[0-9]*", SUFFIX, _RWKV) for file in sorted(folder.glob(f"*{end}"))]
    file_found = next((file for file in [*named, *by_suffix, folder / VOCABULARY] if file.is_file()), None)
    return file_found if file_found is not None or not _has_bytes_alone(folder / CONFIG) else folder / CONFIG


def _has_bytes_alone(config: Path) -> bool:
    """Say whether a folder's tokenizer has no vocabulary because it has bytes (ByT5)."""
    return frames.class_of(_config(config)) == "ByT5"


def file_in(folder: Path) -> Path | None:
    """Return the file that a folder's tokenizer is read from: its tokenizer.json, else a published vocabulary."""
    file = folder / "tokenizer.json"
    return file if file.is_file() else find(folder)


def reader(file: Path) -> Callable[[Path], str] | None:
    """Return what makes a tokenizer.json of a file, by its name; None for a tokenizer.json itself."""
    if file.name in GPT2_MERGES or file.name in GPT2_MERGES.values():
        return gpt2
    if file.suffix in (".model", SUFFIX) or _OF_A_VERSION.search(file.name):
        return _tiktoken if file.suffix == SUFFIX or is_tiktoken(file) else _sentencepiece
    if file.match(f"*{_RWKV}"):
        return classes.of_rwkv
    return {"vocab.txt": bert, CONFIG: byt5, TEKKEN: tekken, SOURCE: _marian}.get(file.name)


def byt5(file: Path) -> str:
    """Return the tokenizer.json of ByT5, given its tokenizer_config.json: a token a byte, behind three of its own.

    Paper: Xue et al. 2022, section 3.1. The sentinels stand behind the bytes.
    """
    letters = sorted(byte_alphabet().items(), key=lambda pair: pair[1])
    pieces = ["<pad>", "</s>", "<unk>", *(letter for letter, _ in letters)]
    engine = Tokenizer(models.BPE({piece: id for id, piece in enumerate(pieces)}, []))
    engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    engine.decoder = decoders.ByteLevel()
    engine.add_special_tokens([AddedToken(name, normalized=False) for name in pieces[:3]])
    count = _sentinels(_config(file), BYT5_SENTINELS)
    if "added_tokens_decoder" not in _config(file):
        engine.add_special_tokens([AddedToken(f"<extra_id_{n}>", normalized=False) for n in range(count)])
    _add(engine, file)
    single = ("A", "</s>")
    return _framed(engine, frames.of_slots(single, (*single, "B", "</s>"), engine.token_to_id))


def gpt2(file: Path) -> str:
    """Return the tokenizer.json of GPT-2's two files, given either. Paper: Radford et al. 2019, section 2.2.

    Raises `ModelFileError` where one is missing, or they contradict each other.
    """
    name, config = class_said(*_said(file), classes.MERGES), _config(file)
    names = next(pair for pair in GPT2_MERGES.items() if file.name in pair)
    vocabulary_file, merges_file = (file.with_name(name) for name in names)
    for part in (vocabulary_file, merges_file):
        if not part.is_file():
            raise ModelFileError(f"{part.name} is missing beside it", f"put {' and '.join(names)} into one folder")
    ids = _ids(vocabulary_file)
    ends = name in ended.CONTROL
    if set(ids) >= _ENDS_OF_WORDS and not ends:
        raise classes.without_rules("it marks the ends of words with </w>, as those of CLIP and GPT-1 do; their rules")
    merges = _merges(merges_file, ids)
    engine = ended.engine_of(name, ids, merges) if ends else _of_bytes(name, config, ids, merges)
    control = {
        "Deberta": CONTROL,
        **ended.CONTROL,
        **dict.fromkeys(("", *classes.LIKE_ROBERTA), (GPT2_END, *_OF_ROBERTA)),
    }
    listed = [token for token in control.get(name, (GPT2_END,)) if token in ids]
    engine.add_special_tokens([AddedToken(token, normalized=False) for token in listed])
    _add(engine, file)
    frame = ended.frame if ends else _frame_of_merges
    return ended.spaced(_framed(engine, frame(name, _naming(file), engine.token_to_id)))


def _of_bytes(name: str, config: Mapping[str, Any], ids: dict[str, int], merges: list[tuple[str, str]]) -> Tokenizer:
    """Return the tokenizer of a class whose merges are of bytes, without its control tokens."""
    engine = Tokenizer(models.BPE(ids, merges))
    engine.decoder = decoders.ByteLevel()
    engine.normalizer, engine.pre_tokenizer = _cutting(name, config.get("add_prefix_space") is True)
    return engine


def _cutting(name: str, prefix: bool) -> tuple[Any, Any]:
    """Return how a class composes characters, if it does, and how it cuts texts; ``prefix`` puts a space before."""
    rule = {"Qwen2": "qwen2", "Qwen3_5": "qwen35"}.get(name)
    if rule is None:
        return None, pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    cuts = [pre_tokenizers.Split(Regex(cut), "isolated") for cut in CUTTING_RULES[rule].cuts]
    letters = pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=False)
    return normalizers.NFC(), pre_tokenizers.Sequence([*cuts, letters])


def _frame_of_merges(name: str, config: Mapping[str, Any], find: frames.Find) -> frames.Rule | None:
    """Return the post-processor of a class that has merges."""
    if name == "Deberta":
        return frames.of_bert(find, named_tokens(config))
    like_roberta = name in ("", *classes.LIKE_ROBERTA)
    return (frames.of_roberta(find, named_tokens(config)) if like_roberta else None) or frames.of_gpt2(config, find)


def bert(file: Path) -> str:
    """Return the tokenizer.json of a WordPiece list, one piece a line. Paper: Devlin et al. 2019.

    It lowers case and drops accents as ``do_lower_case`` of the tokenizer_config.json beside it says; without that,
    where no piece has a capital letter. Raises `ModelFileError` for an empty, doubled or missing piece.
    """
    pieces = _lines(file)
    ids = {piece: id for id, piece in enumerate(pieces)}
    for id, piece in enumerate(pieces):
        if not piece or ids[piece] != id:
            raise ModelFileError(f"line {id + 1} is {f'{piece!r}, which comes again' if piece else 'empty'}", HINT)
    name, config, named = class_said(*_said(file), classes.WORD_PIECES), _config(file), named_tokens(_naming(file))
    unknown = named.get("unk_token", "[UNK]")
    if unknown not in ids:
        raise ModelFileError(f"no line is {unknown}, the piece for unknown words", HINT)
    engine = Tokenizer(models.WordPiece(ids, unk_token=unknown, max_input_chars_per_word=LONGEST_WORD))
    accents = config.get("strip_accents")
    engine.normalizer = normalizers.BertNormalizer(
        lowercase=_lower_case(file, pieces),
        strip_accents=accents if isinstance(accents, bool) else None,
        handle_chinese_chars=config.get("tokenize_chinese_chars") is not False,
    )
    engine.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    engine.decoder = decoders.WordPiece()
    control = (*CONTROL, *(_OF_MPNET if name == "MPNet" else ()))
    engine.add_special_tokens([AddedToken(token, normalized=False) for token in control if token in ids])
    _add(engine, file)
    frame = frames.of_roberta if name == "MPNet" else frames.of_bert
    return _framed(engine, frame(engine.token_to_id, named))


def _tiktoken(file: Path) -> str:
    """Return the tokenizer.json of a file of tiktoken's, with the tokens that a configuration beside it adds."""
    name = frames.class_of(_config(file))
    return tiktoken(file, "" if name in classes.UNSAID else name, _listed(file)[0])


def _sentencepiece(file: Path) -> str:
    """Return the tokenizer.json of a SentencePiece model, with what the family of a configuration beside it adds."""
    config = {**_config(file), "tokenizer_class": classes.sentencepiece_class(*_said(file))}
    made = at_the_beginning(json.loads(export.definition(without_blank(file.read_bytes(), config))), config)
    name = frames.class_of(config)
    if name == "M2M100" and file.with_name(VOCABULARY).is_file():
        return _listed_pieces(m2m_100(file.read_bytes(), _ids(file.with_name(VOCABULARY)), config), file)
    if name == "Nllb":
        return _listed_pieces(nllb(file.read_bytes(), config), file)
    numbering = NUMBERINGS.get(name)
    made = renumbered(made, numbering, config) if numbering else made
    made = made if numbering else _in_reserved_places(made, file)
    made["added_tokens"] += _new_tokens(made, file, config)
    made = dict(export.plain(made))
    if not numbering:
        ids = {token["content"]: token["id"] for token in made["added_tokens"]}
        made["post_processor"] = frames.of_sentencepiece(config, ids.get)
    prepared = {"Siglip": canonical, "Albert": without_accents}.get(name)
    return json.dumps(prepared(made, config) if prepared else made, ensure_ascii=False)


def _marian(file: Path) -> str:
    """Return the tokenizer.json of Marian's files, given the SentencePiece model of its sources."""
    class_said(*_said(file), ("Marian",))
    if not file.with_name(VOCABULARY).is_file():
        raise ModelFileError(f"{VOCABULARY} is missing beside it", f"put {SOURCE} and {VOCABULARY} into one folder")
    return _listed_pieces(marian(file.read_bytes(), _ids(file.with_name(VOCABULARY)), _config(file)), file)


def _listed_pieces(made: dict[str, Any], file: Path) -> str:
    """Return the tokenizer.json of pieces with the numbers of a list, with the tokens that are added beside it."""
    engine = Tokenizer.from_str(json.dumps(made))
    _add(engine, file)
    return json.dumps({**made, "added_tokens": json.loads(engine.to_str())["added_tokens"]}, ensure_ascii=False)


def _new_tokens(made: Mapping[str, Any], file: Path, config: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the tokens behind the pieces of a model: T5's sentinels, the first with the last id, and added ones."""
    engine = Tokenizer.from_str(json.dumps(made))
    known = set(engine.get_vocab())
    has_own = "added_tokens_decoder" in config or any("<extra_id_0>" in piece for piece in known)
    if frames.class_of(config) in ("T5", "MT5") and not has_own:
        sentinels = [f"<extra_id_{number}>" for number in reversed(range(_sentinels(config, T5_SENTINELS)))]
        engine.add_special_tokens([AddedToken(token, normalized=False) for token in sentinels])
    _add(engine, file)
    added = json.loads(engine.to_str())["added_tokens"]
    # Found before a text is normalised, as the classes of these families do: normalising puts spaces into it.
    return [{**token, "normalized": False} for token in added if token["content"] not in known]


def _sentinels(config: Mapping[str, Any], usual: int) -> int:
    """Return how many sentinels a tokenizer_config.json asks for."""
    count = config.get("extra_ids")
    return count if type(count) is int and 0 <= count <= MOST_SENTINELS else usual


def _listed(file: Path) -> tuple[dict[str, int], dict[str, bool]]:
    """Return the ids of the tokens that the files beside a vocabulary add, and which tokens are special.

    Raises:
        ModelFileError: they are no tokens with ids.
    """
    config, named = _config(file), _naming(file)
    listed: dict[str, int] = {}
    special: dict[str, bool] = {}
    try:
        for id, token in (config.get("added_tokens_decoder") or {}).items():
            listed[token["content"]], special[token["content"]] = int(id), bool(token.get("special"))
        for content, id in _beside(file, "added_tokens.json").items():
            listed.setdefault(content, int(id))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ModelFileError("the added tokens beside it are no tokens with their ids", HINT) from error
    for key, value in named.items():
        several = value if isinstance(value, list) else [value]
        if key.endswith("_token") or key in ("additional_special_tokens", "extra_special_tokens"):
            contents = [one.get("content") if isinstance(one, dict) else one for one in several]
            special |= {content: True for content in contents if isinstance(content, str)}
    return listed, special


def _naming(file: Path) -> dict[str, Any]:
    """Return what the files beside a vocabulary call its tokens: tokenizer_config.json, or the map of older folders."""
    config = _config(file)
    return config if "added_tokens_decoder" in config else {**config, **_beside(file, "special_tokens_map.json")}


def _in_reserved_places(made: dict[str, Any], file: Path) -> dict[str, Any]:
    """Return a model in which added tokens whose ids lie inside it stand for the pieces there.

    InternLM's chats have their marks in the places of ``[UNUSED_TOKEN_146]`` and its like.
    """
    vocabulary, (listed, special) = made["model"]["vocab"], _listed(file)
    pieces = list(vocabulary) if isinstance(vocabulary, dict) else [piece for piece, _ in vocabulary]
    places = {id: content for content, id in listed.items() if 0 <= id < len(pieces) and content not in set(pieces)}
    if not places:
        return made
    if isinstance(vocabulary, dict):
        names = {id: piece for piece, id in vocabulary.items()} | places
        vocabulary = {piece: id for id, piece in names.items()}
    else:
        vocabulary = [[places.get(id, piece), score] for id, (piece, score) in enumerate(vocabulary)]
    kept = [token for token in made["added_tokens"] if token["id"] not in places]
    added = [_token(id, content, special=special.get(content, False)) for id, content in sorted(places.items())]
    return {**made, "model": {**made["model"], "vocab": vocabulary}, "added_tokens": [*kept, *added]}


def _token(id: int, content: str, special: bool) -> dict[str, Any]:
    plain = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": id, "content": content, **plain, "special": special}


def _add(engine: Tokenizer, file: Path) -> None:
    """Add the tokens that the files beside a vocabulary name, in the order of their ids.

    Raises:
        ModelFileError: one has an id that is not the next.
    """
    listed, special = _listed(file)
    unlisted = [content for content in special if content not in listed and engine.token_to_id(content) is not None]
    contents = [*sorted(listed, key=listed.__getitem__), *unlisted]
    flags = [special.get(content, False) for content in contents]
    engine.add_tokens(
        [AddedToken(content, normalized=not flag, special=flag) for content, flag in zip(contents, flags, strict=True)]
    )
    for content in contents:
        if listed.get(content, next_id := engine.token_to_id(content)) != next_id:
            message = f"the added token {content!r} has the id {listed[content]}, the next is {next_id}"
            raise ModelFileError(message, HINT)


def _framed(engine: Tokenizer, rule: frames.Rule | None) -> str:
    return json.dumps({**json.loads(engine.to_str()), "post_processor": rule}, ensure_ascii=False)


def _config(file: Path) -> dict[str, Any]:
    """Return the tokenizer_config.json beside a file; empty where there is none."""
    return _beside(file, CONFIG)


def _said(file: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the configurations beside a file, of the tokenizer and of the model, which may name its class.

    Meta's and Mistral's own folders have params.json in their place, and Llama's class.
    """
    of_model = {"model_type": "llama"} if file.with_name("params.json").is_file() else {}
    return _config(file), _beside(file, "config.json") or of_model


def _beside(file: Path, name: str) -> dict[str, Any]:
    """Return the JSON object of a file beside another; empty where there is none."""
    beside = file.with_name(name)
    try:
        config = json.loads(_read(beside)) if beside.is_file() else {}
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{beside.name} beside it is not JSON: {error}", "export it again") from None
    return config if isinstance(config, dict) else {}


def _lower_case(file: Path, pieces: list[str]) -> bool:
    stated = _config(file).get("do_lower_case")
    if isinstance(stated, bool):
        return stated
    return all(piece == piece.lower() for piece in pieces if not (piece.startswith("[") and piece.endswith("]")))


def _ids(file: Path) -> dict[str, int]:
    """Read a JSON object from piece to id, each once."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        values = dict(pairs)
        if len(values) < len(pairs):
            twice = next(name for place, (name, _) in enumerate(pairs) if name in dict(pairs[:place]))
            raise ModelFileError(f"{file.name} has the piece {twice!r} twice", HINT)
        return values

    try:
        ids = json.loads(_read(file), object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{file.name} is not JSON: {error}", HINT) from None
    if not isinstance(ids, dict) or not all(type(id) is int and id >= 0 for id in ids.values()):
        raise ModelFileError(f"{file.name} is no object from pieces to ids", HINT)
    if len(set(ids.values())) < len(ids):
        raise ModelFileError(f"{file.name} gives two pieces one id", HINT)
    return ids


def _merges(file: Path, ids: dict[str, int]) -> list[tuple[str, str]]:
    """Read one pair a line; each half and what they make has to be in the vocabulary."""
    merges: list[tuple[str, str]] = []
    for number, line in enumerate(_lines(file), 1):
        if not line or (number == 1 and line.startswith("#version")):
            continue
        left, _, right = line.partition(" ")
        missing = [piece for piece in (left, right, left + right) if piece not in ids]
        if missing:
            raise ModelFileError(f"{file.name} line {number}: {missing[0]!r} is not in the vocabulary", HINT)
        merges.append((left, right))
    return merges


def _lines(file: Path) -> list[str]:
    """Return the lines; only a line feed ends one, since pieces hold other line ends."""
    lines = _read(file).split("\n")
    return [line.removesuffix("\r") for line in (lines[:-1] if not lines[-1] else lines)]


def _read(file: Path) -> str:
    # Without translation of line ends.
    return file.read_bytes().decode()
