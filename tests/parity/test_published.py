"""Configurations as they were really published: each is read, and the model has as many parameters as it was said to.

``tests/data/published_configs.jsonl`` holds a model a line: its name, what ``config.json`` says, the published number
of parameters where one is exact, and where both are from. A number that counts another class than the file's (a
backbone without its head) says which in ``counted_as``.
"""

import json
import warnings
from copy import deepcopy
from pathlib import Path

import pytest
import torch

from orrery.exchange.reading.architecture import published
from orrery.families import names
from orrery.models.distinct_blocks import distinct_blocks
from tests.parity.oracle import REFERENCED
from tests.parity.stand_ins import class_of

DATA = Path(__file__).parents[1] / "data/published_configs.jsonl"
LINES = [json.loads(line) for line in DATA.read_text().splitlines()]
CONFIGS = {line["model"]: line for line in LINES}
CLASSES = {"MPTForCausalLM": "MptForCausalLM"}
"""Classes that lived beside the weights, and what transformers calls them."""


def config_of(line):
    """Return a configuration, of the class whose parameters were counted."""
    counted = {"architectures": [line["counted_as"]]} if "counted_as" in line else {}
    return {**line["config"], **counted}


def parameters(config):
    """Return how many parameters Orrery's model has, those that no gradient changes left out."""
    return distinct_blocks(published(deepcopy(config), Path("config.json"))).parameters(trained=True)


def reference(config):
    """Return how many the reference's has."""
    name = (config.get("architectures") or [""])[0]
    make = class_of(CLASSES.get(name, name))
    with warnings.catch_warnings(), torch.device("meta"):
        warnings.simplefilter("ignore")
        model = make._from_config(make.config_class.from_dict(deepcopy(config)))
    count = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    if config["model_type"] in ("t5", "mt5") and config.get("tie_word_embeddings") is False:
        count += config["vocab_size"] * config["d_model"]  # the reference ties the head until it sees the file's own
    return count


def test_there_are_many_of_every_family():
    assert len(CONFIGS) == len(LINES) >= 60
    kinds = {line["config"]["model_type"].replace("-", "_") for line in LINES}
    assert {name for name in REFERENCED & set(names())} <= kinds


@pytest.mark.parametrize("model", CONFIGS)
def test_a_published_configuration_is_read(model):
    line = CONFIGS[model]
    config = config_of(line)
    counted = parameters(config)
    assert counted == reference(config)
    frozen = distinct_blocks(published(deepcopy(config), Path("config.json"))).parameters()
    assert line["parameters"] in (None, counted, frozen)
