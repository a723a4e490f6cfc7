"""A seed gives every family the weights that it always gave.

``tests/data/initial_weights.json`` was written by the commit before modules came to draw their own (5253435): by family
the SHA-256 of all parameters, and a sum that another processor can reproduce, whose normal numbers may differ in the
last place. Encoder-decoders have had other names for their parts since, with the same numbers under them; one with two
tables (marian here) now draws that of its targets behind its reader.

A new family is a new line: ``python tests/unit/models/test_initial_weights.py FAMILY`` prints it.
"""

import hashlib
import json
import sys
from pathlib import Path

import pytest
import torch

from orrery.families import load_family, names
from orrery.models.initialise import initialise

TABLE = json.loads((Path(__file__).parents[2] / "data" / "initial_weights.json").read_text(encoding="utf-8"))


def drawn(family):
    """Return the digest and the sum of a family's tiny model, as built and drawn from fixed seeds."""
    rules = load_family(family)
    torch.manual_seed(0)
    model = rules.spec(rules.TINY).build(0)
    initialise(model, len(model.stack.blocks), seed=11)
    digest, total = hashlib.sha256(), 0.0
    for name, parameter in sorted(model.named_parameters()):
        values = parameter.detach()
        digest.update(name.encode() + values.numpy().tobytes())
        waves = torch.cos(torch.arange(values.numel(), dtype=torch.float64) + len(name))
        total += float((values.double().flatten() * waves).sum())
    return digest.hexdigest()[:16], round(total, 9)


@pytest.mark.parametrize("family", names())
def test_a_seed_gives_the_weights_that_it_always_gave(family):
    digest, total = drawn(family)
    expected_digest, expected_total = TABLE["families"][family]
    assert total == pytest.approx(expected_total, abs=1e-4)
    if torch.backends.cpu.get_cpu_capability() == TABLE["processor"]:
        assert digest == expected_digest


if __name__ == "__main__":
    print(*(json.dumps({family: drawn(family)}) for family in sys.argv[1:]), sep="\n")
