"""What the page shows, view by view: pixels and texts are the numbers of the payload, which are those of Python.

Pictures are read back through the inverse of their palette, texts as numbers of so many digits.
"""

import math
import re

import pytest
import torch

from browser import Seen
from orrery.models.decoding_memory import cache_bytes
from orrery.page.views._inside import Inside
from orrery.page.views._view import ViewSubject, shown
from orrery.page.views.planner import attention_by_window
from orrery.planning.plan import plan
from orrery.serving.background import serving
from orrery.training.operations import mean_keys, multiplied_parameters
from unit.planning.test_windows import WINDOWS
from views_toy import language_model_of

pytestmark = pytest.mark.slow
TEXT = "the cat sat on the mat, the dog"
QUERY, KEY, LAYER, HEAD = 5, 2, 1, 2
MINUS, NONE = "\N{MINUS SIGN}", "\N{EN DASH}"
HALF = 2**-11
"""How far a weight may be from its float16."""


@pytest.fixture(scope="module")
def lm():
    return language_model_of("gpt2")


@pytest.fixture(scope="module")
def opened(browser, lm):
    """One page for all tests: each goes to its own view."""
    with serving(lm, "toy") as toy:
        visit = Seen(browser).open(f"{toy.url}/#screen=%22inside%22&layer={LAYER}&head={HEAD}&query={QUERY}").look(TEXT)
        yield visit
        visit.quiet()
        visit.close()


@pytest.fixture(scope="module")
def inside(lm):
    return lm.trace(TEXT)


@pytest.fixture(scope="module")
def subject(lm):
    return ViewSubject(lm, Inside(lm, {"text": TEXT}))


def settled(opened, **focus):
    """Set what the page looks at, and wait until what it asks for is there and drawn."""
    opened.page.evaluate(_SETTLED, focus)
    return opened


_SETTLED = """async (changes) => {
  const page = window.orrery;
  page.focus.set(changes);
  for (let i = 0; i < 4; i++) {
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
    await Promise.allSettled([page.source, page.model].flatMap((one) => [...one.answers.values()]));
  }
}"""


def at_view(opened, view, screen="inside", **focus):
    if opened.page.get_attribute("main", "data-ready") != screen:
        opened.screen(screen)
    opened.view(view)
    return settled(opened, **focus)


def picture(opened, selector, number=0):
    """Return the numbers that a canvas shows, and the distance between two colours; NaN where there is no colour."""
    rows, columns, values, step = opened.page.evaluate(_PICTURE, [selector, number])
    values = [math.nan if value is None else value for value in values]
    return torch.tensor(values, dtype=torch.float64).view(rows, columns), step


_PICTURE = """async ([selector, number]) => {
  const { palette, scheme } = await import("#see/palette.js");
  const shown = document.querySelectorAll(selector)[number];
  const copy = Object.assign(document.createElement("canvas"), { width: shown.width, height: shown.height });
  const context = copy.getContext("2d", { willReadFrequently: true });
  context.drawImage(shown, 0, 0);
  const pixels = context.getImageData(0, 0, shown.width, shown.height).data;
  const { colours, lowest, highest } = shown.dataset;
  const table = palette(colours, scheme());
  const places = new Map();
  for (let i = 0; i < 256; i++) places.set(`${table[3 * i]},${table[3 * i + 1]},${table[3 * i + 2]}`, i);
  const step = (highest - lowest) / 255;
  const values = [];
  for (let i = 0; i < pixels.length; i += 4) {
    const place = places.get(`${pixels[i]},${pixels[i + 1]},${pixels[i + 2]}`);
    values.push(pixels[i + 3] === 0 || place === undefined ? null : Number(lowest) + place * step);
  }
  return [shown.height, shown.width, values, step];
}"""


def assert_picture(opened, selector, expected, number=0, more=1e-6):
    drawn, step = picture(opened, selector, number)
    expected = expected.detach().double()
    assert drawn.shape == expected.shape
    assert not drawn.isnan().any()
    off = float((drawn - expected).abs().max())
    assert off <= step / 2 + more, (selector, off, step)


def parsed(text):
    """Return a number as the page writes it."""
    text = text.strip().replace(MINUS, "-").replace(",", "")
    known = {NONE: math.nan, "∞": math.inf, "-∞": -math.inf}
    return known[text] if text in known else float(text)


def assert_said(text, value, digits, least=1e-7):
    """Say that a text is a number, rounded to so many digits."""
    number, value = parsed(text), float(value)
    if math.isnan(value) or math.isinf(value):
        assert str(number) == str(value)
        return
    # Below a thousandth the page writes one digit fewer.
    digits -= abs(value) < 1.1e-3
    assert abs(number - value) <= 0.51 * 10 ** (1 - digits) * abs(value) + least, (text, value)


def table(opened, selector, number=0):
    """Return the texts of the cells of a table's body."""
    script = """([selector, number]) => [...document.querySelectorAll(selector)[number].querySelectorAll("tbody tr")]
      .map((row) => [...row.children].map((cell) => cell.innerText.trim()))"""
    return opened.page.evaluate(script, [selector, number])


def hover(opened, selector, row, column, rows, columns, number=0):
    canvas = opened.page.locator(selector).nth(number)
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    x, y = (column + 0.5) * box["width"] / columns, (row + 0.5) * box["height"] / rows
    opened.page.mouse.move(box["x"] + x, box["y"] + y)


def cells(opened, selector):
    """Return the places and the texts of a drawn vector."""
    script = """(selector) => [...document.querySelectorAll(`${selector} .cell`)]
      .map((cell) => [Number(cell.dataset.place), cell.lastElementChild.innerText])"""
    return opened.page.evaluate(script, selector)


def assert_vector(opened, selector, expected, digits=3):
    numbers = cells(opened, selector)
    assert len(numbers) == min(8, len(expected)), selector
    for place, text in numbers:
        assert_said(text, expected[place], digits)


def visible(text):
    return text.replace(" ", "␣").replace("\n", "↵")


def test_the_reader_of_numbers_knows_a_wrong_one():
    assert_said(f"{MINUS}1.235e{MINUS}5", -1.2346e-5, 5)
    assert_said("1,234", 1234, 4)
    assert_said(NONE, math.nan, 3)
    for text, value in (("0.124", 0.125), (f"{MINUS}0.5", 0.5), ("0.5000", 0.5004)):
        with pytest.raises(AssertionError):
            assert_said(text, value, 4)


def test_tokens(opened, lm):
    at_view(opened, "tokens")
    ids = lm.tokenizer.encode(TEXT)
    expected = [[str(n), str(id), visible(lm.tokenizer.decode([id]))] for n, id in enumerate(ids)]
    assert table(opened, ".view table") == expected


def test_text(opened, lm):
    at_view(opened, "text")
    pieces = opened.page.locator(".view .bytes").last.locator(".byte").all_inner_texts()
    assert [int(piece.split("\n")[-1]) for piece in pieces] == lm.tokenizer.encode(TEXT)
    shown_bytes = opened.page.locator(".view .bytes").first.locator("small").all_inner_texts()
    assert bytes.fromhex("".join(shown_bytes).replace(" ", "")) == TEXT.encode()


def test_embedding(opened, lm, subject):
    at_view(opened, "embedding", query=QUERY)
    id = lm.tokenizer.encode(TEXT)[QUERY]
    rows_VD = lm.model.embed.token.weight.detach()
    assert_vector(opened, ".view .vector", rows_VD[id])
    cosine_V = torch.nn.functional.cosine_similarity(rows_VD.double(), rows_VD[id].double()[None])
    near = table(opened, ".view table")
    assert all(text for text, *_ in near)
    best = cosine_V.sort(descending=True).values[1 : 1 + len(near)]
    assert [parsed(value) for _, value, *_ in near] == pytest.approx(best.tolist(), abs=6e-4)
    points_N2 = shown("embedding", subject, {"map": "text"}).tensors["points"].double()
    assert_map(opened, points_N2)


def assert_map(opened, points_N2):
    """The names on the map stand where the points do: one scale for both axes, 24 of 460 pixels left at each edge.

    A name that would stand over another is left out.
    """
    script = """() => [...document.querySelectorAll(".scatter > div > span")]
      .map((one) => [parseFloat(one.style.left), parseFloat(one.style.top)])"""
    drawn = torch.tensor(opened.page.evaluate(script), dtype=torch.float64)
    low, size = points_N2.min(0).values, (points_N2.max(0).values - points_N2.min(0).values).max()
    placed = 24 + (points_N2 - low) * (460 - 48) / size
    expected = torch.stack([placed[:, 0], 460 - placed[:, 1]], 1) * 100 / 460
    apart, nearest = torch.cdist(drawn, expected).min(1)
    assert apart.max() < 1e-2
    assert len(expected) / 2 < len(drawn) == len(set(nearest.tolist()))


def test_a_table_of_positions(opened, lm, subject):
    at_view(opened, "position")
    payload = shown("position", subject, {}).tensors
    (scheme,) = lm.model.stack.positions.values()
    weight = scheme.table.weight.detach()
    assert torch.equal(payload["table"], weight[: len(payload["table"])])
    assert_picture(opened, ".view .heat canvas", payload["table"])
    for place in (0, 3):
        opened.page.locator('.view [data-choice="place"]').fill(str(place))
        assert_curve(opened, payload["table"].double() @ payload["table"].double()[place])


def assert_curve(opened, expected):
    """The line of a chart goes through the numbers: its ends are the least and the greatest of them."""
    path = opened.page.locator(".view path.curve").first.get_attribute("d")
    heights = [float(pair.split(" ")[-1].split(",")[-1]) for pair in re.findall(r"-?[\d.]+[ ,]-?[\d.]+", path)]
    assert len(heights) == len(expected)
    low, high = float(expected.min()), float(expected.max())
    for height, value in zip(heights, expected.tolist(), strict=True):
        assert height == pytest.approx(10 + (high - value) / (high - low) * (240 - 10 - 34), abs=0.11)


def test_turned_positions(browser):
    lm = language_model_of("llama")
    with serving(lm, "toy") as toy:
        opened = Seen(browser).open(f"{toy.url}/#screen=%22inside%22&query={QUERY}&key={KEY}").look(TEXT)
        opened.view("position")
        opened.page.wait_for_selector(".clocks line")
        width = lm.model.stack.blocks[0].attention.branch.head_width
        script = """() => [...document.querySelectorAll(".clocks figure")]
          .map((one) => [...one.querySelectorAll("line")].map((line) => [Number(line.dataset.angle),
            Number(line.getAttribute("x2")), Number(line.getAttribute("y2"))]))"""
        for pair, hands in enumerate(opened.page.evaluate(script)):
            rate = 10_000.0 ** (-2 * pair / width)
            for place, (angle, x, y) in zip((QUERY, KEY), hands, strict=True):
                assert angle == pytest.approx(place * rate, rel=1e-5)
                assert (x, y) == pytest.approx(
                    (20.64 * math.sin(place * rate), -20.64 * math.cos(place * rate)), abs=1e-3
                )
        opened.quiet()
        opened.close()


def test_every_head_small(opened, inside):
    at_view(opened, "attention")
    pictures = opened.page.locator(".view .grid canvas").count()
    shapes = [inside[f"blocks.{layer}.attention.pattern"].shape for layer in range(2)]
    assert pictures == sum(shape[1] for shape in shapes)
    for number in range(pictures):
        layer, head = divmod(number, shapes[0][1])
        expected = (inside[f"blocks.{layer}.attention.pattern"][0, head].sqrt() * 255).round()
        drawn, _ = picture(opened, ".view .grid canvas", number)
        assert torch.equal(drawn.round(), expected.double())


@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("head", [0, 2])
def test_one_head_in_colours(opened, inside, layer, head):
    at_view(opened, "attention", drawing=None, layer=layer, head=head, query=None, key=None)
    opened.page.wait_for_selector(f'.grid button[data-layer="{layer}"][data-head="{head}"][aria-pressed="true"]')
    pattern_LS = inside[f"blocks.{layer}.attention.pattern"][0, head]
    assert_picture(opened, ".view .labelled .heat canvas", pattern_LS, more=HALF)
    for query, key in ((QUERY, KEY), (3, 0)):
        hover(opened, ".view .labelled .heat canvas", query, key, *pattern_LS.shape)
        opened.page.wait_for_selector(f".token.over[data-place='{query}']")
        said = opened.page.locator(".view [data-over]").inner_text()
        assert parsed(said.split()[-1]) == pytest.approx(float(pattern_LS[query, key]), rel=6e-3, abs=1e-4)


def test_the_reader_of_pictures_sees_cells_that_are_exchanged(opened, inside):
    at_view(opened, "attention", layer=LAYER, head=HEAD, query=None, key=None)
    pattern_LS = inside[f"blocks.{LAYER}.attention.pattern"][0, HEAD]
    assert_picture(opened, ".view .labelled .heat canvas", pattern_LS, more=HALF)
    wrong_LS = pattern_LS.clone()
    wrong_LS[-1, :2] = pattern_LS[-1, :2].flip(0)
    for wrong in (wrong_LS, pattern_LS.mT, inside[f"blocks.{LAYER}.attention.pattern"][0, 0], pattern_LS[:, :-1]):
        with pytest.raises(AssertionError):
            assert_picture(opened, ".view .labelled .heat canvas", wrong, more=HALF)


def test_one_row_in_numbers(opened, inside, lm):
    at_view(opened, "attention", layer=LAYER, head=HEAD, query=QUERY)
    opened.page.wait_for_selector(".view .side > :nth-child(3) table")
    key = f"blocks.{LAYER}.attention"
    score_S, weight_S = inside[f"{key}.scores"][0, HEAD, QUERY], inside[f"{key}.pattern"][0, HEAD, QUERY]
    length_S = inside[f"{key}.v"][0, HEAD].norm(dim=-1)
    rows = table(opened, ".view .side > :nth-child(3) table")
    order = weight_S.argsort(descending=True, stable=True).tolist()
    assert len(rows) == len(weight_S)
    for place, (text, score, weight, value) in zip(order[: QUERY + 1], rows, strict=False):
        assert text == visible(inside.tokens[place])
        assert_said(score, score_S[place], 4)
        assert_said(weight, weight_S[place], 4)
        assert_said(value, weight_S[place] * length_S[place], 4)


def test_one_row_as_bars(opened, inside):
    at_view(opened, "attention", layer=LAYER, head=HEAD, query=QUERY)
    opened.choose('.view .controls select[data-choice="drawing"]', "bars")
    opened.page.wait_for_selector(".view table.bars")
    weight_S = inside[f"blocks.{LAYER}.attention.pattern"][0, HEAD, QUERY]
    for place, (_, _, share) in enumerate(table(opened, ".view table.bars")):
        assert parsed(share) == pytest.approx(float(weight_S[place]), rel=6e-3, abs=HALF)
    opened.choose('.view .controls select[data-choice="drawing"]', "map")


def test_steps_of_a_head(opened, inside):
    at_view(opened, "qkv", layer=LAYER, head=HEAD, query=QUERY, key=KEY)
    opened.page.wait_for_selector('.view [data-step="out"]')
    key = f"blocks.{LAYER}.attention"
    q_C, k_SC, v_SC = (inside[f"{key}.{name}"][0, HEAD] for name in ("q", "k", "v"))
    weight_S, mixed_C = inside[f"{key}.pattern"][0, HEAD, QUERY], inside[f"{key}.mixed"][0, HEAD, QUERY]
    vectors = opened.page.locator(".view .vector").count()
    assert vectors == 8
    block = inside.model.stack.blocks[LAYER].attention
    with torch.no_grad():
        read_D = block.pre(inside[f"blocks.{LAYER}.resid_pre"])[0, QUERY]
        out = block.branch.out
        width = len(mixed_C)
        head_D = out.weight[:, HEAD * width : (HEAD + 1) * width] @ mixed_C
    expected = [read_D, q_C[QUERY], k_SC[KEY], v_SC[KEY], weight_S[KEY] * v_SC[KEY], mixed_C, head_D]
    expected.append(inside[f"{key}.added"][0, QUERY])
    for number, value in enumerate(expected):
        bars = opened.page.evaluate(
            """(number) => [...document.querySelectorAll(".view .vector")[number].querySelectorAll(".cell")]
              .map((cell) => [Number(cell.dataset.place), cell.lastElementChild.innerText])""",
            number,
        )
        for place, text in bars:
            assert_said(text, value[place], 3, least=2e-6)
    rows = {int(one): row for one, row in _keyed(opened, '.view [data-step="scores"] table.keys')}
    for place in range(QUERY + 1):
        _, product, scaled, score = rows[place]
        assert_said(product, q_C[QUERY] @ k_SC[place], 4, least=2e-6)
        assert_said(scaled, q_C[QUERY] @ k_SC[place] / math.sqrt(len(q_C[QUERY])), 4, least=2e-6)
        assert_said(score, inside[f"{key}.scores"][0, HEAD, QUERY, place], 4, least=2e-6)
    for one, (_, _, weight, _) in _keyed(opened, '.view [data-step="pattern"] table.keys'):
        assert_said(weight, weight_S[int(one)], 4)


def _keyed(opened, selector):
    script = """(selector) => [...document.querySelector(selector).querySelectorAll("tbody tr")]
      .map((row) => [row.dataset.key, [...row.children].map((cell) => cell.innerText.trim())])"""
    return opened.page.evaluate(script, selector)


def test_roles_of_heads(opened, inside, subject):
    at_view(opened, "heads", role=None)
    roles = inside.head_roles()
    payload = shown("heads", subject, {}).tensors
    assert all(torch.equal(payload[role].nan_to_num(-1), roles[role].nan_to_num(-1)) for role in roles.score_NH)
    rows = table(opened, ".view table")
    heads = roles["entropy"].shape[1]
    assert len(rows) == 2 * heads
    for number, (name, *values) in enumerate(rows):
        layer, head = divmod(number, heads)
        assert name == f"{layer}.{head}"
        for role, value in zip(roles.score_NH, values, strict=True):
            assert_said(value, roles[role][layer, head], 3)


def test_channels(opened, inside, lm):
    at_view(opened, "neurons", layer=LAYER, query=QUERY, token=None)
    neurons = inside.neurons(LAYER, position=QUERY, k=20)
    rows = table(opened, ".view table")
    assert len(rows) == 20
    for n, (channel, activation, _, effect, promoted) in enumerate(rows):
        assert int(channel.replace(",", "")) == int(neurons.channel_BK[0, n])
        assert_said(activation, inside[f"blocks.{LAYER}.feed_forward.hidden"][0, QUERY, int(channel)], 3)
        assert_said(effect, neurons.effect_BK[0, n], 3, least=1e-6)
        assert promoted
    assert_said(
        opened.page.locator(".view p.number").inner_text().split()[-1].rstrip("."), neurons.effect_BF[0].sum(), 4
    )


def test_the_stream(opened, inside):
    at_view(opened, "residual", query=None)
    streams_NLD = torch.stack([inside["embedded"][0], *(inside[f"blocks.{n}.resid_post"][0] for n in range(2))])
    parts = [f"blocks.{n}.{name}.added" for n in range(2) for name in ("attention", "feed_forward")]
    panels = {
        "stream": streams_NLD.norm(dim=-1),
        "added": torch.stack([inside[part][0].norm(dim=-1) for part in parts]),
        "cosine": torch.nn.functional.cosine_similarity(streams_NLD[1:], streams_NLD[:-1], dim=-1),
    }
    for name, expected in panels.items():
        canvas = f'.view [data-panel="{name}"] .heat canvas'
        assert_picture(opened, canvas, expected)
        hover(opened, canvas, 1, QUERY, *expected.shape)
        opened.page.wait_for_selector(f'.view [data-panel="{name}"] p.number:has-text("·")')
        said = opened.page.locator(f'.view [data-panel="{name}"] p.number').inner_text()
        assert_said(said.split(": ")[-1], expected[1, QUERY], 4)


def test_the_lens(opened, inside, lm, subject):
    lens = inside.lens(5)
    payload = shown("lens", subject, {}).tensors
    assert torch.equal(payload["log_probability"], lens.log_probability_NBLK[:, 0])
    assert torch.equal(payload["id"].long(), lens.id_NBLK[:, 0])
    rows, columns = payload["entropy"].shape
    at_view(opened, "lens", lens="best", query=None)
    assert_picture(opened, ".view .heat canvas", lens.log_probability_NBLK[:, 0, :, 0].clamp(-10, 0))
    settled(opened, lens="entropy")
    assert_picture(opened, ".view .heat canvas", lens.entropy_NBL[:, 0])
    settled(opened, lens="target")
    drawn, step = picture(opened, ".view .heat canvas")
    target_NL = lens.target_log_probability_NBL[:, 0].double()
    assert torch.equal(drawn.isnan(), target_NL.isnan())  # behind the last token nothing follows
    assert (drawn - target_NL.clamp(-10, 0)).nan_to_num().abs().max() <= step / 2 + 1e-6
    for row, column in ((0, 2), (rows - 1, columns - 1)):
        hover(opened, ".view .heat canvas", row, column, rows, columns)
        settled(opened)
        for n, (text, log, p) in enumerate(table(opened, ".view table")):
            id, value = int(lens.id_NBLK[row, 0, column, n]), float(lens.log_probability_NBLK[row, 0, column, n])
            known = id < lm.tokenizer.size
            assert text == (visible(lm.tokenizer.decode([id], special=True)) if known else f"[{id}]")
            assert_said(log, value, 3)
            assert_said(p, math.exp(value), 3)


def test_logits_and_their_parts(opened, inside):
    at_view(opened, "logits", query=QUERY, token=None, against=None)
    log_V = inside.logits[0, QUERY].double().log_softmax(-1)
    best = log_V.topk(20)
    likeliest = table(opened, ".view table", 0)
    assert len(likeliest) == 20
    for n, (_, _, p, logit) in enumerate(likeliest):
        assert_said(p, best.values[n].exp(), 3)
        assert_said(logit, inside.logits[0, QUERY, best.indices[n]], 4)
    attribution = inside.logit_attribution(position=QUERY)
    parts = dict(zip(attribution.names, attribution.value_NBP[:, 0, 0].tolist(), strict=True))
    *rows, total = table(opened, ".view table", 1)
    assert {name for name, *_ in rows} == set(parts)
    for name, _, value in rows:
        assert_said(value, parts[name], 4, least=1e-6)
    assert_said(total[-1], attribution.logit_BP[0, 0], 5)
    assert float(attribution.logit_BP[0, 0]) == pytest.approx(sum(parts.values()), abs=1e-4)


@pytest.mark.parametrize("method", ["gradient", "gradient_times_input", "integrated"])
def test_gradients(opened, inside, method):
    at_view(opened, "saliency", saliency=method, query=QUERY, token=None)
    name = {"gradient": "saliency", "integrated": "integrated_gradients"}.get(method, method)
    expected = getattr(inside, name)(position=QUERY).value_BL[0]
    shown_values = opened.page.locator(".view .said span").evaluate_all("(all) => all.map((one) => one.title)")
    assert len(shown_values) == len(expected)
    for text, value in zip(shown_values, expected.tolist(), strict=True):
        assert_said(text, value, 3, least=1e-6)
    assert all(parsed(text) == 0 for text in shown_values[QUERY + 1 :])


@pytest.mark.parametrize(
    ("key", "index"),
    [
        (f"blocks.{LAYER}.attention.pattern", (HEAD, QUERY, KEY)),
        ("blocks.0.feed_forward.hidden", (QUERY, 3)),
        ("final", (QUERY, 1)),
        ("logits", (QUERY, 9)),
    ],
)
def test_a_number_is_explained(opened, inside, key, index):
    at_view(opened, "explain", number={"key": key, "index": ",".join(map(str, index))})
    opened.page.wait_for_selector(f'.view .formula[data-key="{key}"][data-index="{",".join(map(str, index))}"]')
    value = float(inside[key][(0, *index)])
    assert_said(opened.page.locator(".view .formula strong").first.inner_text(), value, 4)
    assert opened.page.locator('.view .formula [data-passed="true"]').count() >= 1


def test_the_decoding_tree(opened, lm, subject):
    at_view(opened, "decode", "decode")
    opened.page.wait_for_selector(".tree .node")
    facts = shown("decode", subject, {}).facts
    prompt, nodes = facts["prompt"], facts["nodes"]
    assert prompt == lm.tokenizer.encode(TEXT)
    script = """() => [...document.querySelectorAll(".tree .node")].filter((one) => Number(one.dataset.node) >= 0)
      .map((one) => [Number(one.dataset.node), one.querySelector(".cost").textContent])"""
    drawn = opened.page.evaluate(script)
    assert len(drawn) == len([node for node in nodes if len(nodes) <= 60 or node["fate"] != "pruned"])
    for number, text in drawn[:40]:
        way = _way(nodes, number)
        with torch.no_grad():
            log_LV = lm.logits([[*prompt, *way[:-1]]])[0, :, : lm.tokenizer.size].double().log_softmax(-1)
        costs = [-float(log_LV[len(prompt) - 1 + place, token]) for place, token in enumerate(way)]
        cost, total = re.split(r"\s+Σ\s*", text)
        assert_said(cost, costs[-1], 3, least=1e-5)
        assert_said(total, sum(costs), 4, least=1e-5)
    with torch.no_grad():
        p_V = lm.logits([prompt])[0, -1, : lm.tokenizer.size].double().softmax(-1)
    for id, (_, p, *_) in opened.page.evaluate(
        """() => [...document.querySelectorAll(".view tr[data-id]")]
          .map((row) => [Number(row.dataset.id), [...row.children].map((cell) => cell.innerText)])"""
    ):
        assert_said(p, p_V[id], 4)


def _way(nodes, number):
    tokens = []
    while number >= 0:
        tokens.insert(0, nodes[number]["token"])
        number = nodes[number]["parent"]
    return tokens


def test_what_is_kept_while_decoding(opened, lm):
    at_view(opened, "cache", "decode")
    tokens = len(lm.tokenizer.encode(TEXT))
    expected = cache_bytes(lm.model.spec, torch.float32, tokens)
    row = opened.page.locator('.view tr[data-design="own"] td').all_inner_texts()
    assert parsed(row[2]) == expected
    drawn, _ = picture(opened, ".view .held canvas")
    assert torch.equal(drawn, torch.ones(2, tokens, dtype=torch.float64))


def test_parameters(opened, lm):
    path = "stack.blocks.1.feed_forward.branch.down.weight"
    at_view(opened, "parameters", "model", part={})
    said = opened.page.locator(".view [data-total]").inner_text()
    assert parsed(re.search(r"\d[\d,]*", said)[0]) == sum(parameter.numel() for parameter in lm.model.parameters())
    rows = opened.page.evaluate(
        """() => [...document.querySelectorAll(".view [data-part]")]
          .map((one) => [one.dataset.part, one.closest("tr").children[3].innerText])"""
    )
    assert sum(parsed(numbers) for _, numbers in rows) == sum(parameter.numel() for parameter in lm.model.parameters())
    kind = opened.page.evaluate(
        """async (path) => {
          const { facts } = await window.orrery.model.get("parameters");
          return facts.matrices.find((one) => one.path === path);
        }""",
        path,
    )
    settled(opened, part={"kind": kind["kind"], "layer": kind["layer"], "path": path})
    opened.page.wait_for_selector(".view section .heat canvas")
    weight = lm.model.get_parameter(path).detach()
    assert_picture(opened, ".view section .heat canvas", weight)
    hover(opened, ".view section .heat canvas", 2, 3, *weight.shape)
    opened.page.wait_for_selector('.view section [data-over]:has-text("2")')
    assert_said(opened.page.locator(".view section [data-over]").inner_text().split()[-1], weight[2, 3], 5)
    bars = opened.page.locator(".view .histogram rect").evaluate_all(
        "(all) => all.map((one) => Number(one.dataset.count))"
    )
    most = float(weight.abs().max())
    assert bars == torch.histc(weight.double(), len(bars), -most, most).tolist()


def test_costs(opened, lm):
    at_view(opened, "planner", "model")
    values = dict(
        opened.page.evaluate(
            """() => [...document.querySelectorAll(".view tr[data-line]")]
              .map((row) => [row.dataset.line, Number(row.dataset.value)])"""
        )
    )
    spec, length = lm.model.spec, min(lm.context, 512)
    numbers = sum(parameter.numel() for parameter in lm.model.parameters())
    assert values["weights"] == 4 * numbers
    assert values["gradients"] == 4 * numbers
    assert values["optimizer"] == 8 * numbers
    assert values["cache"] == cache_bytes(spec, torch.float32, length)
    linear = [p.numel() for name, p in lm.model.named_parameters() if p.dim() == 2 and "positions" not in name]
    width = lm.model.stack.blocks[0].attention.branch.out.weight.shape[1]
    token = 2 * sum(linear) + 2 * len(lm.model.stack.order) * width * length  # causal: half of four
    assert values["token"] == token
    assert values["pass"] == token * length
    assert values["training"] == 3 * token * length


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("family", ["mistral", "gemma2", "gemma3_text", "gpt_neo", "modernbert", "gpt2"])
def test_costs_count_what_windows_show(opened, family, causal):
    """Of a causal row on average; of one that sees both ways what `orrery plan` counts, which halves nothing."""
    lm = language_model_of(family, **WINDOWS.get(family, {}))
    facts, spec = shown("planner", ViewSubject(lm), {}).facts, lm.model.spec
    for length in (1, 7, 8, 9, 40):
        asked = {"rows": 3, "length": length, "rate": None, "causal": causal}
        said = opened.page.evaluate(
            """async ([facts, asked]) => (await import("#see/views/planner.js")).plan(facts, asked).operations""",
            [facts, asked],
        )
        lines = {name: (formula, value) for name, formula, value in said}
        groups = attention_by_window(spec).items()
        pairs = [(c, mean_keys(keys, length) if causal else min(length, keys or length)) for keys, c in groups]
        token = 2 * multiplied_parameters(lm.model) + 4 * sum(channels * keys for channels, keys in pairs)
        assert lines["token"][1] == pytest.approx(token, rel=1e-12)
        assert lines["training"][1] == pytest.approx(9 * token * length, rel=1e-12)
        formula = lines["token"][0].replace(",", "").replace("\N{MIDDLE DOT}", "*")
        assert eval(formula) == pytest.approx(token, rel=1e-3)
        if not causal:
            cost = plan(spec, rows=3, length=length, dtype="float32").cost.forward
            assert lines["pass"][1] == cost.tokens + 2 * multiplied_parameters(lm.model) * 3 * length
