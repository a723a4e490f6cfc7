"""What a recipe means where it says nothing: a changed default would change every run that relies on it.

``tests/data/recipe_defaults.json`` is the table, by section and key. A new section or key is a new line there.
"""

import json
from pathlib import Path

from pydantic import BaseModel

from orrery.training import config, word_vector_recipe

TABLE = Path(__file__).parents[2] / "data" / "recipe_defaults.json"


def defaults():
    """Return the defaults of every section's keys, as JSON has them."""
    found = {}
    for module in (config, word_vector_recipe):
        for name, section in sorted(vars(module).items()):
            if (
                isinstance(section, type)
                and issubclass(section, config.Section)
                and section.__module__ == module.__name__
            ):
                given = {
                    key: field.get_default(call_default_factory=True) for key, field in section.model_fields.items()
                }
                plain = {
                    key: value.model_dump(mode="json") if isinstance(value, BaseModel) else value
                    for key, value in given.items()
                    if not section.model_fields[key].is_required()
                }
                if plain:
                    found[f"{module.__name__.rpartition('.')[2]}.{name}"] = plain
    return json.loads(json.dumps(found, default=str))


def test_every_default_is_in_the_table():
    assert defaults() == json.loads(TABLE.read_text(encoding="utf-8"))
