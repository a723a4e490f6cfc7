import pytest

from orrery.errors import UsageError
from orrery.laws import mixtures
from orrery.planning.data_table import (
    GPT3,
    GPT3_TRAINING,
    PUBLISHED,
    MixtureRow,
    agrees,
    gpt3_epochs,
    gpt3_table,
    mixture_table,
    published_table,
    rounding_explains,
)


def test_gpt3_mixture_golden() -> None:
    assert sum(row.tokens for row in GPT3) == 499e9
    assert sum(row.weight for row in GPT3) == 101
    assert [f"{gpt3_epochs(row):.3f}" for row in GPT3] == ["0.439", "3.474", "2.000", "0.436", "3.000"]
    assert [row.printed for row in GPT3] == ["0.44", "2.9", "1.9", "0.43", "3.4"]
    assert [agrees(row) for row in GPT3] == [True, False, False, False, False]
    assert [rounding_explains(row) for row in GPT3] == [True, False, True, True, True]


def test_the_table_says_where_the_slide_differs_and_by_how_much() -> None:
    table = gpt3_table()
    assert table[0] == ("Common Crawl (filtered)", "410 billion", "60 %", "0.439", "0.44", "agrees")
    assert [row[-1].split(":")[0] for row in table[1:5]] == [
        f"slide differs by {deviation}" for deviation in ("-0.574", "-0.100", "-0.006", "+0.400")
    ]
    assert table[5][1:3] == ("499 billion", "101 %")


def test_verify_has_them() -> None:
    checks = list(mixtures.check())
    assert len(checks) == 8
    assert all(check.passed for check in checks)
    assert [slide.slide for slide in mixtures.slides()] == ["2.9", "1.9", "0.43", "3.4"]


def test_a_users_mixture_is_of_normalised_weights() -> None:
    rows = [MixtureRow("a", 1000, 3), MixtureRow("b", 50, 1)]
    assert mixture_table(rows, 400) == [
        ("a", "1,000", "75.00 %", "0.300"),
        ("b", "50", "25.00 %", "2.000"),
        ("all", "1,050", "100.00 %", "0.381"),
    ]
    with pytest.raises(UsageError, match="weight of 0"):
        mixture_table([MixtureRow("a", 1000, 0)], GPT3_TRAINING)


def test_published_models_golden() -> None:
    ratios = [row[-1] for row in published_table()]
    assert ratios == ["6.7", "1.7", "1.4", "20.0", "11.4", "21.5", "28.6", "?", "?", "37.0"]
    assert len(PUBLISHED) == 10


def test_published_models_are_those_of_the_slide(data_set) -> None:
    import json

    slide = json.loads(data_set("course-slides/slides.json").read_text())["G21_llm_table"]["rows"]
    for printed, ours in zip(slide, published_table(), strict=True):
        assert [printed[0], printed[1], str(printed[2])] == list(ours[:3])
        assert printed[3].removeprefix("~").split(" (")[0] == ours[3]
        assert printed[4] == ours[4]
