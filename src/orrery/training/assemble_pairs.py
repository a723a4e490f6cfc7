"""A run on pairs: an encoder-decoder that learns to write each target from its source."""

from collections.abc import Sequence
from typing import Any

from orrery.data.corpora import Document, corpus_fingerprint, read_pairs
from orrery.data.pair_batches import Ends, PairBatches, SequentialPairs
from orrery.data.records import Pair
from orrery.errors import DataError, UsageError
from orrery.nn.spec import to_json
from orrery.objectives.seq2seq import TeacherForced
from orrery.text.tokenizer import Tokenizer
from orrery.training.begin import base_of
from orrery.training.building import (
    Assembled,
    family_config,
    fitting,
    make_tokenizer,
    prepared,
    read_spec,
)
from orrery.training.config import FilesSettings, PairDataSettings, Pairs, Recipe
from orrery.training.evaluate import Validation
from orrery.training.loop import Parts

Ids = tuple[list[int], list[int]]
NAME = "pairs"
"""What the pairs are called in metrics and tables."""


def assemble_pairs(recipe: Recipe, data: PairDataSettings) -> Assembled:
    """Read the pairs, make or load one tokenizer for both sides, and build batches, objective and a fresh model."""
    train = read(data, data.pairs)
    held_back = [] if data.val is None else read(data, data.val)
    base = base_of(recipe.model)
    tokenizer = make_tokenizer(recipe.tokenizer, (text for pair in train for text in (pair.source, pair.target)), base)
    start, end = start_token(tokenizer), tokenizer.special("end")
    config = family_config(recipe.model, base, vocab_size=tokenizer.size, decoder_start_token_id=start)
    spec = check_start(conditional(read_spec(recipe.model, config, base)), tokenizer)
    fitting(spec, tokenizer.size, recipe.batches.length)
    ends = Ends(spec.start, end)
    pairs, notes = short_enough(encode(tokenizer, train), recipe.batches.length, "training")
    others, more = short_enough(encode(tokenizer, held_back), recipe.batches.length, "validation")
    model, said = prepared(spec.build(), recipe, tokenizer, base)
    source = PairBatches(pairs, ends, recipe.batches.size, recipe.seed)
    parts = Parts(
        model=model,
        objective=TeacherForced(recipe.objective.label_smoothing),
        source=source,
        validation=validation(recipe, others, ends),
        spec=to_json(spec),
        facts={"corpus": fingerprint([*train, *held_back]), "tokenizer": tokenizer.fingerprint},
        begin=tokenizer.save,
        epochs=lambda step: {NAME: step * recipe.batches.size / source.rows_per_epoch},
        notes=(*said, *notes, *more),
    )
    tokens = sum(len(target) + 1 for _, target in pairs)
    return Assembled(
        parts, spec, tokenizer, {NAME: tokens}, config, round(tokens / len(pairs) * recipe.batches.size), base
    )


def read(data: PairDataSettings, pairs: Pairs) -> list[Pair]:
    """Return the pairs of two files or of a named set. Raises `DataError` where there is none."""
    files = (pairs.source, pairs.target) if isinstance(pairs, FilesSettings) else (pairs, None)
    found = list(read_pairs(*files, invalid=data.invalid, skip_bad=data.skip_bad))
    if not found:
        raise DataError(f"{' and '.join(filter(None, files))}: 0 pairs", "give two files of as many lines")
    return found


def fingerprint(pairs: Sequence[Pair]) -> str:
    """Return the sha256 of the pairs in their order."""
    return corpus_fingerprint(
        Document(f"{pair.line} {side}", text)
        for pair in pairs
        for side, text in (("source", pair.source), ("target", pair.target))
    )


def encode(tokenizer: Tokenizer, pairs: Sequence[Pair]) -> list[Ids]:
    """Return the ids of both sides, without start or end."""
    sources = tokenizer.encode_batch([pair.source for pair in pairs])
    return list(zip(sources, tokenizer.encode_batch([pair.target for pair in pairs]), strict=True))


def short_enough(pairs: Sequence[Ids], length: int, what: str) -> tuple[list[Ids], list[str]]:
    """Return the pairs whose source, and target with its end token, have at most ``length`` tokens, and what to say.

    Raises:
        DataError: there were pairs, and none is left.
    """
    kept = [(source, target) for source, target in pairs if len(source) <= length and len(target) < length]
    out = len(pairs) - len(kept)
    if pairs and not kept:
        raise DataError(f"every {what} pair is longer than {length:,} tokens", "raise batches.length")
    if not out:
        return kept, []
    return kept, [f"{out:,} of {len(pairs):,} {what} pairs left out: longer than batches.length, {length:,} tokens"]


def start_token(tokenizer: Tokenizer) -> int:
    """Return what a target begins with: the tokenizer's start token, or its end token where it has none."""
    return tokenizer.special("start" if "start" in tokenizer.roles else "end")


def conditional(found: Any) -> Any:
    """Return the spec of an encoder-decoder over tokens. Raises `UsageError` for another."""
    if not found.writes or "source" not in found.inputs:
        hint = "name a family that reads one side and writes the other: transformer, rnnsearch, t5, bart"
        raise UsageError("the objective seq2seq needs an encoder-decoder, this model is none", hint)
    return found


def check_start(spec: Any, tokenizer: Tokenizer) -> Any:
    """Return a spec whose targets begin with the tokenizer's start or end token. Raises `UsageError` for another."""
    allowed = {tokenizer.special(role): role for role in ("start", "end") if role in tokenizer.roles}
    if spec.start not in allowed:
        known = ", ".join(f"{id} ({role})" for id, role in allowed.items())
        message = f"the model's targets begin with token {spec.start}, which is no start or end of the tokenizer"
        raise UsageError(message, f"leave model.config.decoder_start_token_id out, or give {known}")
    return spec


def validation(recipe: Recipe, pairs: Sequence[Ids], ends: Ends) -> Validation | None:
    """Return the held-back pairs in their order, or None if there are none."""
    if not pairs:
        return None
    source = SequentialPairs(pairs, ends, recipe.batches.size)
    return Validation(source, min(len(source), recipe.evaluation.batches or len(source)), TeacherForced())
