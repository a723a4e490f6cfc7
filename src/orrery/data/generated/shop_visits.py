"""Who bought what when: generated histories in which what comes next follows from the last item and from the user."""

import random
from collections.abc import Iterator
from functools import cache

from orrery.data.generated import GeneratedSet, register
from orrery.data.splits import held_back

USERS = 6_000
SHORTEST, LONGEST = 10, 36
"""Items of a user."""
THINGS = (
    "tent", "lamp", "rope", "stove", "boots", "jacket", "map", "compass", "bottle", "knife", "mug", "kettle", "blanket",
    "pillow", "hammock", "axe", "saw", "shovel", "torch", "battery", "radio", "watch", "gloves", "scarf", "cap",
    "socks", "belt", "bag", "basket", "bucket", "brush", "soap", "towel", "mirror", "comb", "notebook", "pencil",
    "ruler", "paint", "canvas",
)  # fmt: skip
MAKERS = (
    "alder", "birch", "cedar", "dogwood", "elm", "fir", "gorse", "hazel", "ivy", "juniper", "kelp", "larch", "maple",
    "nettle", "oak", "pine", "quince", "rowan", "spruce", "thyme", "umber", "vetch", "willow", "yarrow", "zinnia",
    "amber", "basalt", "chalk", "dolomite", "ember", "flint", "granite", "heath", "iron", "jasper", "karst", "lime",
    "marble", "nickel", "opal", "pewter", "quartz", "ruby", "slate", "topaz", "umbra", "verdite", "wolfram", "xenon",
    "zircon",
)  # fmt: skip
FOLLOWS = (0.6, 0.25, 0.15)
"""How likely each of the three things is that follow a thing."""
LIKES = (0.6, 0.3)
"""How likely a user takes the first maker of its own, and the second; otherwise any."""
CHANCE = 0.1
"""How likely an item is any at all, the first makers more often."""
NEW = 20
"""One item in so many (by the sha256 of its name) is new: a user can take it as the last one alone."""


@register
class ShopVisits(GeneratedSet):
    """User, item, time, and what the item is in words."""

    kind = "shop_visits"
    what = "what 6,000 users buy in order, of 2,000 items, which are 40 things of 50 makers, as user, item and time"
    made_from = "nothing"
    how = (
        "each thing is followed by three others, one of them more often; a user has two makers of its own and takes "
        "most things of these; one item in ten is any other; nothing is bought twice; every twentieth item (by the "
        "sha256 of its name) is new, so that it is the last of a user or of nobody; some times are equal"
    )
    parts = ("train",)
    columns = ("user", "item", "time", "text")
    text = "text"

    def records(self, part: str) -> Iterator[dict[str, str]]:
        """Yield the actions, user by user."""
        for number in range(USERS):
            rng = random.Random(f"shop visits {number}")
            time = rng.randrange(1_000_000)
            for thing, maker in bought(rng, rng.randrange(SHORTEST, LONGEST + 1)):
                time += rng.choice((0, 60, 3600, 86400))
                item = name(thing, maker)
                yield {"user": f"u{number}", "item": item, "time": str(time), "text": f"a {thing} made by {maker}"}


def bought(rng: random.Random, items: int) -> Iterator[tuple[str, str]]:
    """Yield the things of one user with their makers, none twice, and a new one at most as the last."""
    own, thing, taken = rng.sample(MAKERS, len(LIKES)), rng.choice(THINGS), set[tuple[str, str]]()
    for number in range(items):
        while True:
            one = (rng.choice(THINGS), popular(rng)) if rng.random() < CHANCE else (_after(rng, thing), _of(rng, own))
            if one not in taken and (number == items - 1 or not is_new(*one)):
                break
        thing = one[0]
        taken.add(one)
        yield one


@cache
def following(thing: str) -> tuple[str, ...]:
    """Return the three things that follow one, the likeliest first."""
    others = [other for other in THINGS if other != thing]
    return tuple(random.Random(f"what follows {thing}").sample(others, len(FOLLOWS)))


def popular(rng: random.Random) -> str:
    """Return any maker, the first ones more often."""
    return MAKERS[int(len(MAKERS) * rng.random() ** 2)]


def name(thing: str, maker: str) -> str:
    """Return what an item is called."""
    return f"{thing}-{maker}"


def is_new(thing: str, maker: str) -> bool:
    """Say whether an item came last."""
    return held_back(name(thing, maker), NEW)


def _after(rng: random.Random, thing: str) -> str:
    return rng.choices(following(thing), FOLLOWS)[0]


def _of(rng: random.Random, own: list[str]) -> str:
    drawn = rng.random()
    return own[0] if drawn < LIKES[0] else own[1] if drawn < sum(LIKES) else popular(rng)
