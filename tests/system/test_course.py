"""The course as a book: each item of its inventory has a slide, and an example that prints what the slide has."""

import ast
import contextlib
import io
import json
import re
import subprocess
import sys
import time

import pytest
import torch

from browser import Seen
from orrery.cli.program import run
from orrery.errors import UsageError
from orrery.generation.filters import History, Temperature
from orrery.laws.golden import sinusoid
from orrery.nn.masks import Causal, TokenPositions, Window, bind
from orrery_course.course import DAYS, EVENING, SUBJECTS, Deck, Item, decks, find, searched
from orrery_course.course._words import ALSO
from orrery_course.course.attending import attention
from pages import DOCS, module

INVENTORY = {"W": 9, "R": 12, "T": 15, "F": 12, "D": 9, "P": 10, "X": 5, "V": 6, "C": 1}
"""How many items of each kind the decks have: words, recurrences, Transformers, families, data, training, decoding,
views, counting."""
ITEMS = [item for deck in decks().values() for item in deck.items]
TRAINED = {
    *("S0 rlhf", "S1 automaton", "S1 instability", "S2 heat-map", "S2 original", "S3 residual", "S3 rnn-lm"),
    *("S3 pretraining", "S3 benchmarks", "S4 cloze", "S4 tasks", "S4 by-length", "S4 fixed-context", "S4 distance"),
    *("S4 progress", "S4 captions", "S4 x-bert", "S4 shared", "S4 pronoun"),
}
"""What takes seconds each: the documentation's build runs them too."""
SECONDS = 60
NUMBER = re.compile(r"\d[\d.,]*\d")

every_item = pytest.mark.parametrize("item", ITEMS, ids=lambda item: f"{item.deck}-{item.name}")
every_run = pytest.mark.parametrize(
    "item",
    [pytest.param(item, marks=pytest.mark.long if f"{item.deck} {item.name}" in TRAINED else ()) for item in ITEMS],
    ids=lambda item: f"{item.deck}-{item.name}",
)


def literals(source: str) -> list[str]:
    """Return the texts that stand as they are in what an example prints."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    printing = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "print"]
    parts = [part for call in printing for one in call.args for part in plain(one)]
    return [part.value for part in parts if isinstance(part.value, str)]


def plain(node: ast.AST) -> list[ast.Constant]:
    """Return the constants of a printed value that are text, and no format of a number."""
    if isinstance(node, ast.Constant):
        return [node]
    if isinstance(node, ast.JoinedStr):
        return [part for part in node.values if isinstance(part, ast.Constant)]
    return []


def printed(item: Item, folder) -> str:
    """Run an item as its page does, and return what it writes."""
    page = module("_examples").Page(folder)
    if item.source:
        return page.run(item.source)[0]
    return page.command(item.lines)


@every_run
def test_an_item_runs_in_time_and_prints_what_its_slide_has(item, tmp_path):
    begin = time.process_time()
    shown = printed(item, tmp_path)
    assert time.process_time() - begin < SECONDS
    assert shown.strip()
    if not item.slips:
        assert [number for number in item.given if number not in shown] == []


@every_item
def test_no_number_is_printed_that_was_not_computed(item):
    texts = literals(item.source) if item.source else []
    assert [text for text in texts if NUMBER.search(text)] == []
    words = {word for text in texts for word in text.split()}
    assert words.isdisjoint(item.given)


def test_a_number_that_is_typed_is_found():
    assert literals("print('a', f'b {3:.2f} c')\nprint(f(1), 'd')") == ["a", "b ", " c", "d"]
    assert NUMBER.search("the sum is 1.25")
    assert not NUMBER.search("a_3 of 4 words")


def test_every_item_of_the_inventory_has_its_place():
    wanted = {f"{kind}{number}" for kind, count in INVENTORY.items() for number in range(1, count + 1)}
    assert len(wanted) == 79
    assert wanted == {code for item in ITEMS for code in item.codes}


def test_the_orders_of_reading_have_every_item_once_and_nothing_before_what_it_needs():
    listed = [name for subject in SUBJECTS for name in subject.items]
    assert sorted(listed) == sorted(f"{item.deck} {item.name}" for item in ITEMS)
    assert set(EVENING) <= set(listed)
    assert [place for day in DAYS for place in day] == list(range(len(SUBJECTS)))
    names = [subject.name for subject in SUBJECTS]
    assert all(names.index(need) < place for place, subject in enumerate(SUBJECTS) for need in subject.needs)


def test_an_item_says_what_it_is():
    for item in ITEMS:
        assert bool(item.source) != bool(item.lines), item.name
        assert all((item.title, item.about, item.slide, item.codes)), item.name
        assert not item.title.endswith("."), item.name
        assert re.fullmatch(r"[a-z0-9-]+", item.name), item.name
    for deck in decks().values():
        assert deck.to_see
        assert deck.find(deck.change)[0].source


def test_an_item_is_found_by_its_name_and_by_words():
    deck = find("s0")
    assert [one.name for one in deck.find("cbow")] == ["cbow"]
    assert [one.name for one in deck.find("layer norm aside")] == ["layer-norm"]
    assert [one.name for one in deck.find("W1")] == ["one-hot"]
    assert [one.name for one in deck.find("Transformer Blocks")] == ["block"]
    with pytest.raises(UsageError, match="S0 has no item 'cbov'") as none:
        deck.find("cbov")
    assert none.value.hint.startswith("did you mean cbow?")
    with pytest.raises(UsageError) as none:
        deck.find("beam search")
    assert none.value.hint == "other decks have: S2 original, S3 greedy"
    with pytest.raises(UsageError, match="the course has no deck 'S7'"):
        find("S7")
    for nothing in ("", " ", "("):
        assert searched(ITEMS, nothing) == []


ASKED = {
    "teacher forcing": "S2 original", "beam search": "S3 greedy", "perplexity": "S0 next-word",
    "causal mask": "S1 mask", "skip-gram": "S4 skip-gram", "negative sampling": "S4 negative-sampling",
    "BPE": "S1 bpe-table", "Noam": "S1 noam", "scaling by root d": "S0 self-attention", "KV cache": "S3 cache",
    "reward model": "S0 rlhf", "PPO": "S0 rlhf", "HiPPO": "S4 progress", "selective scan": "S4 progress",
    "multihead": "S0 multi-head", "MoE": "S2 deepseek", "masked language model": "S2 bert", "NER": "S4 tasks",
    "T5": "S4 encoder-decoders", "vanishing gradients": "S4 gradients", "coreference": "S4 pronoun",
    "cross-entropy": "S0 next-word", "dot-product": "S2 kinds-of-attention", "in-context learning": "S1 automaton",
    "why divide by sqrt(d_k)?": "S0 self-attention", "How is the softmax applied": "S3 softmax-and-mask",
    "top p": "S3 sampling", "汉字": "S3 characters", "GPT-2": "S3 gpts", "WordNet": "S4 retrieval",
    "Cats are fickle creatures": "S2 pipeline", "the best of times": "S3 padding", "overfitting": "S3 residual",
    "175,181,291,520": "S4 weights", "Henry is givin' a lectrue": "S3 words", "counselor": "S4 distance",
}  # fmt: skip


def test_words_of_the_field_find_their_slides():
    for text, name in ASKED.items():
        assert name in [f"{one.deck} {one.name}" for one in searched(ITEMS, text)], text
    assert [one.name for one in searched(ITEMS, "look ahead")] == ["mask"], '"a head" is not "ahead"'
    assert [one.name for one in searched(ITEMS, "T5")] == ["chains", "encoder-decoders"], "words go before codes"
    assert set(ALSO) <= {f"{one.deck} {one.name}" for one in ITEMS}


def test_a_slide_is_found_by_its_heading():
    for deck in decks().values():
        for item in deck.items:
            assert item in deck.find(item.slide)[:1], item.name


def test_words_without_a_deck_are_searched_in_all(capsys, tmp_path):
    assert run(["course", "beam", "search"]) == 0
    shown = capsys.readouterr().out
    assert "S2" in shown
    assert shown.rstrip().endswith("One of them: orrery course S2 original")
    assert run(["course", "KV", "cache"]) == 0
    assert capsys.readouterr().out.startswith("S3, Key-Value Cache (cache)")
    assert run(["course", "LoRA"]) == 2
    assert "no slide of the course is about 'LoRA'\nhint: the program has it: orrery finetune --help" in _err(capsys)
    assert run(["course", "teacher", "forsing"]) == 2
    assert "hint: did you mean teacher forcing?" in _err(capsys)
    for strange in ("zzz", "hallucination"):
        assert run(["course", strange]) == 2
        assert "hint: orrery course lists all slides, and docs/glossary.md" in _err(capsys)
    assert run(["course", "beam", "search", "--picture", str(tmp_path / "none.svg")]) == 2
    assert "name its deck and the item" in _err(capsys)


def _err(capsys) -> str:
    return capsys.readouterr().err


def test_two_items_of_a_name_are_refused():
    deck = Deck("S9", "nobody's", "nothing")
    deck.command("one", "W1", "a slide", "A title", "What to see.", "orrery info")
    with pytest.raises(UsageError, match="'one' already"):
        deck.command("one", "W1", "a slide", "A title", "What to see.", "orrery info")


def test_the_verb_lists_shows_and_runs(capsys):
    assert run(["course"]) == 0
    everything = capsys.readouterr().out
    assert all(item.name in everything and item.slide in everything for item in ITEMS)
    assert run(["course", "S0"]) == 0
    assert "Every word is equally far from every other" in capsys.readouterr().out
    assert run(["course", "S0", "parameters"]) == 0
    shown = capsys.readouterr().out
    assert "    table = attention_block_table()" in shown
    assert "786,432" in shown
    assert shown.rstrip().endswith("D is no axis of theirs.")
    assert run(["course", "S1", "n"]) == 2
    assert "match 'n'" in capsys.readouterr().err
    assert run(["course", "S0", "one-hott"]) == 2
    assert "one-hot" in capsys.readouterr().err


def test_the_picture_of_an_item_is_written_where_it_is_asked_for(capsys, tmp_path):
    file = tmp_path / "parts.svg"
    assert run(["course", "S1", "residual-stream"]) == 0
    assert "--picture residual-stream.svg writes it" in capsys.readouterr().out
    assert run(["course", "S1", "residual-stream", "--picture", str(file)]) == 0
    assert file.read_text(encoding="utf-8").startswith("<svg")
    assert str(file) in capsys.readouterr().out
    assert run(["course", "S1", "residual-stream", "--picture", str(file)]) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert run(["course", "S1", "third-value", "--picture", str(tmp_path / "none.svg")]) == 2
    assert "draws no picture" in capsys.readouterr().err
    assert run(["course", "S1", "--picture", str(tmp_path / "none.svg")]) == 2
    assert not (tmp_path / "none.svg").exists()


def test_the_list_imports_no_torch():
    program = "import sys; sys.modules['torch'] = None; from orrery.cli.program import run; sys.exit(run(['course']))"
    with contextlib.redirect_stdout(io.StringIO()):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_page_becomes_a_notebook_with_what_it_printed(tmp_path):
    notebooks, examples = module("_notebooks"), module("_examples")
    text = "# Page\n\n<!-- table: x -->\nA word.\n\n```{example}\nprint(6 * 7)\n```\n\n"
    text += "```{command}\norrery --version\n```\n"
    made = notebooks.notebook(text, examples.Page(tmp_path))
    kinds = [cell["cell_type"] for cell in made["cells"]]
    assert kinds == ["markdown", "code", "code"]
    assert made["cells"][0]["source"] == "# Page\n\nA word."
    assert made["cells"][1]["outputs"] == [{"output_type": "stream", "name": "stdout", "text": "42\n"}]
    assert made["cells"][2]["source"] == "!orrery --version"
    warned, page = "```{example}\nimport warnings\nwarnings.warn('careful')\n```", examples.Page(tmp_path)
    with pytest.raises(UserWarning, match="careful"):
        notebooks.notebook(warned, page)


@pytest.mark.long
def test_every_page_is_a_notebook_whose_cells_have_run(tmp_path):
    module("_notebooks").main(tmp_path)
    for name, deck in decks().items():
        made = json.loads((tmp_path / f"{name.lower()}.ipynb").read_text(encoding="utf-8"))
        assert (made["nbformat"], made["nbformat_minor"]) == (4, 5)
        code = [cell for cell in made["cells"] if cell["cell_type"] == "code"]
        assert len({cell["id"] for cell in made["cells"]}) == len(made["cells"])
        assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
        assert len(code) == len(deck.items) + 1
        assert all(cell["outputs"] for cell in code)
        assert made["cells"][-2]["source"].startswith("## Change this and look")


def by_python(kind: str, data, value: float) -> torch.Tensor:
    """Return the rows of a picture by the program."""
    if kind == "temperature":
        logits_BV = torch.tensor([data["logits"]], dtype=torch.float64)
        return Temperature(value)(logits_BV, History.of([[]], logits_BV)).softmax(-1)
    if kind == "base":
        return sinusoid(10.0**value, data["width"], torch.arange(data["places"]))
    q_LC, k_LC = (torch.tensor(data[name], dtype=torch.float64) for name in ("queries", "keys"))
    if kind == "scale":
        return attention(q_LC, k_LC, k_LC, scale=value)[1]
    places = TokenPositions(torch.arange(len(q_LC))[None])
    if kind == "window":
        allowed_LS = bind(Causal() & Window(length=int(value)), places, places).dense[0, 0]
    else:  # so many words ahead: the causal mask of a query that stands so much later
        later = TokenPositions(places.positions + int(value))
        allowed_LS = bind(Causal(), later, places).dense[0, 0]
    return (data["scale"] * q_LC @ k_LC.T).masked_fill(~allowed_LS, -torch.inf).softmax(-1)


def test_the_browser_computes_what_python_computes(browser, tmp_path):
    interactive = module("_interactive")
    script = (DOCS / "_static" / "interactive.js").read_text(encoding="utf-8")
    figures = "".join(interactive.figure(name) for name in interactive.SLIDERS)
    file = tmp_path / "page.html"
    file.write_text(f"<!doctype html><meta charset=utf-8><script>{script}</script>{figures}", encoding="utf-8")
    seen = Seen(browser)
    seen.page.goto(file.as_uri())
    for name, one in interactive.SLIDERS.items():
        steps = round((one.most - one.least) / one.step)
        for part in (0, 0.25, 0.5, 0.75, 1):
            value = one.least + one.step * round(part * steps)
            call = "([kind, data, value]) => orreryInteractive.compute[kind](data, value)"
            rows = torch.tensor(seen.page.evaluate(call, [name, one.data(), value]), dtype=torch.float64)
            torch.testing.assert_close(rows, by_python(name, one.data(), value), rtol=0, atol=1e-12)
    assert seen.page.locator("figure.interactive svg").count() == len(interactive.SLIDERS)
    before = seen.page.locator("figure .picture").first.inner_html()
    seen.page.locator("figure input").first.fill("0.5")
    assert seen.page.locator("figure .picture").first.inner_html() != before
    assert seen.said == []


def test_pictures_of_guides_fit_on_a_phone_and_what_moves_sideways_is_reached_by_keys(browser, tmp_path):
    flow, static = module("_flow"), DOCS / "_static"
    boxes = flow.boxes([f"step {number}: a text of thirty-two characters; another" for number in range(4)])
    row = "".join(f"<td>some_long_word_{number}</td>" for number in range(9))
    file = tmp_path / "page.html"
    file.write_text(
        f"<!doctype html><meta charset=utf-8><style>{(static / 'wrap.css').read_text()}</style>"
        f"<script>{(static / 'interactive.js').read_text()}</script>{flow.figure('Steps', boxes)}"
        f'<div class="table-wrapper" style="overflow-x:auto"><table>{row}</table></div>',
        encoding="utf-8",
    )
    for width, down in ((360, True), (1440, False)):
        seen = Seen(browser, width)
        seen.page.goto(file.as_uri())
        seen.narrow()
        places = seen.page.locator("figure.flow li").evaluate_all("all => all.map((one) => one.offsetTop)")
        assert (places == sorted(set(places))) is down
        seen.page.keyboard.press("Tab")
        assert (seen.page.evaluate("document.activeElement.className") == "table-wrapper") is down
        seen.page.close()
