"""The tables of the course against what papers and decks print, and against other ways to the same numbers."""

import json
import re
from xml.etree import ElementTree

import pytest
import torch

from made_pages import MADE
from orrery.errors import UsageError
from orrery.nn.attention.multihead import MultiHeadAttention
from orrery.planning.parameters import parameters
from orrery.planning.presets import gpt3, preset
from orrery.planning.published import gpt3 as sizes
from orrery.planning.published.sizes import published
from orrery.planning.table import large, plain, scientific
from orrery_course.papers import chinchilla, complexity, energy, gpt3_compute, model_sizes, training_runs
from orrery_course.papers import tables as course


def column(table, name, position=0):
    """Return a column of a table by its head, of several alike the one at a position."""
    place = [number for number, head in enumerate(table.columns) if head == name][position]
    return [row[place] for row in table.rows]


def test_gpt3_sizes_are_exact_and_both_slips_are_shown_with_both_numbers() -> None:
    table = sizes.sizes_table()
    exact = [125_226_240, 355_871_744, 760_300_032, 1_315_723_264, 2_651_553_280, 6_658_404_352, 12_853_386_240]
    assert column(table, "parameters") == [f"{number:,}" for number in (*exact, 174_604_259_328)]
    differs = [row[0] for row in table.rows if row[-1] != "agrees"]
    assert differs == ["GPT-3 XL", "GPT-3 13B"]
    xl, thirteen = table.notes
    assert "1,315,723,264" in xl
    assert "1,517,123,584" in xl
    assert "12,853,386,240" in thirteen
    assert "12,952,938,780" in thirteen


@pytest.mark.parametrize("row", sizes.SIZES, ids=lambda row: row.preset)
def test_gpt3_sizes_follow_from_their_formula(row) -> None:
    width = 5120 if row.width == 5140 else row.width
    formula = (50_257 + 2048) * width + row.layers * (12 * width**2 + 13 * width) + 2 * width
    assert parameters(preset(row.preset)) == formula


def test_gpt3_13b_of_the_printed_width_has_its_formula_too() -> None:
    formula = (50_257 + 2048) * 5140 + 40 * (12 * 5140**2 + 13 * 5140) + 2 * 5140
    assert parameters(gpt3(5140, 40, 20)) == formula == 12_952_938_780


def test_both_conventions_of_175_billion() -> None:
    table = sizes.matrices_table()
    assert table.rows[-1] == ("all", "", "27,938", "175,181,291,520")
    numbers = dict(zip(column(table, "matrix"), column(table, "numbers"), strict=True))
    assert numbers["Embedding"] == numbers["Unembedding"] == "617,558,016"
    assert {numbers[name] for name in ("Key", "Query", "Value", "Output")} == {"14,495,514,624"}
    assert {numbers[name] for name in ("Up-projection", "Down-projection")} == {"57,982,058,496"}
    notes = " ".join(table.notes)
    assert "174,604,259,328" in notes
    assert "37,058 matrices" in notes
    assert "4,718,592 bytes a token" in notes
    assert "9,663,676,416" in notes


PRINTED = """
T5-Small 2.08 1.80e20 60 1000
T5-Base 7.64 6.60e20 220 1000
T5-Large 26.7 2.31e21 770 1000
T5-3B 104 9.00e21 3000 1000
T5-11B 382 3.30e22 11000 1000
BERT-Base 1.89 1.64e20 109 250
BERT-Large 6.16 5.33e20 355 250
RoBERTa-Base 17.4 1.50e21 125 2000
RoBERTa-Large 49.3 4.26e21 355 2000
GPT-3 Small 2.60 2.25e20 125 300
GPT-3 Medium 7.42 6.41e20 356 300
GPT-3 Large 15.8 1.37e21 760 300
GPT-3 XL 27.5 2.38e21 1320 300
GPT-3 2.7B 55.2 4.77e21 2650 300
GPT-3 6.7B 139 1.20e22 6660 300
GPT-3 13B 268 2.31e22 12850 300
GPT-3 175B 3,640 3.14e23 174600 300
"""


def test_every_row_of_table_d1_follows_from_its_own_counts() -> None:
    table = gpt3_compute.compute_table()
    for row, line in zip(table.rows, PRINTED.strip().splitlines(), strict=True):
        name, days, flops, millions, billions = line.rsplit(maxsplit=4)
        assert (row[0], row[1].replace(",", ""), row[2].replace(",", "")) == (name, millions, billions)
        assert row[4] == row[5] == flops
        assert row[6] == row[7] == days
        assert row[8] == "agrees"
    assert "335,141,888" in table.notes[0]


def test_a_wrong_row_of_table_d1_would_be_seen() -> None:
    wrong = gpt3_compute.Gpt3ComputeRow("T5-Small", 60, 1000, "2.08", "1.80e20")  # as if all parameters were active
    assert not wrong.agrees


def test_figure_2_2_has_a_bar_for_each_training_on_a_logarithmic_axis() -> None:
    svg = gpt3_compute.compute_chart()
    bars = [float(node.get("width")) for node in ElementTree.fromstring(svg).iter() if node.get("class") == "f0"]
    days = [float(row.days) for name in gpt3_compute.GROUPS for row in gpt3_compute.ROWS if row.name.startswith(name)]
    logarithms = torch.tensor(days, dtype=torch.float64).log10()
    ratio = torch.tensor(bars, dtype=torch.float64) / logarithms  # the axis begins at 1, whose logarithm is zero
    assert float(ratio.max() / ratio.min() - 1) < 1e-3


def test_the_case_study_shows_the_slide_and_both_products() -> None:
    table = gpt3_compute.case_study_table()
    assert column(table, "PF-days") == ["3,645.8", "6,076.4", "55.2", "49.3"]
    assert re.search(r"slide differs: 50 .*6,076\.4.*3,645\.8", table.notes[0])


def test_published_trainings_by_the_formula_of_their_report() -> None:
    by_name = {run.name: run.flops for run in training_runs.RUNS}
    assert scientific(by_name["PaLM 540B, with attention"]) == "2.56e24"
    assert scientific(by_name["PaLM 540B, without"]) == "2.53e24"
    assert scientific(by_name["Llama 3.1 405B"], 2) == "3.8e25"
    assert scientific(by_name["GPT-3 175B"]) == "3.14e23"
    rows = {row[0]: row for row in training_runs.runs_table().rows}
    assert "5.76e23, computed 5.88e23" in rows["Chinchilla 70B"][5]
    assert rows["Llama 3.1 405B"][5] == "agrees"


def test_chinchillas_tables_and_the_rows_that_do_not_follow() -> None:
    def differing(approach):
        return {row[0]: (row[2], row[3]) for row in chinchilla.sizes_table(approach).rows if row[-1] != "agrees"}

    assert differing(1) == {"67B": ("5.76e23", "6.03e23")}
    assert differing(2) == {}
    assert differing(3) == {
        "67B": ("1.71e24", "1.65e24"),
        "175B": ("1.26e24", "1.26e25"),
        "280B": ("3.52e25", "3.38e25"),
    }
    assert "paper differs: printed 5.76e23, computed 6.03e23" in chinchilla.sizes_table(1).rows[3]


def test_both_sizes_of_gpt4_are_shown() -> None:
    for table in (model_sizes.model_sizes_table(), training_runs.models_table()):
        notes = " ".join(table.notes)
        assert "slide differs" in notes
        assert "1.76 trillion" in notes
        assert "1.5 trillion" in notes
    assert "2.81 trillion" in " ".join(training_runs.models_table().notes).replace("\n", " ")


def test_sizes_by_year_are_the_published_counts() -> None:
    by_name = {model.name: model.parameters for model in model_sizes.MODELS}
    assert by_name["DeepSeek-V3"] == 671_026_404_352
    assert by_name["PaLM"] == 540_356_474_880
    assert by_name["Llama 3.1 405B"] == 405_853_388_800
    assert by_name["GPT-3"] == 174_604_259_328
    rows = model_sizes.gpt_table().rows
    assert [row[6] for row in rows] == ["116,534,784", "1,557,611,200", "174,604,259,328"]
    assert [row[7].split(":")[0] for row in rows] == ["agrees", "slide differs", "agrees"]
    with pytest.raises(UsageError, match="no published size"):
        published("GPT-5")


def test_the_gpts_are_those_of_the_slide(data_set) -> None:
    slide = json.loads(data_set("course-slides/slides.json").read_text())["gpt_table"]["rows"]
    for printed, ours in zip(slide, model_sizes.GPTS, strict=True):
        assert all(number in (None, our) for number, our in zip(printed, ours[:6], strict=True))


def test_attention_blocks_have_the_parameters_of_their_formulas() -> None:
    table = complexity.attention_block_table()
    assert column(table, "parameters") == ["15,360", "786,432", "8,388,608", "1,048,576"]

    def counted(heads, head_width):
        with torch.device("meta"):
            built = MultiHeadAttention.Spec(heads=heads, kv_heads=heads, head_width=head_width).build(512)
        return sum(parameter.numel() for parameter in built.parameters())

    assert counted(8, 512) == 8_388_608
    assert counted(8, 64) == 1_048_576


def test_layers_cost_what_the_course_says_and_cross_where_n_is_d() -> None:
    rows = {row[0]: row for row in complexity.layers_table().rows}
    assert rows["self-attention"][1:4] == ("O(n^2 d)", "O(1)", "O(1)")
    assert rows["recurrent"][1:4] == ("O(n d^2)", "O(n)", "O(n)")
    for _, n, d, attention, recurrence, _, cheaper in complexity.crossover_table().rows:
        n, d, attention, recurrence = (int(text.replace(",", "")) for text in (n, d, attention, recurrence))
        assert attention * d == recurrence * n
        assert cheaper == ("attention" if n < d else "recurrence")


def test_energy_follows_from_hours_and_watts_where_it_says_so() -> None:
    said = {one.name: one.said for one in energy.TRAININGS}
    assert said["GPT-3 175B"] == "agrees: the days are rounded"
    assert [name for name, text in said.items() if text.startswith("paper differs")] == ["BLOOM-176B", "LLaMA 65B"]
    assert energy.brain_table().rows[0][1] == "85 billion"
    assert energy.brain_table().rows[1][1] == "100 trillion"


def test_every_table_names_its_source_and_fills_its_columns() -> None:
    every = list(course.tables())
    assert len({table.name for table in every}) == len(every) == 18
    for table in every:
        assert re.search(r"\b(19|20)\d\d\b|deck", table.source), table.name
        assert {len(row) for row in table.rows} == {len(table.columns)}, table.name


def test_the_page_holds_every_table_and_figure_and_is_the_same_each_time() -> None:
    text = course.page(MADE)
    assert text == course.page(MADE)
    figures = re.findall("<svg.*?</svg>", text, re.DOTALL)
    assert len(figures) == 4
    for svg in figures:
        ElementTree.fromstring(svg)
    for table in course.tables():
        assert f'<section id="{table.name}">' in text
    assert "http" not in re.sub(r'xmlns="[^"]*"', "", text).replace("http-equiv", "")


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (scientific(5325 * 10**17), "5.33e20"),  # a half, which is rounded up as in print
        (scientific(9.996e20), "1.00e21"),
        (plain(2.6), "2.60"),
        (plain(3637.5), "3,640"),
        (plain(0.0425, 2), "0.043"),
        (large(1.5e9, 2), "1.5 billion"),
        (large(70e9), "70.0 billion"),
    ],
)
def test_numbers_are_rounded_as_in_print(shown, expected) -> None:
    assert shown == expected
