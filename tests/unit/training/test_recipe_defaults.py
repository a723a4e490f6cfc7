"""What a recipe means where it says nothing: a changed default would change every run that relies on it.

``tests/data/recipe_defaults.json`` is the table, by section and key. A new section or key is a new line there.
"""

import json
from pathlib import Path

from pydantic import BaseModel

from orrery.data.sources import SOURCES
from orrery.metrics import METRICS
from orrery.models.heads import HEADS
from orrery.objectives import OBJECTIVES
from orrery.recipes import config, word_vectors  # noqa: F401 - their sections are read
from orrery.reports.observers import OBSERVERS
from orrery.rewards import REWARDS
from orrery.schema.section import Section
from orrery.studies.ladder import settings  # noqa: F401 - its section is read
from orrery.studies.stages import recipe  # noqa: F401 - its sections are read

TABLE = Path(__file__).parents[2] / "data" / "recipe_defaults.json"


def sections(base=Section):
    """Yield every section that the package defines."""
    for registry in (OBJECTIVES, SOURCES, METRICS, HEADS, REWARDS, OBSERVERS):
        for name in registry.names():
            registry.find(name)
    for section in base.__subclasses__():
        # Settings of pipelines and views and files of machines are no part of a recipe; they are there where another
        # test asked for one.
        part = section.__module__.startswith("orrery.")
        if part and not section.__module__.startswith(("orrery.tasks.", "orrery.page.views.", "orrery.planning.")):
            yield section
        yield from sections(section)


def defaults():
    """Return the defaults of every section's keys, as JSON has them."""
    by_section = {}
    for section in sections():
        given = {key: field.get_default(call_default_factory=True) for key, field in section.model_fields.items()}
        plain = {
            key: value.model_dump(mode="json") if isinstance(value, BaseModel) else value
            for key, value in given.items()
            if not section.model_fields[key].is_required()
        }
        if plain:
            by_section[f"{section.__module__.rpartition('.')[2]}.{section.__qualname__}"] = plain
    return json.loads(json.dumps(by_section, default=str))


def test_every_default_is_in_the_table():
    assert defaults() == json.loads(TABLE.read_text(encoding="utf-8"))
