"""The tokenizer as the rest of Orrery sees it: text to ids and back, over one ``tokenizer.json``."""

import copy
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, SupportsIndex

from orrery.checkpoints.stand_ins import refuse_stand_in
from orrery.checkpoints.stores import is_manifest
from orrery.errors import DataError, ModelFileError, UsageError
from orrery.text import chunks
from orrery.text.engine import Span, engine_of, panics_told
from orrery.text.frames import Frame, Framed
from orrery.text.named import named_tokens, special_tokens, with_absent, with_special
from orrery.text.pieces import Pieces, added_beyond_ascii, byte_fallback, piece_of, pieces_of
from orrery.text.published import vocabularies as published
from orrery.text.published.ended import spaced
from orrery.text.published.renumbered import in_its_language
from orrery.text.sentencepiece.export import plain
from orrery.text.streams import EncodingStream
from orrery.text.tidying import said as said_of_blanks
from orrery.text.tidying import tidied, tidies
from orrery.text.truncation import Side, side_of, side_said
from orrery.text.validation import parse_tokenizer

Special = bool | Literal["around"]
_NAMES = {
    "end": "eos", "start": "bos", "unknown": "unk", "pad": "pad", "mask": "mask", "class": "cls", "separator": "sep",
}  # fmt: skip
"""Our roles of special tokens, and their names in a Hugging Face tokenizer_config.json."""

_ROBERTA = ("<s>", "</s>", "<mask>")
"""Start, end and mask of the family that has no other class and separator tokens than its start and end."""


NO_ID = -1
"""Stands for a text between special tokens."""


class Tokenizer:
    """Text to token ids and back.

    Control tokens never come out of a user's text: ``<|endoftext|>`` in it is thirteen ordinary characters.
    Code gets them from `special`, or by asking for them with ``special=True``.
    """

    ROLES: ClassVar[dict[str, tuple[str, ...]]] = {
        "end": ("<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>"),
        "start": ("<|begin_of_text|>", "<s>", "<bos>"),
        "unknown": ("<unk>", "[UNK]", "<OOV>"),
        "pad": ("<pad>", "[PAD]", "<|pad|>"),
        "mask": ("<mask>", "[MASK]"),
        "class": ("[CLS]",),
        "separator": ("[SEP]",),
    }

    def __init__(
        self,
        content: str,
        roles: Mapping[str, str | None] | None = None,
        cut: Side | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        """Read the text of a tokenizer.json; ``roles`` names special tokens, as in {"end": "</s>"}, or says of none.

        A role that is not named is known by its usual spelling. ``cut`` is the end at which long texts lose tokens.
        ``config`` is the tokenizer_config.json, which may have decoded texts lose blanks before punctuation.
        """
        self._json, self._library = parse_tokenizer(content)
        self._content = content
        self._library.encode_special_tokens = True
        self._library.no_padding()
        self._library.no_truncation()
        self._engine = engine_of(content, self._json, self._library)
        self.cuttable: bool = chunks.cuttable(self._json)
        self.size: int = 1 + max(self._library.get_vocab(with_added_tokens=True).values())
        named: dict[str, str | None] = {**self._known_roles(), **(roles or {})}
        self.roles: dict[str, str] = {role: token for role, token in named.items() if token is not None}
        self.cut: Side = cut or side_of(self._json)
        self.tidy: bool = tidies(config or {}, self._json)
        self.named: dict[str, str] = named_tokens(config or {})

    def encode(self, text: str, special: Special = False, pair: str | None = None) -> list[int]:
        """Return the ids of ``text``; no special token is among them unless ``special`` asks for it.

        ``special="around"`` adds those that the family puts around a text, or around it and its ``pair``, such as
        ``[CLS]`` and ``[SEP]``; a family without any adds none. ``special=True`` makes control ids of the control
        tokens that are written in the text. Raises `DataError` with the position of a lone surrogate, `UsageError` for
        another ``special`` or a ``pair`` without "around".
        """
        if special == "around":
            return self.frame(text, pair).ids
        if special not in (False, True) or pair is not None:
            raise UsageError(
                "a pair is encoded with the special tokens around it" if pair is not None else f"special={special!r}",
                'special is False, True or "around"; a pair needs special="around"',
            )
        if special:
            refuse_surrogates(text)
            return self._engine.encode_control(text)
        if not self.cuttable:
            refuse_surrogates(text)
            return self._engine.encode_batch([text])[0]
        ids: list[int] = []
        for part in self.encode_parts(text):
            ids += part
        return ids

    def frame(self, text: str, pair: str | None = None) -> Framed:
        """Return the ids of a text or of two with the special tokens of the family around them, and their token types.

        What is written in the texts stays text. Equal to what transformers gives for the saved tokenizer.
        """
        return self.around(self.encode(text), None if pair is None else self.encode(pair))

    def around(self, first: Sequence[int], second: Sequence[int] | None = None) -> Framed:
        """Return the ids of one text or of two with the special tokens of the family around them: `frame` of ids."""
        return self._frame.around(first, second)

    def kept(self, ids: Sequence[int], size: int) -> Sequence[int]:
        """Return what stays of ids where there is room for ``size``."""
        return ids[:size] if self.cut == "right" else ids[max(0, len(ids) - size) :]

    def encode_parts(self, text: str) -> Iterator[list[int]]:
        """Yield the ids of ``text`` part by part, so that a text of any length needs little memory."""
        refuse_surrogates(text)
        for group in chunks.groups(self.parts(text)):
            yield from self._engine.encode_batch(group)

    def parts(self, text: str) -> Iterator[str]:
        """Yield parts of ``text`` whose ids, joined, are its ids: short ones, if the tokenizer is ``cuttable``."""
        return chunks.cut(text) if self.cuttable else iter([text])

    def begin(self) -> EncodingStream | None:
        """Return the encoding of a text that comes part by part, cut anywhere; None where no such is known.

        The texts of its parts are not checked for surrogates: they are of a decoded file.
        """
        return self._engine.begin()

    def last_cut(self, text: str) -> int | None:
        """Return the last place inside the beginning of a text at which it may be cut, or None.

        Where the parts of a ``cuttable`` tokenizer meet; anywhere, if the parts go to what `begin` returns.
        """
        if self.cuttable:
            return chunks.last_cut(text)
        return len(text) - 1 if len(text) > 1 and self._engine.begin() else None

    def encode_with_ends(self, text: str) -> tuple[list[int], list[int]]:
        """Return the ids of ``text`` and, for each, the character of ``text`` at which it ends."""
        spans = self.spans(text)
        return [id for id, _, _ in spans], [end for _, _, end in spans]

    def spans(self, text: str) -> list[Span]:
        """Return the ids of ``text``, each with the characters at which its part starts and ends."""
        refuse_surrogates(text)
        return self._engine.spans(text)

    def word_numbers(self, text: str) -> list[int | None]:
        """Return for each id of `spans` the number of its word, as the tokenizer parts a text before it cuts words."""
        refuse_surrogates(text)
        return self._engine.word_numbers(text)

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text, on all threads; equal to `encode` of each."""
        for text in texts:
            refuse_surrogates(text)
        return self._engine.encode_batch(texts)

    def decode(self, ids: Iterable[SupportsIndex], special: bool = False) -> str:
        """Return the text; control tokens are left out unless ``special``. Bad bytes become U+FFFD.

        Where the tokenizer's folder says so, it is without the blanks before punctuation: a `tidy` one.
        """
        text = self.untidied(ids, special)
        return tidied(text) if self.tidy else text

    def untidied(self, ids: Iterable[SupportsIndex], special: bool = False) -> str:
        """Return the text of `decode` with every blank that the pieces spell."""
        checked = self._checked(ids)
        if self._added_beyond_ascii.isdisjoint(checked):
            return self._engine.decode(checked, special)
        return self.decode_bytes(checked, special).decode("utf-8", "replace")

    def normalise(self, text: str) -> str:
        """Return the text as it is cut into pieces (lower case, NFKC, ...), before any added word is found in it."""
        refuse_surrogates(text)
        return self._engine.normalise(text)

    def read(self, text: str) -> str:
        """Return ``text`` as a model sees it: a normaliser may make an ordinary ``<`` of U+FF1C."""
        return self.untidied(self.encode(text), special=True)

    def decode_bytes(self, ids: Iterable[SupportsIndex], special: bool = False) -> bytes:
        """Return the exact bytes of ``ids``, also where they are not UTF-8.

        Raises `UsageError` for a tokenizer whose pieces depend on their neighbours (WordPiece,
        SentencePiece).
        """
        return b"".join(self._piece(id) for id in self._checked(ids) if special or id not in self.control)

    def token(self, id: int) -> str:
        """Return the vocabulary's own spelling of an id (byte-level: a space is Ġ)."""
        return self._library.id_to_token(self._checked([id])[0]) or ""

    def spell(self, tokens: Sequence[str]) -> str:
        """Return the text of entries in the vocabulary's own spelling."""
        return self._library.decoder.decode(list(tokens)) if self._library.decoder else " ".join(tokens)

    @property
    def marks_continuations(self) -> bool:
        """Whether pieces inside a word have a spelling of their own, as WordPiece's ``##ing``."""
        return bool(self._json["model"].get("continuing_subword_prefix"))

    def id(self, token: str) -> int | None:
        """Return the id of a vocabulary entry, or None. Raises `DataError` for half of a surrogate pair."""
        refuse_surrogates(token)
        return self._library.token_to_id(token)

    def words(self, text: str) -> list[str]:
        """Return the pieces that no merge crosses, in the vocabulary's spelling (a space is Ġ)."""
        refuse_surrogates(text)
        rule = self._library.pre_tokenizer
        with panics_told():
            return [text] if rule is None else [word for word, _ in rule.pre_tokenize_str(text)]

    def special(self, name: str) -> int:
        """Return the id of a control token by its role, one of `ROLES`, or by its spelling; a word is none."""
        spelled = self.roles.get(name) if name in self.ROLES else name
        id = None if spelled is None else self._library.token_to_id(spelled)
        if id is None or (name not in self.ROLES and id not in self._library.get_added_tokens_decoder()):
            known = ", ".join(f"{role} {token}" for role, token in self.roles.items()) or "none"
            raise UsageError(f"this tokenizer has no special token {name!r}", f"it has: {known}")
        return id

    @cached_property
    def opening(self) -> tuple[int, ...]:
        """The special tokens that stand before a text, as its template puts them there."""
        around = self.around([NO_ID]).ids
        return tuple(around[: around.index(NO_ID)])

    @property
    def document_opening(self) -> tuple[int, ...]:
        """What opens each document of a text to learn to go on with: ``opening``, but for the frames of encoders.

        A decoder's start token stood before the documents that it was trained on. An encoder's ``[CLS]`` belongs to
        rows, which its objectives frame themselves.
        """
        return () if "class" in self.roles else self.opening

    def with_role(self, role: str, token: str) -> "Tokenizer":
        """Return the same tokenizer with one of `ROLES` given to a token that it has."""
        copied = copy.copy(self)
        copied.roles = {**self.roles, role: token}
        return copied

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what no pickle holds, a function, which is made again."""
        return {name: value for name, value in vars(self).items() if name != "_piece"}

    @cached_property
    def control(self) -> frozenset[int]:
        """Ids of the control tokens, which decoding leaves out."""
        return frozenset(id for id, token in self._library.get_added_tokens_decoder().items() if token.special)

    @cached_property
    def _frame(self) -> Frame:
        return Frame(self._json)

    @cached_property
    def _piece(self) -> Callable[[int], bytes]:
        return piece_of(self._json, self._library)

    @cached_property
    def _added_beyond_ascii(self) -> frozenset[int]:
        return added_beyond_ascii(self._json, self._library)

    @cached_property
    def pieces(self) -> Pieces:
        """The bytes of each id, where they do not depend on the neighbours."""
        return pieces_of(self._json, self._library)

    @cached_property
    def byte_pieces(self) -> frozenset[int]:
        """Ids of the pieces that spell one byte each of a character outside the vocabulary."""
        return byte_fallback(self._json)

    @cached_property
    def continuing(self) -> "Tokenizer":
        """The tokenizer for text that does not open the whole: Metaspace's "first" puts no blank before it."""
        changed = self._content.replace('"prepend_scheme": "first"', '"prepend_scheme":"first"').replace(
            '"prepend_scheme":"first"', '"prepend_scheme":"never"'
        )
        return self if changed == self._content else self.defined_by(changed)

    def defined_by(self, content: str, roles: Mapping[str, str | None] | None = None) -> "Tokenizer":
        """Return a tokenizer of another tokenizer.json, with what the files beside say; ``roles`` are further ones."""
        return Tokenizer(
            content, {**self.roles, **(roles or {})}, self.cut, {**self.named, **said_of_blanks(self.tidy, self._json)}
        )

    @property
    def definition(self) -> Mapping[str, Any]:
        """The parsed tokenizer.json."""
        return self._json

    @cached_property
    def fingerprint(self) -> str:
        """sha256 of tokenizer.json with sorted keys and no spaces: equal exactly where the meaning is."""
        text = json.dumps(self._json, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def unknown_id(self) -> int | None:
        """The id that stands for text outside the vocabulary; nothing where every text can be spelled."""
        return self._library.token_to_id(self.roles.get("unknown", ""))

    def unknown(self, ids: Iterable[SupportsIndex]) -> int:
        """Count the ids that stand for text outside the vocabulary."""
        id = self.unknown_id
        return sum(1 for each in ids if each == id)

    def save(self, folder: str | Path) -> None:
        """Write tokenizer.json, and the tokenizer_config.json that transformers' AutoTokenizer needs."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        # A role that the spelling suggests and the files deny stays denied.
        config: dict[str, Any] = {**self.named}
        config |= {f"{_NAMES[role]}_token": self.roles.get(role) for role in self._known_roles()}
        config |= {f"{_NAMES[role]}_token": token for role, token in self.roles.items() if role in _NAMES}
        config |= {"truncation_side": "left"} if self.cut == "left" else {}
        config |= {"tokenizer_class": "PreTrainedTokenizerFast", **said_of_blanks(self.tidy, self._json)}
        _write(folder / FILES[0], self._content)
        _write(folder / FILES[1], json.dumps(config, indent=2, ensure_ascii=False) + "\n")

    def _known_roles(self) -> dict[str, str]:
        present = {
            role: [name for name in names if self._library.token_to_id(name) is not None]
            for role, names in self.ROLES.items()
        }
        roles = {role: names[0] for role, names in present.items() if names}
        if "class" not in roles and (roles.get("start"), roles.get("end"), roles.get("mask")) == _ROBERTA:
            roles |= {"class": roles["start"], "separator": roles["end"]}
        return roles

    def _checked(self, ids: Iterable[SupportsIndex]) -> list[int]:
        checked = [int(id) for id in ids]
        for id in checked:
            if not 0 <= id < self.size:
                raise DataError(
                    f"token id {id} is outside the vocabulary of {self.size:,} (0 to {self.size - 1})",
                    "the ids come from another tokenizer, or from a model with a larger vocabulary",
                )
        return checked


FILES = ("tokenizer.json", "tokenizer_config.json")
"""What `Tokenizer.save` leaves in a folder."""


def load_tokenizer(path: str | Path) -> Tokenizer:
    """Load a tokenizer.json, a published vocabulary of GPT-2, BERT or SentencePiece, or the folder that holds one.

    Raises `ModelFileError` (exit 4) where it is missing, broken, or contradicts itself.
    """
    path = Path(path)
    file = (published.file_in(path) or path / "tokenizer.json") if path.is_dir() else path
    if not file.is_file():
        raise ModelFileError(
            f"{file}: no such tokenizer",
            f"give a tokenizer.json, a file by one of these names, or the folder of one: {published.NAMES}; "
            "`orrery tokenizer train` makes a tokenizer.json",
        )
    make = published.reader(file)
    try:
        said = _named(file.parent / "tokenizer_config.json")
        content = make(file) if make else _definition(file, said)
        roles, cut, naming = _roles(file.parent), side_said(said), _naming(file.parent)
        read = Tokenizer(content, roles, cut, said)
        complete = plain(with_absent(read.definition, read.id, naming, _named(file.parent / "added_tokens.json")))
        complete = complete if make else with_special(complete, read.id, special_tokens(naming))
        if complete is read.definition:
            return read
        return Tokenizer(json.dumps(complete, ensure_ascii=False), roles, cut, said)
    except UnicodeDecodeError as error:
        kind = "a vocabulary of text" if make else "a tokenizer.json"
        raise ModelFileError(f"{file}: not UTF-8 (byte {error.start})", f"the file is not {kind}") from None
    except ModelFileError as error:
        refuse_stand_in(file)
        raise ModelFileError(f"{file}: {error.message}", error.hint) from None


def _definition(file: Path, said: Mapping[str, Any]) -> str:
    """Return the text of a tokenizer.json. Raises `ModelFileError` for a file of another kind by another name.

    ``said`` is the tokenizer_config.json, which may name the language that stands around a text.
    """
    with file.open("rb") as stream:
        beginning = stream.read(4096)  # a file of weights has no end soon
    if beginning.startswith(b"GGUF") or is_manifest(file):
        raise ModelFileError(
            "the tokenizer of a GGUF file is read with its model", "orrery import MODEL OUT writes its tokenizer.json"
        )
    if file.suffix != ".json" and not beginning.lstrip().startswith(b"{"):
        raise ModelFileError(
            "no tokenizer.json, and no vocabulary that is known by its name",
            f"the files that are read, by these names: tokenizer.json, {published.NAMES}",
        )
    return spaced(in_its_language(file.read_bytes().decode(), said))


def refuse_surrogates(text: str) -> None:
    """Raise `DataError` where ``text`` holds half of a surrogate pair, which is no character."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise DataError(
            f"lone surrogate U+{ord(text[error.start]):04X} at character {error.start}",
            "the text was cut inside a character or decoded wrongly; decode it as UTF-8",
        ) from None


def _naming(folder: Path) -> dict[str, Any]:
    """Return what Hugging Face's files say of special tokens.

    They stand in tokenizer_config.json; special_tokens_map.json, which older programs write beside it, counts for more
    where the first does not list all added tokens: so transformers reads them.
    """
    said = _named(folder / "tokenizer_config.json")
    return said if "added_tokens_decoder" in said else {**said, **_named(folder / "special_tokens_map.json")}


def _roles(folder: Path) -> dict[str, str | None]:
    """Return the special tokens that Hugging Face's files name; None where they say that there is no such token."""
    said = _naming(folder)
    given = {role: said[f"{name}_token"] for role, name in _NAMES.items() if f"{name}_token" in said}
    contents = {role: token.get("content") if isinstance(token, dict) else token for role, token in given.items()}
    return {role: token for role, token in contents.items() if token is None or isinstance(token, str)}


def _named(file: Path) -> dict[str, Any]:
    """Return the values of a JSON file beside a tokenizer; an absent file has none."""
    if not file.is_file():
        return {}
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{file.name} beside it is not JSON: {error}", "export it again") from None
    if not isinstance(values, dict):
        raise ModelFileError(f"{file.name} beside it is not a JSON object", "export it again")
    return values


def _write(file: Path, content: str) -> None:
    """Write through a temporary file, so that a killed process leaves the old one or the new one."""
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    temporary.write_text(content, encoding="utf-8", newline="")
    os.replace(temporary, file)
