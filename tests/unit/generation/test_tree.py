import math
from xml.etree import ElementTree

import pytest
import torch

from orrery.generation.beams import LengthPenalty
from orrery.generation.generate import generate
from orrery.generation.row import Limits
from orrery.generation.samplers import sampler
from orrery.generation.scoring import log_probabilities
from orrery.generation.search import beam_search
from orrery.generation.tree import StartedOnce, root, with_answer, with_beams
from orrery.reports.tree import tree_picture
from tiny_models import TOKENIZER, smallest

PROMPT = [5, 9, 31]
LIMITS = Limits(4, 40, end=(3,))


@pytest.fixture(scope="module")
def grown():
    model, tree = smallest("gpt2"), root()
    answers = with_beams(tree, model, PROMPT, LIMITS, 3, penalty=LengthPenalty(0.6))
    for number in range(2):
        drawn = generate(model, [PROMPT], TOKENIZER, LIMITS, sampler=sampler(temperature=2.0), seed=number)[0]
        with_answer(tree, model, PROMPT, drawn.ids, f"sample {number + 1}", capacity=40)
    return model, tree, answers


def paths(node, before=()):
    for child in node.sorted():
        yield (*before, child.token), child
        yield from paths(child, (*before, child.token))


def test_every_cost_is_that_of_a_full_forward(grown):
    model, tree, _ = grown
    for path, node in paths(tree):
        row = torch.tensor([[*PROMPT, *path]])
        with torch.no_grad():
            each = -log_probabilities(model.logits(row), row)[0, len(PROMPT) - 1 :]
        assert node.total == pytest.approx(float(each.sum()), abs=1e-9)
        assert node.cost == pytest.approx(float(each[-1]), abs=1e-9)


@pytest.mark.parametrize("family", ["llama", "t5", "mamba", "rnnsearch"])
def test_a_prompt_is_read_once_and_nobody_sees_what_others_have_written(family):
    model, calls = smallest(family), []

    class Counting:
        first_token = model.first_token

        def start(self, *given):
            calls.append(given)
            return model.start(*given)

        def step(self, *given):
            return model.step(*given)

    once, ids = StartedOnce(Counting()), torch.tensor([PROMPT])
    with torch.no_grad():
        for token in (7, 11, 7):
            for lengths in (None, [3]):
                first, session = once.start(ids, 40, lengths)
                expected, alone = model.start(ids, 40, lengths)
                assert torch.equal(first, expected)
                tokens = torch.tensor([[token]])
                assert torch.equal(once.step(tokens, session), model.step(tokens, alone))
                first += 1  # what one is given is its own
    assert len(calls) == 1
    once.start(torch.tensor([[5, 9, 32]]), 40)
    once.start(ids, 41)
    assert len(calls) == 3


def test_the_beams_keep_what_the_search_keeps_and_drop_the_rest(grown):
    model, tree, answers = grown
    plain = beam_search(model, [PROMPT], LIMITS, 3, penalty=LengthPenalty(0.6), answers=3)[0]
    assert [one.ids for one in answers] == [one.ids for one in plain]
    fates = {path: node.fate for path, node in paths(tree) if not any("sample" in way for way in node.ways)}
    for depth in range(1, 5):
        here = {path: fate for path, fate in fates.items() if len(path) == depth}
        assert sum(fate == "kept" for fate in here.values()) <= 3
    assert "pruned" in fates.values()
    for number, one in enumerate(answers, start=1):
        marked = [path for path, node in paths(tree) if f"beam {number}" in node.ways]
        assert marked == [tuple(one.ids[:length]) for length in range(1, len(one.ids) + 1)]
        assert tree_node(tree, one.ids).fate == "ended"


def tree_node(tree, ids):
    for token in ids:
        tree = tree.children[token]
    return tree


def test_a_pruned_way_is_dearer_than_each_that_was_kept(grown):
    _, tree, _ = grown
    first = [node for path, node in paths(tree) if len(path) == 1 and not node.ways]
    dropped = [node.total for node in first if node.fate == "pruned"]
    kept = [node.total for path, node in paths(tree) if len(path) == 1 and node.fate != "pruned"]
    assert max(kept[:1], default=-math.inf) <= min(dropped, default=math.inf)


def test_the_picture_shows_every_token_once(grown):
    _, tree, _ = grown
    branches = [child.plain(str) for child in tree.sorted()]
    picture = ElementTree.fromstring(tree_picture("<the> text", branches, title="a tree"))
    texts = [element for element in picture.iter("{http://www.w3.org/2000/svg}text")]
    nodes = len(list(paths(tree)))
    assert len(texts) == nodes + 2  # the title and the text before
    assert len([path for path in picture.iter("{http://www.w3.org/2000/svg}path")]) == nodes
    places = [(element.get("x"), element.get("y")) for element in texts]
    assert len(set(places)) == len(places)


@pytest.mark.parametrize("family", ["t5", "lstm", "rnnsearch"])
def test_trees_of_other_models(family):
    model, tree = smallest(family), root()
    answers = with_beams(tree, model, PROMPT, Limits(3, 24), 2)
    with_answer(tree, model, PROMPT, answers[0].ids, "again", capacity=24)
    node = tree_node(tree, answers[0].ids)
    assert node.ways == ["beam 1", "again"]
    assert node.total == pytest.approx(-answers[0].log_probability)
