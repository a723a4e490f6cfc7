"""Folders of static vectors: a table of tokens alone, whose rows a text has the mean of.

Two programs write them: sentence-transformers a list of modules that begins with ``StaticEmbedding``, model2vec a
config.json of its own. Where both stand, as in most published folders, the list of modules says how vectors are made.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from orrery.checkpoints.json_file import read_json
from orrery.errors import ModelFileError
from orrery.exchange.reading.files import CONFIG, WEIGHTS, Weights, open_weights
from orrery.exchange.reading.sentence_folder import (
    HINT,
    MODULES,
    cut_short,
    modules_of,
    prompts_of,
    settings_of,
    step_of,
)
from orrery.exchange.reading.stored import Stored
from orrery.exchange.reading.weights import fill
from orrery.models.encoder import Encoder
from orrery.models.meta_device import build_on_meta
from orrery.models.sentence_vectors import Pooling, Sentences, SentenceVectors, UnitLength
from orrery.nn.embeddings import TokenEmbedding
from orrery.nn.stack import Stack
from orrery.text import Tokenizer, load_tokenizer
from orrery.text.tokenizer import FILES

KIND, MODEL2VEC = "StaticEmbedding", "model2vec"
TABLE, OTHER_TABLE = "embedding.weight", "embeddings"
"""What sentence-transformers and model2vec call the table."""
_MAPPING, _FACTORS = "mapping", "weights"
"""The row of each token, where several share one, and what its row is multiplied by."""
_CONTEXT = 1_000_000
"""Tokens of a text, which nothing bounds: what published configurations write."""
_USUAL_LENGTH = 512
"""Tokens of a text in model2vec where its configuration says nothing."""


def table_in(folder: Path) -> Path | None:
    """Return the folder of the table in a folder of static vectors; None where it is none.

    Raises:
        ModelFileError: the list of modules or config.json is damaged.
    """
    if (folder / MODULES).is_file():
        kind, place = modules_of(folder)[0]
        return place if kind == KIND else None
    config = read_json(folder / CONFIG) if (folder / CONFIG).is_file() else {}
    return folder if config.get("model_type") == MODEL2VEC else None


def spec_of_table(place: Path) -> Encoder.Spec:
    """Return the architecture of a table: an encoder without blocks.

    Raises:
        ModelFileError: there is no table, or it has not two axes.
    """
    weights = open_weights(place)
    table = weights.entry(_named(weights, place))
    if len(table.shape) != 2 or not all(table.shape):
        raise ModelFileError(f"{place / WEIGHTS}: the table has the shape {list(table.shape)}", HINT)
    rows = weights.entry(_MAPPING).shape[0] if _MAPPING in weights else table.shape[0]
    embed = TokenEmbedding.Spec(vocabulary=rows)
    return Encoder.Spec(
        width=table.shape[1], context=_CONTEXT, embed=embed, stack=Stack.Spec(blocks=(), positions={}, masks={})
    )


def read_static(folder: Path, place: Path) -> Stored:
    """Read the table and the tokenizer at ``place``, and how the folder makes vectors.

    Raises:
        ModelFileError: a file is missing or damaged, or there is a module that is not built; it is named.
    """
    model = build_on_meta(spec_of_table(place))
    fill(model, {"embed.token.weight": _table(open_weights(place), place)})
    read = load_tokenizer(place / FILES[0])
    bare = _unframed(read)
    if (folder / MODULES).is_file():
        return Stored(folder, model, tokenizer=bare, sentences=_as_listed(folder, model.spec.width, read))
    config = read_json(folder / CONFIG)
    sentences = _as_model2vec(config, read, folder / CONFIG)
    return Stored(folder, model, config=config, tokenizer=bare, sentences=sentences)


def _as_listed(folder: Path, width: int, tokenizer: Tokenizer) -> Sentences:
    """Return how sentence-transformers makes vectors: the mean, and the modules behind."""
    said = settings_of(folder)
    vectors = SentenceVectors(Pooling(("mean",)), [step_of(kind, at) for kind, at in modules_of(folder)[1:]])
    vectors.steps.extend(cut_short(said.get("truncate_dim"), vectors, {"embedding_dimension": width}, folder))
    prompts, chosen = prompts_of(folder, said)
    # The length that stands in the tokenizer's own file is followed there too.
    length = (tokenizer.definition.get("truncation") or {}).get("max_length")
    return Sentences(vectors.eval(), length, prompts, chosen, similarity=said.get("similarity_fn_name"))


def _as_model2vec(config: Mapping[str, Any], tokenizer: Tokenizer, path: Path) -> Sentences:
    """Return how model2vec makes vectors: the mean over the known tokens, of length 1 where the configuration says so.

    Differs from it in one thing: it cuts a text of very long words before it is read, this one only its tokens.
    """
    normalises, length = config.get("normalize", False), config.get("max_length", _USUAL_LENGTH)
    if not isinstance(normalises, bool) or not (length is None or (type(length) is int and length > 0)):
        raise ModelFileError(f"{path}: normalize or max_length is neither true nor false, or no number", HINT)
    steps = [UnitLength()] if normalises else []
    unknown = (tokenizer.definition.get("model") or {}).get("unk_token")
    unread = None if unknown is None else tokenizer.id(unknown)
    return Sentences(SentenceVectors(Pooling(("mean",)), steps).eval(), length, unread=unread)


def _unframed(tokenizer: Tokenizer) -> Tokenizer:
    """Return a tokenizer that puts no special tokens around texts: the table's vectors are of a text's own tokens."""
    definition = {**tokenizer.definition, "post_processor": None}
    return tokenizer.defined_by(json.dumps(definition, ensure_ascii=False))


def _named(weights: Weights, place: Path) -> str:
    known = {TABLE, OTHER_TABLE, _MAPPING, _FACTORS}
    if len({TABLE, OTHER_TABLE} & weights.keys()) != 1 or not weights.keys() <= known:
        raise ModelFileError(f"{place / WEIGHTS} holds {', '.join(sorted(weights))[:100]}, and no one table", HINT)
    return TABLE if TABLE in weights else OTHER_TABLE


def _table(weights: Weights, place: Path) -> Tensor:
    """Return a row for each token: that which it shares with others, times its factor. Whole numbers become float32.

    Raises:
        ModelFileError: the parts do not fit each other.
    """
    table = weights[_named(weights, place)]
    table = table if table.is_floating_point() else table.float()
    rows = weights[_MAPPING] if _MAPPING in weights else torch.arange(len(table))
    if rows.is_floating_point() or bool((rows < 0).any()):
        raise ModelFileError(f"{place / WEIGHTS}: mapping holds what is no number of a row", HINT)
    try:
        table = table[rows.long()] if _MAPPING in weights else table
        if _FACTORS in weights:
            table = table.to(torch.promote_types(table.dtype, torch.float32)) * weights[_FACTORS][:, None]
    except (IndexError, RuntimeError) as error:
        raise ModelFileError(f"{place / WEIGHTS}: mapping or weights do not fit the table: {error}", HINT) from error
    return table
