"""A session has one owner: what hands its memory over ends it, a fork is independent, and no step asks the device."""

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from orrery.errors import UsageError
from orrery.families import load_family
from orrery.laws.cache import kinds
from orrery.laws.models import random_ids, spec_of, tiny
from orrery.nn.cache.kinds import cache_for, growing, static

FAMILIES = ["llama", "gpt2", "mistral", "gemma3_text", "deepseek_v2", "lstm", "nplm", "t5", "rnnsearch", "luong"]
"""Growing, static, sliding, latent and recurrent stores, and what is made of a source."""
DENSE = {"deepseek_v2": {"first_k_dense_replace": 99}}
"""A mixture of experts asks how many tokens each expert got, which is no question of a row's length."""
CAPACITY = 40
pytestmark = pytest.mark.usefixtures("without_gradients")


@pytest.fixture
def without_gradients():
    with torch.no_grad():
        yield


def model_of(family):
    if family not in DENSE:
        return tiny(family)
    rules = load_family(family)
    return rules.spec({**rules.TINY, **DENSE[family]}).build(0).double().eval()


def started(family, rows=2, **call):
    model = tiny(family)
    return model, model.start(random_ids(rows, 5), CAPACITY, **call)[1]


OPERATIONS = {
    "select": lambda session, other: session.select([1, 0]),
    "reorder": lambda session, other: session.reorder(torch.tensor([1, 1])),
    "join": lambda session, other: session.join(other),
    "join, the other": lambda session, other: other.join(session),
    "truncate": lambda session, other: session.truncate([9, 9]),
}
USES = {
    "step": lambda model, session: model.step(random_ids(2, 1), session),
    "select": lambda model, session: session.select([0]),
    "join": lambda model, session: session.join(session),
    "truncate": lambda model, session: session.truncate([1, 1]),
    "fork": lambda model, session: session.fork(),
    "lengths": lambda model, session: session.lengths,
    "bytes": lambda model, session: session.bytes(),
}


@pytest.mark.parametrize("family", ["llama", "mistral", "lstm", "t5"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_who_has_given_the_memory_away_is_refused_by_name(family, operation):
    model, session = started(family)
    new = OPERATIONS[operation](session, started(family)[1])
    name = operation.split(",")[0]
    for use in USES.values():
        with pytest.raises(UsageError, match=rf"this session is over: {name}\(\) has taken its cache over") as caught:
            use(model, session)
        assert "fork()" in caught.value.hint
    assert model.step(random_ids(len(new.lengths), 1), new).shape[0] == len(new.lengths)


REFUSED = {
    "rows": (lambda s: s.select([0, 2]), "row 2 of a session of 2 rows"),
    "rows below zero": (lambda s: s.select([0, -1]), r"rows \[0, -1\]"),
    "a mask of rows": (lambda s: s.select(torch.tensor([True, False])), r"rows \[True, False\]"),
    "an order of fewer rows": (lambda s: s.reorder([0]), "1 rows in the place of 2"),
    "itself": (lambda s: s.join(s), "joined to itself"),
    "another capacity": (lambda s: s.join(tiny("llama").start(random_ids(1, 3), 7)[1]), "cannot be joined"),
    "lengths": (lambda s: s.truncate([1]), "1 lengths for 2 rows"),
    "parts of tokens": (lambda s: s.truncate(torch.tensor([1.5, 2])), r"lengths \[1.5, 2.0\]"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused_leaves_the_session_as_it_was(what):
    model, session = started("llama")
    act, message = REFUSED[what]
    with pytest.raises(UsageError, match=message):
        act(session)
    assert session.lengths == (5, 5)
    model.step(random_ids(2, 1), session)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_fork_goes_its_own_way(family):
    """Both go on as sessions that were never forked do, to the bit; the fork holds as much."""
    model, session = started(family)
    alone = [started(family)[1] for _ in range(2)]
    fork = session.fork()
    assert fork.bytes() == session.bytes()
    for t in range(3):
        for own, (mine, undisturbed) in enumerate(((fork, alone[0]), (session, alone[1]))):
            tokens = random_ids(2, 1, seed=10 * own + t)
            assert torch.equal(model.step(tokens, mine), model.step(tokens, undisturbed))
    shorter = fork.select([1])
    assert session.lengths == (8, 8)
    assert shorter.lengths == (8,)


@pytest.mark.parametrize("family", ["llama", "lstm"])
def test_a_step_that_fails_half_way_ends_the_session(family, monkeypatch):
    model, session = started(family)
    with pytest.raises(UsageError, match="does not fit"):
        model.step(random_ids(2, CAPACITY), session)
    model.step(random_ids(2, 1), session)  # nothing had begun
    broken = model.stack.blocks[-1]
    monkeypatch.setattr(type(broken), "forward", lambda self, x, ctx: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        model.step(random_ids(2, 1), session)
    monkeypatch.undo()
    with pytest.raises(UsageError, match="a step failed when it had begun to write"):
        model.step(random_ids(2, 1), session)


@pytest.mark.parametrize("family", ["llama", "t5"])
def test_a_cache_serves_one_session(family):
    model, cache = tiny(family), growing(2, 9)
    model = getattr(model, "model", model)
    model.start(random_ids(2, 3), 9, cache=cache)
    with pytest.raises(UsageError, match="holds the tokens of another session"):
        model.start(random_ids(2, 3), 9, cache=cache)
    with pytest.raises(UsageError, match="a cache of 3 rows for 2"):
        model.start(random_ids(2, 3), 9, cache=static(3, 9))


def test_lengths_that_rows_cannot_have_are_refused():
    model, session = started("llama")
    for lengths in ([1], [1, 3], [1, 1, 1]):
        with pytest.raises(UsageError, match="of 2 rows of 2 tokens"):
            model.step(random_ids(2, 2), session, lengths)
    assert session.lengths == (5, 5)


def test_selecting_all_rows_in_their_order_moves_nothing():
    _, session = started("llama")
    keys = next(iter(session.cache.stores.values())).keys
    assert next(iter(session.select([0, 1]).cache.stores.values())).keys is keys


class Asked:
    """Counts how often Python asks for a number of a tensor, by which it would wait for a device."""

    NUMBERS = frozenset({"_local_scalar_dense", "is_nonzero", "equal", "nonzero", "bincount", "masked_select"})
    METHODS = frozenset({"tolist", "item", "cpu", "numpy", "__bool__", "__int__", "__float__", "__index__"})

    def __init__(self):
        self.names, outer = [], self

        class Operations(TorchDispatchMode):
            def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                name = function.overloadpacket.__name__
                boolean = (
                    name.startswith("index")
                    and any(isinstance(x, torch.Tensor) and x.dtype == torch.bool for x in (args[1] or ()))
                    if name in ("index", "index_put", "index_put_")
                    else False
                )
                if name in outer.NUMBERS or boolean:
                    outer.names.append(name)
                return function(*args, **(kwargs or {}))

        class Methods(TorchFunctionMode):
            def __torch_function__(self, function, types, args=(), kwargs=None):
                if getattr(function, "__name__", "") in outer.METHODS:
                    outer.names.append(function.__name__)
                return function(*args, **(kwargs or {}))

        self.modes = Operations(), Methods()

    def __enter__(self):
        for mode in self.modes:
            mode.__enter__()
        return self.names

    def __exit__(self, *error):
        for mode in reversed(self.modes):
            mode.__exit__(*error)


def test_who_asks_is_heard():
    x = torch.ones(2)
    asks = [
        lambda: x.tolist(), lambda: x[0].item(), lambda: bool(x.all()), lambda: int(x[0]), lambda: x[x > 0],
        lambda: torch.equal(x, x), lambda: x.nonzero(), lambda: x.masked_fill_(x > 0, 1.0).cpu(),
    ]  # fmt: skip
    for ask in asks:
        with Asked() as asked:
            ask()
        assert asked
    with Asked() as asked:
        x[torch.tensor([0, 1])] * 2
    assert not asked


@pytest.mark.parametrize("kind", ["one row", "equal rows", "ragged rows", "unequal steps"])
@pytest.mark.parametrize("family", FAMILIES)
def test_no_step_asks_the_device_how_long_a_row_is(family, kind):
    rows = 1 if kind == "one row" else 3
    lengths = [5, 2, 4] if kind in ("ragged rows", "unequal steps") else None
    model = model_of(family)
    for name, cache in kinds(model).items():
        _, session = model.start(random_ids(rows, 5), CAPACITY, lengths, cache=cache(rows, CAPACITY))
        with Asked() as asked:
            for _ in range(9):
                model.step(random_ids(rows, 1), session, [1, 0, 1] if kind == "unequal steps" else None)
        assert not asked, name


@pytest.mark.parametrize("family", ["llama", "mistral", "deepseek_v2", "t5"])
def test_neither_do_prompts_and_steps_of_several_tokens(family):
    model = model_of(family)
    with Asked() as asked:
        _, session = model.start(random_ids(3, 5), CAPACITY, [5, 2, 4])
        model.step(random_ids(3, 4), session, [0, 4, 1])
        session = session.select([2, 0]).join(model.start(random_ids(1, 3), CAPACITY)[1])
        model.step(random_ids(3, 2), session)
    assert not asked
    assert session.lengths == (7, 7, 5)


def test_every_kind_of_store_is_asked():
    store_kinds = {
        cache_for(tiny(family).stack.masks, 1, CAPACITY).kind for family in FAMILIES if spec_of(family).writes
    }
    assert {"growing", "recurrent"} < store_kinds
    assert any("sliding" in kind for kind in store_kinds)
