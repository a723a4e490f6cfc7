"""Single things: a digit or a shape in one of four colours, somewhere in a small picture."""

from collections.abc import Iterator
from typing import Any

from orrery.data.generated import GeneratedSet, register

COUNTS = {"train": 4000, "val": 700}
SIDE = 48
"""Pixels of a picture."""
SIZES = (16, 23)
"""Pixels of the square that a thing is drawn in, from the one to below the other."""


@register
class Things(GeneratedSet):
    """Pictures of one thing each, labelled with its name."""

    kind = "things"
    what = "pictures of one thing, a digit or a shape, 48 x 48 pixels in colour, and its name: 14 labels"
    made_from = "nothing"
    how = (
        "ten digits drawn by strokes and four shapes, each turned, sheared and scaled at random, in one of four "
        "colours on a dark ground with noise; 4,000 are `train`, 700 `val`, drawn with seeds of their own"
    )
    columns = ("picture", "label")
    text = "label"
    label = "label"

    def records(self, part: str) -> Iterator[dict[str, Any]]:
        """Yield the pictures of a part, as many of each thing."""
        import numpy as np

        from orrery.data.generated._drawing import COLOURS, THINGS, Drawn, drawn, painted
        from orrery.data.pictures.addresses import as_address

        draws = np.random.default_rng([14, self.parts.index(part)])
        for number in range(COUNTS[part]):
            name, side = list(THINGS)[number % len(THINGS)], int(draws.integers(*SIZES))
            top, left = draws.integers(0, SIDE - side, 2)
            colour = list(COLOURS)[draws.integers(len(COLOURS))]
            thing = Drawn(name, colour, int(top), int(left), drawn(name, side, draws))
            yield {"picture": as_address(painted([thing], SIDE, draws)), "label": name}
