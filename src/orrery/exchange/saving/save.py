"""Saving a model in the Hugging Face layout, so that transformers and everything built on it can load it."""

import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from orrery.checkpoints.disk import fsync_file, fsync_folder, machine_errors, write_text
from orrery.checkpoints.rules import to_theirs
from orrery.checkpoints.tensors import write_tensors
from orrery.errors import UsageError
from orrery.exchange.reading.files import CARD, CONFIG, GENERATION, PICTURES, WEIGHTS
from orrery.exchange.reading.weights import refuse_buffers, weights_of
from orrery.exchange.saving.beside import BESIDE
from orrery.exchange.saving.card import model_card
from orrery.exchange.saving.cross_encoder_folder import FOLDERS as PAIR_FOLDERS
from orrery.exchange.saving.cross_encoder_folder import section_of, tell_tokenizer, write_pair_scores
from orrery.exchange.saving.sentence_folder import FILES as SENTENCE_FILES
from orrery.exchange.saving.sentence_folder import write_sentences
from orrery.families import Family, defaults_of, is_row_decoder, load_family, model_type, rules_of, spec_of
from orrery.families._heads import without_pooler
from orrery.models.dropout import without_dropout
from orrery.models.model import Model
from orrery.models.pair_scores import PairScores
from orrery.models.sentence_vectors import Sentences
from orrery.text.chat.folder import FILE as TEMPLATE
from orrery.text.chat.folder import OTHERS as TEMPLATES
from orrery.text.chat.folder import write_templates
from orrery.text.tokenizer import FILES as TOKENIZER_FILES
from orrery.tuning import describe, refuse_transformed

MODEL_FILES = (
    CARD,
    CONFIG,
    GENERATION,
    WEIGHTS,
    *TOKENIZER_FILES,
    TEMPLATE,
    TEMPLATES,
    *SENTENCE_FILES,
    *PAIR_FOLDERS,
    PICTURES,
    *BESIDE,
)
"""What `save_model` leaves in a folder, and what an export copies there."""
TOKENIZER_CONFIG = TOKENIZER_FILES[1]
PADDING = "pad_token_id"
_CONTROL = {"bos_token_id": "start", "eos_token_id": "end", PADDING: "pad"}


@runtime_checkable
class SavesItself(Protocol):
    """A tokenizer, as far as saving goes."""

    def save(self, folder: str | Path) -> None:
        """Write its files into a folder."""
        ...

    def special(self, name: str) -> int:
        """Return the id of a control token by its role."""
        ...


def save_model(
    folder: str | Path,
    model: Model,
    family: str,
    config: Mapping[str, Any],
    tokenizer: SavesItself | None = None,
    card: Mapping[str, Any] | None = None,
    generation: Mapping[str, Any] | None = None,
    chat: Mapping[str, str] | None = None,
    beside: Mapping[str, Tensor] | None = None,
    sentences: Sentences | None = None,
    pairs: PairScores | None = None,
    pictures: Mapping[str, Any] | None = None,
) -> None:
    """Write config.json, weights, generation_config.json, the tokenizer's files, chat templates and a model card.

    Every file is complete under its name or not there; config.json, without which a folder is no model, is the last.
    Loading gives the same bytes back.

    Args:
        folder: made where it is missing.
        model: its tensors are written in the dtype that they have, a tied one once.
        family: the ``model_type``.
        config: the family's configuration, in Hugging Face's names.
        tokenizer: written beside the weights.
        card: facts for README.md, see ``model_card``.
        generation: the content of generation_config.json; the ids of the control tokens stand there where it names
            none.
        chat: chat templates by name; ``default`` becomes chat_template.jinja.
        sentences: how vectors of texts are made, for sentence-transformers.
        pairs: how pairs of texts are scored, for its cross-encoders.
        pictures: the content of preprocessor_config.json, of a model that reads pictures.
        beside: tensors under Hugging Face's names that no part of the model is, as of a head of another class.

    Raises:
        UsageError: the model is not what the configuration describes, or has transforms, or a tensor that the file
            cannot hold.
        MachineError: the disk refuses.
    """
    folder, rules = Path(folder), load_family(family)
    refuse_transformed(model, "Hugging Face's layout cannot hold")
    refuse_buffers(model)
    describe(model)
    ours = weights_of(model)
    _check_configuration(model, spec_of(rules, config), family)
    control = _control_tokens({**_read_control(rules, config), **config}, tokenizer)
    # All three are written, absent ones as null: transformers would fill in ids of the published vocabulary.
    config_written = {
        "architectures": [rules.ARCHITECTURE],
        **config,
        **control,
        "model_type": model_type(family),
        **(_dtype(config, ours) | section_of(pairs)),
    }
    tokens = _present({**control, "decoder_start_token_id": model.first_token}) | dict(generation or {})
    theirs = {**(beside or {}), **to_theirs(ours, rules_of(rules, config))}
    with machine_errors(folder, sum(tensor.nbytes for tensor in theirs.values())):
        _write_beside(folder, tokenizer, chat or {}, _read_by(model.spec), pictures)
        write_uses(folder, sentences, pairs, model.spec.width)
        texts = {CARD: model_card(family, model, card or {}), GENERATION: _json(tokens), CONFIG: _json(config_written)}
        writers: dict[str, Callable[[Path], object]] = {
            WEIGHTS: lambda path: write_tensors(path, theirs, {"format": "pt"}),
            **{name: text_writer(text) for name, text in texts.items()},
        }
        write_all(folder, writers)


def _check_configuration(model: Model, spec: Any, family: str) -> None:
    """Refuse a configuration that describes another model; what it says of dropout, and of a pooler, is left open."""
    described, own = without_dropout(spec), without_dropout(getattr(model, "spec", None))
    if own not in (described, without_pooler(described)):
        raise UsageError(f"this model is not what its {family} configuration says", "save the configuration it has")


def _write_beside(
    folder: Path,
    tokenizer: SavesItself | None,
    chat: Mapping[str, str],
    read: Mapping[str, Any],
    pictures: Mapping[str, Any] | None,
) -> None:
    """Make the folder, and write what stands beside the weights: tokenizer, chat templates, how pictures are read.

    ``read`` is what the settings of the tokenizer say of the rows that it gives.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if pictures is not None:
        write_text(folder / PICTURES, _json(pictures))
    if tokenizer is not None:
        tokenizer.save(folder)
        if read:
            _add_settings(folder / TOKENIZER_CONFIG, read)
    write_templates(folder, chat)


def _read_by(spec: Any) -> dict[str, Any]:
    """Return what a tokenizer without a class of its own has to say in transformers 5 of the rows of a model.

    It gives no token types otherwise, and of texts that are filled up a mask, which hides what the model reads.
    """
    if (fill := getattr(spec, "fill", None)) is not None:
        return {"model_input_names": ["input_ids"], "model_max_length": fill.length}
    names = ["input_ids", "token_type_ids", "attention_mask"]
    return {"model_input_names": names} if spec.token_types > 1 else {}


def _add_settings(path: Path, settings: Mapping[str, Any]) -> None:
    """Add settings to a JSON file, where there is one."""
    if path.is_file():
        path.write_text(_json({**json.loads(path.read_text(encoding="utf-8")), **settings}), encoding="utf-8")


def write_uses(folder: Path, sentences: Sentences | None, pairs: PairScores | None, width: int) -> None:
    """Write how vectors of texts are made and pairs of them scored, where a folder says so or a training taught it."""
    if pairs is not None:
        tell_tokenizer(folder, pairs)
    if sentences is not None:
        write_sentences(folder, sentences, width)
    elif pairs is not None and pairs.given:
        write_pair_scores(folder, pairs, width)


def write_all(folder: Path, writers: Mapping[str, Callable[[Path], object]]) -> None:
    """Write every file under a temporary name, and only when all are on the disk give them their own."""
    fresh = {name: folder / f".{name}.tmp-{os.getpid()}" for name in writers}
    try:
        for name, write in writers.items():
            write(fresh[name])
            fsync_file(fresh[name])
        for name, path in fresh.items():
            os.replace(path, folder / name)
        fsync_folder(folder)
    finally:
        for path in fresh.values():
            path.unlink(missing_ok=True)


def text_writer(text: str) -> Callable[[Path], object]:
    """Return what writes a text into a file."""
    return lambda path: path.write_text(text, encoding="utf-8")


def _json(content: Mapping[str, Any]) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _dtype(config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> dict[str, str]:
    """Return the dtype that loaders read, where the weights have one in common; the old key stays where it was."""
    dtypes = {tensor.dtype for tensor in tensors.values()}
    key = "torch_dtype" if "torch_dtype" in config else "dtype"
    return {key: str(dtypes.pop()).removeprefix("torch.")} if len(dtypes) == 1 else {}


def _read_control(rules: Family, config: Mapping[str, Any]) -> dict[str, int | None]:
    """Return the control tokens that the configuration leaves to the family and that the architecture depends on.

    RoBERTa numbers its places after the padding's id, a decoder's classifier ends a row before it, and a target of BART
    may begin with that of a text: these ids are never replaced. A default that nothing reads belongs to the published
    vocabulary and is not this model's.
    """
    spec = rules.spec(config)
    left = {
        key: id for key, id in defaults_of(rules).items() if key in _CONTROL and key not in config and id is not None
    }
    read: dict[str, int | None] = {key: id for key, id in left.items() if rules.spec({**config, key: id + 1}) != spec}
    return read | ({PADDING: spec_of(rules, config).padding} if is_row_decoder(rules, config) else {})


def _present(ids: Mapping[str, int | None]) -> dict[str, Any]:
    """Return the ids that there are."""
    return {key: id for key, id in ids.items() if id is not None}


def _control_tokens(config: Mapping[str, Any], tokenizer: SavesItself | None) -> dict[str, Any]:
    """Return the ids of the control tokens: the configuration's, else the tokenizer's, else none."""
    ids: dict[str, Any] = {}
    for key, role in _CONTROL.items():
        ids[key] = config.get(key)
        if tokenizer is not None and key not in config:
            with suppress(UsageError):  # this tokenizer has no such role
                ids[key] = tokenizer.special(role)
    return ids
