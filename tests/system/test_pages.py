"""The pages with examples run as their readers run them, and what the build shows is what the code gave."""

import code
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch
from sphinx.application import Sphinx

import orrery
from orrery.cli.program import run
from orrery.tasks import TASKS
from pages import DOCS, ROOT, module, text_of
from tiny_models import saved

PACKAGE = Path(orrery.__file__).parent


@pytest.fixture(scope="module")
def examples():
    return module("_examples")


@pytest.fixture(scope="module")
def folder(examples, tmp_path_factory) -> Path:
    """The reader's folder, with the model that the pages make."""
    return examples.prepare(tmp_path_factory.mktemp("reader"))


def _walk(examples, page: str, folder: Path):
    """Run a page from top to bottom; return it and what each block showed."""
    opened, shown = examples.Page(folder), []
    for kind, block in examples.blocks(text_of(page)):
        if kind == "example":
            shown += opened.run(block)
        elif kind == "value":
            shown.append(opened.value(block))
        elif examples.joined(block) != list(examples.RUN):
            shown.append(opened.command(block))
    return opened.names, [text for text in shown if text.strip()]


def test_the_tutorial_computes_what_the_model_computes(examples):
    names, shown = _walk(examples, "tutorial", ROOT)
    printed = "\n".join(text for text in shown if not text.startswith("<svg"))
    assert "False" not in printed
    assert sum(text.startswith("<svg") for text in shown) == 6
    differences = [float(value) for value in re.findall(r"largest difference to the model: (\S+)", printed)]
    assert len(differences) == 3
    assert max(differences) < 1e-12
    assert names["x_BLD"].dtype is torch.float64
    # the loss by torch's own function, the slope by trying, a step that lowers the loss, a text that is learned
    inside, wanted_L = names["inside"], names["ids_BL"][0, 1:]
    assert names["loss"].item() == pytest.approx(
        torch.nn.functional.cross_entropy(inside.logits[0, :-1], wanted_L).item(), abs=1e-12
    )
    slope = ((names["above"] - names["below"]) / 2e-6).item()
    assert names["gradient"] == pytest.approx(slope, rel=1e-5, abs=1e-9)
    assert names["after"] < names["loss"]
    assert names["curve"][-1][1] < 0.1 < 1 < names["curve"][0][1]
    assert shown[-2].startswith("The cat sat on the mat.")


def test_the_blocks_of_the_tutorial_can_be_pasted_at_a_prompt(examples, monkeypatch, capsys):
    """A prompt ends a loop at the first line that is empty, and takes no line behind a loop before that."""
    monkeypatch.setattr(sys, "displayhook", lambda shown: None if shown is None else print(repr(shown)))
    prompt = code.InteractiveConsole({"__name__": "__main__"})
    for kind, block in examples.blocks(text_of("tutorial")):
        for line in [*block.splitlines(), ""] if kind == "example" else []:
            prompt.push(line)
    printed = capsys.readouterr()
    assert printed.err == ""
    assert "loss after:" in printed.out
    assert "_" not in prompt.locals  # else it is not what the prompt showed last, which the page saves by it
    assert "<svg" not in printed.out  # a prompt names a picture


def test_the_page_on_scores_shows_what_it_says(examples, tmp_path):
    names, shown = _walk(examples, "scores", tmp_path)
    printed = "\n".join(shown)
    assert "n:6|labels:3|several:no|average:macro|zero:0" in printed
    assert "[('PER', 0, 2), ('LOC', 3, 4), ('PER', 4, 5)]\n[('LOC', 3, 4)]" in printed
    assert "exact-match 33.33 (n:3|none:1|" in printed
    ps = [float(p) for p in re.findall(r"p = (\d\.\d+)", printed)]
    assert len(ps) == 3 + 2 * 5 + 1  # three tests, then two of each of five scores and McNemar's from the files
    assert f"{names['score'].score:.4f}" in shown[-1]


def test_the_page_on_objectives_shows_each_corruption(examples):
    _, shown = _walk(examples, "pretraining", ROOT)
    masked, parts, spans, noises = shown
    assert masked.count("[MASK]") > 2
    assert {line.split()[0] for line in parts.splitlines()} <= {"in", "swapped"}
    assert "<extra_id_0>" in spans
    assert [line.split()[0] for line in noises.splitlines()] == [
        "masking", "deletion", "infilling", "permutation", "rotation",
    ]  # fmt: skip


def test_the_page_on_mixers_shows_forms_that_agree_and_a_state_of_one_size(examples):
    _, (forms, sizes) = _walk(examples, "after-attention", ROOT)
    differences = [float(line.split()[-1]) for line in forms.splitlines()]
    assert len(differences) == 3
    assert max(differences) < 1e-12
    assert len({line.split(":")[1] for line in sizes.splitlines()}) == 1


def test_the_page_on_a_brick_shows_laws_that_hold_and_numbers_that_are_explained(examples, tmp_path):
    _, shown = _walk(examples, "writing-a-brick", examples.with_examples(tmp_path))
    laws, keys, unknown, explained, whole, parts = shown
    assert len(re.findall(r"(\d+) of \1 checks hold", laws)) == 6
    assert "'blocks.1.attention.pattern'" in keys
    assert "[i] · out.weight[i]" in unknown.splitlines()[0]
    assert "_softmax" in unknown.splitlines()[2]
    assert unknown.count("passes: True") == 3
    assert explained.count("the check passes: True") == 3
    assert "'blocks.1.attention.added'" in whole
    assert "'blocks.1.attention.head.1'" in parts
    assert parts.rstrip().endswith("True")


def test_the_page_on_planning_shows_the_numbers_of_its_sources(examples, tmp_path):
    _, shown = _walk(examples, "planning", tmp_path)
    printed = "\n".join(text for text in shown if not text.startswith("<svg"))
    for number in ("2.86 billion", "3,645.8", "2.56e+24", "3.8e+25"):
        assert number in printed
    assert sum(text.startswith("<svg") for text in shown) == 4


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        "finetuning",
        "generating",
        "interventions",
        "looking-inside",
        "own-parts",
        "pipelines",
        "serving",
        "tuning",
        "variants",
    ],
)
def test_the_pages_on_a_trained_model_show_what_they_say(examples, folder, page):
    names, shown = _walk(examples, page, folder)
    printed = "\n".join(shown)
    if page == "generating":
        assert "The capital of France is Paris" in printed
        assert "People in Athens speak Greek ." in names["lm"].tokenizer.decode(names["written"])
        totals = re.findall(r"(-\d+\.\d+) nats   The capital", printed)
        assert float(totals[0]) > float(totals[1])
    elif page == "interventions":
        _check_interventions(names, printed)
    elif page == "own-parts":
        TASKS._parts.pop(sys.modules.pop("spotting").Spotting.kind)  # other tests know the package's own tasks alone
        assert re.search(r"yes \d.\d{4}  Rome is the capital of Italy .\nno  \d.\d{4}  People in Oslo", printed)
        assert [record["val/exact"] > 0.9 for record in names["run"].records()[-1:]] == [True]
        assert len(re.findall(r"(\d+) of \1 checks hold", printed)) == 7
        assert re.search(r"kind must be one of .*\bcausal, .*\bcount_error, .*denoising", printed)
    elif page == "finetuning":
        assert "18 texts held back: accuracy" in printed  # about a tenth of 200, by their texts
        assert "B-city Paris" in printed
    elif page == "pipelines":
        assert "True" in printed
        assert re.search(r"score .*\n-\d.* France\n", printed)
    elif page == "serving":
        assert "Paris" in shown[-2]
        assert (
            "400 invalid_value temperature\n400 context_length_exceeded prompt\n404 model_not_found model" in shown[-1]
        )
    elif page == "tuning":
        assert "False" not in printed
        assert printed.count("is Rome") + printed.count("Rome .") == 2
        assert "LoRA(rank=4, alpha=8" in printed
    elif page == "variants":
        assert "stack.blocks.attention.branch.position: rotary -> alibi" in printed
        assert [line.split()[1] for line in shown[-1].splitlines()] == ["speak"]
    else:
        assert "failed" not in printed
        assert names["probabilities"]["all heads"] > 0.5 > min(names["probabilities"].values())
        rome = torch.tensor(names["rome"])
        assert rome[0].argmax() == 3  # before the first block the country stands at its own token
        assert rome[-1].argmax() == 4  # after the last one only the last token counts
        assert rome[0, 3] > 0.5
        assert rome[-1, 4] > 0.5


def _check_interventions(names, printed: str) -> None:
    """The methods find the same place by different ways, and the controls say what they must."""
    assert "The capital of Italy is Rome" in printed
    grid = names["patched"].grid
    assert grid[0].argmax() == 3  # the country's own token
    assert grid[1].argmax() == 4  # the last one
    block, carrier, part = names["heads"].top([], k=1)[0]
    assert (block, part > 0.5) == ("block 0", True)
    assert names["traced"].indirect[:, 4].min() > 0.5 * names["traced"].total > 0
    assert names["knocked"].change[3, 0] < -0.3  # the last token has to look at the country in block 0
    assert names["knocked"].change[:, 1].abs().max() < 0.2
    probing = names["probing"]
    assert probing.score_N[1] > probing.score_N[0] + 0.1
    assert probing.shuffled_N.max() < 0.3
    assert probing.control_N[0] > 0.9
    assert names["quality"].explained_variance > 0.9
    assert names["quality"].l0 <= 4
    assert names["recovered"].share > 0.9
    # How far one feature carries differs with its dictionary: over five seeds the log odds rose by 6.8 to 15.8 nats,
    # and P(Rome) fell from 0.89 to 0.24 at most.
    assert names["odds"][-1] > names["odds"][0] + 3
    assert names["p_V"][names["rome"]] < 0.4
    circuit, head = names["circuit"], int(carrier.split()[1])
    assert f"blocks.0.attention.{head}" in circuit.nodes
    assert circuit.alone > 0.6 * circuit.clean > 0 > circuit.without
    assert len(circuit.edges) < circuit.all_edges / 4
    assert "blocks.0.resid_post True" in printed


@pytest.mark.slow
def test_the_quick_start_runs(examples, folder):
    _, shown = _walk(examples, "quickstart", folder)
    assert shown[0].splitlines()[0].strip() == "Paris ."
    assert (folder / "countries-hf" / "config.json").is_file()
    assert shown[-2].startswith("Paris .")
    assert "False" not in shown[-2]
    assert "0-1: Block" in shown[-1]
    for name in re.findall(r"!\[[^]]*\]\((.+?\.svg)\)", text_of("quickstart")):
        picture = (DOCS / name).read_bytes()
        assert len(picture) < 60_000
        ElementTree.fromstring(picture)
    examples.command("python docs/examples/pictures.py .", folder)
    assert (folder / "countries-attention.svg").read_text(encoding="utf-8").startswith("<svg")


@pytest.mark.slow
def test_what_stands_behind_the_doors_of_the_readme_runs(examples, folder):
    """The commands as printed, but for the length of the training and the server, which no page waits for."""
    doors = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Three doors\n")[2].partition("\n## ")[0]
    data, architecture, course, python = re.findall(r"^```\w*\n(.*?)^```", doors, re.MULTILINE | re.DOTALL)
    assert [len(door.splitlines()) for door in (data, architecture, course)] == [4, 4, 4]
    (folder / "notes").mkdir()
    (folder / "notes" / "all.txt").write_text((folder / "countries.txt").read_text(encoding="utf-8"), encoding="utf-8")
    train, *using, serve = examples.joined(data)
    examples.command(f"{train} --training.steps 2", folder)
    for line in (*using, *examples.joined(architecture)[:3], *examples.joined(course)):
        examples.command(line, folder)
    assert (folder / "inside.html").is_file()
    assert serve == "orrery serve runs/notes"
    printed, _ = examples.Page(folder).run(python)
    assert "torch.Size([1, " in printed


def test_the_build_shows_what_the_code_gives(examples, tmp_path):
    source, out = tmp_path / "pages", tmp_path / "html"
    source.mkdir()
    page = """# Page

```{example}
:caption: Below the picture.
from orrery.reports.figures import bar_chart
number = sum(range(10))
print("printed", number)
bar_chart({"a": number}, title="Title", x_label="x")
```

The sum is {value}`number`.

```{command}
orrery --version
```
"""
    (source / "index.md").write_text(page)
    settings = f"import sys\nsys.path.append({str(DOCS)!r})\nextensions = ['myst_parser', '_examples']\n"
    (source / "conf.py").write_text(settings)
    path = list(sys.path)
    try:
        app = Sphinx(source, source, out, out / "doctrees", "html", status=None, warningiserror=True)
        app.build()
    finally:
        sys.path[:] = path
        sys.modules.pop("_examples", None)
    html = (out / "index.html").read_text()
    assert "printed 45" in html
    assert "The sum is 45." in html
    assert "<figure" in html
    assert "<figcaption>Below the picture.</figcaption>" in html
    assert f"orrery {orrery.__version__}" in html


def test_the_first_page_shows_a_model_in_one_file(folder):
    landing = module("_landing")
    page = landing.page(folder)
    assert len(page.encode()) < 2_000_000
    assert "http-equiv" in page
    assert re.findall(r'(?:src|href)="(?!data:|blob:|#)[^"]+"', page) == []
    assert "{live}\n" in text_of("index")
    assert landing.FILE == "inside.html"


def test_a_command_that_fails_is_told(examples, tmp_path):
    with pytest.raises(RuntimeError, match="exit code 4"):
        examples.Page(tmp_path).command("orrery score nowhere text")
    with pytest.raises(RuntimeError, match="a page may run"):
        examples.Page(tmp_path).command("rm -r nowhere")


def test_the_way_of_one_token_is_the_one_of_the_page(tmp_path, monkeypatch, capsys):
    pattern = r"\| \d+ \| \[(.+?)\]\(.*?\) \| `(.+?)` \|"
    named = re.findall(pattern, text_of("architecture"))
    assert len(named) > 20
    met = {}

    def watch(frame, event, argument):
        place = Path(frame.f_code.co_filename)
        if event == "call" and place.is_relative_to(PACKAGE):
            met.setdefault((place.relative_to(PACKAGE).as_posix(), frame.f_code.co_qualname), len(met))

    model = str(saved(tmp_path / "model", "llama"))
    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        assert run(["generate", model, "the cat", "--max-new-tokens", "2"]) == 0
    finally:
        sys.setprofile(before)
    assert [step for step in named if step not in met] == []
    assert named == sorted(named, key=met.__getitem__)
