"""A run on token shards: as on texts, but the ids stay on disk, so that a corpus may be larger than the memory."""

from orrery.data.batches import CropBatches, SequentialWindows
from orrery.data.shard_index import ShardSet, finished
from orrery.errors import UsageError
from orrery.nn.spec import to_json
from orrery.objectives.causal import CausalLanguageModel
from orrery.training.assemble_text import decoder
from orrery.training.begin import base_of
from orrery.training.building import Assembled, family_config, fitting, make_tokenizer, prepared, read_spec
from orrery.training.config import Recipe, ShardDataSettings
from orrery.training.evaluate import Validation
from orrery.training.loop import Parts

NAME = "shards"
"""What the shards are called in tables."""


def assemble_shards(recipe: Recipe, data: ShardDataSettings) -> Assembled:
    """Open the shards with the recipe's tokenizer, and build batches, objective and a fresh model.

    Raises `DataError` where the folder is unfinished or another tokenizer made it, `UsageError` for batches that
    need whole documents.
    """
    if recipe.batches.kind != "crops":
        raise UsageError(
            f"batches.kind {recipe.batches.kind} needs documents, and shards are one long text",
            "take batches.kind crops",
        )
    base = base_of(recipe.model)
    tokenizer = make_tokenizer(recipe.tokenizer, (), base)
    shards = ShardSet.open(data.shards, "train", tokenizer.fingerprint)
    config = family_config(recipe.model, base, vocab_size=tokenizer.size)
    spec = fitting(decoder(read_spec(recipe.model, config, base)), tokenizer.size, recipe.batches.length)
    model, notes = prepared(spec.build(), recipe, tokenizer, base)
    parts = Parts(
        model=model,
        objective=CausalLanguageModel(recipe.objective.label_smoothing),
        source=CropBatches(shards, recipe.batches.length, recipe.batches.size, recipe.seed),
        validation=validation(recipe, data, tokenizer.fingerprint),
        spec=to_json(spec),
        facts={"corpus": finished(data.shards).source, "tokenizer": tokenizer.fingerprint},
        begin=tokenizer.save,
        notes=notes,
    )
    return Assembled(
        parts, spec, tokenizer, {NAME: len(shards)}, config, recipe.batches.size * recipe.batches.length, base
    )


def validation(recipe: Recipe, data: ShardDataSettings, fingerprint: str) -> Validation | None:
    """Return windows over the validation shards, or None where the folder has none."""
    shards = ShardSet.open(data.shards, "validation", fingerprint)
    if len(shards) < 2:
        return None
    windows = SequentialWindows(shards, recipe.batches.length, recipe.batches.size)
    batches = min(len(windows), recipe.evaluation.batches or len(windows))
    size = finished(data.shards).splits["validation"].bytes
    return Validation(windows, batches, CausalLanguageModel(), bytes_per_token=size / (len(shards) - 1))
