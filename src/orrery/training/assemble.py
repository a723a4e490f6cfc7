"""From a recipe to what it names: data, tokenizer, batches, model and objective."""

from orrery.training.assemble_pairs import assemble_pairs
from orrery.training.assemble_shards import assemble_shards
from orrery.training.assemble_text import assemble_texts, read_portions
from orrery.training.building import Assembled
from orrery.training.config import PairDataSettings, Recipe, ShardDataSettings


def assemble(recipe: Recipe) -> Assembled:
    """Read the recipe's texts or pairs, or open its shards, and assemble a run on them."""
    if isinstance(recipe.data, PairDataSettings):
        return assemble_pairs(recipe, recipe.data)
    if isinstance(recipe.data, ShardDataSettings):
        return assemble_shards(recipe, recipe.data)
    return assemble_texts(recipe, *read_portions(recipe.data))
