"""Speed measured: what the numbers mean, equal tokens, what is refused. No test says how fast."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from gguf_files import rewritten
from made_pages import MADE
from orrery.cli.program import run
from orrery.errors import MachineError, UsageError
from orrery.exchange.exporting.export import export_gguf
from orrery.exchange.reading.read import Stored, read
from orrery.families import load_family
from orrery.planning.parameters import parameters
from orrery.studies.bench import report
from orrery.studies.bench.generating import CHECKED, bench_generate, check_cases, closing, step_bytes
from orrery.studies.bench.machine import MachineLimits, measure_machine, rows_of
from orrery.studies.bench.rounds import Case, Series, agreement, measure
from orrery.studies.bench.shapes import SHAPES, check_model, make_model, placeholder_tokenizer
from orrery.studies.bench.subjects import PEERS, PeerProgram, check_peers
from orrery.training.machine_rates import BandwidthProbe, product_rate
from page_tables import tables
from speed_toy import MACHINE, MEASURED
from stand_ins import stand_in
from tiny_models import tiny


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Let the clock of the machine's limits go on by these seconds, call after call."""
    steps: list[float] = []
    now = [0.0]

    def read() -> float:
        now[0] += steps.pop(0)
        return now[0]

    monkeypatch.setattr("orrery.training.machine_rates.perf_counter", read)
    return steps


class Writer:
    """Writes the number of each token's place, and remembers what it was asked."""

    def __init__(self, name: str) -> None:
        self.name, self.asked = name, list[tuple[int, int]]()

    def write(self, rows: list[list[int]], new: int) -> list[list[int]]:
        self.asked.append((len(rows), new))
        return [list(range(new)) for _ in rows]

    def close(self) -> None: ...


def test_rates_are_tokens_over_seconds() -> None:
    series = Series("ours", Case(rows=2, prompt=10, new=5), first=[1.0, 2.0], whole=[3.0, 4.0], tokens=[])
    assert series.rates["prefill"] == [20.0, 10.0]
    assert series.rates["whole"] == [10 / 3, 10 / 4]
    assert series.rates["decode"] == [8 / 2, 8 / 2]
    slower = Series("theirs", series.case, first=[2.0, 2.0], whole=[6.0, 4.0], tokens=[])
    assert series.faster_than(slower, "first") == [2.0, 1.0]
    assert series.faster_than(slower, "whole") == [2.0, 1.0]


def test_a_case_of_one_token_measures_reading_alone() -> None:
    assert set(Series("ours", Case(1, 10, 1), [1.0], [1.0], []).rates) == {"first", "prefill"}


def test_everybody_writes_the_same_in_every_round_and_turns_alternate() -> None:
    turns: list[str] = []
    first, second = Writer("a"), Writer("b")
    measured = measure([first, second], Case(2, 4, 3), 100, rounds=2, say=turns.append)
    assert first.asked == second.asked == [(2, 3), (2, 1), (2, 3), (2, 1), (2, 3)]
    assert [len(series.first) for series in measured] == [2, 2]
    assert [line[-1] for line in turns[2:]] == ["a", "b", "b", "a"]


def test_prompts_are_the_same_again_and_of_the_vocabulary() -> None:
    case = Case(3, 50, 1)
    assert case.prompts(7) == case.prompts(7)
    assert {id for row in case.prompts(7) for id in row} == set(range(7))


def test_agreement_ends_at_the_first_difference_of_a_row() -> None:
    assert agreement([[1, 2, 3], [4, 5, 6]], [[1, 2, 3], [4, 0, 6]]) == (4, 6)


def test_a_step_reads_every_weight_but_tables_of_which_it_takes_a_row_and_the_cache() -> None:
    tied, apart = tiny("gpt2", torch.float32), tiny("llama", torch.float32, tie_word_embeddings=False)
    case, numbers = Case(rows=3, prompt=8, new=4), {True: 2 * 2 * 32, False: 2 * 2 * 16}
    places = 48 * 32 * 4
    weights = sum(p.nbytes for p in tied.parameters()) - places
    assert step_bytes(tied, case) == weights + 3 * numbers[True] * 4 * 10
    weights = sum(p.nbytes for p in apart.parameters()) - apart.embed.token.weight.nbytes
    assert step_bytes(apart, case) == weights + 3 * numbers[False] * 4 * 10


def test_a_case_beyond_the_context_is_refused() -> None:
    model = tiny("gpt2")
    check_cases([Case(1, 39, 9), Case(1, 40, 8)], model)
    with pytest.raises(UsageError, match=r"40 \+ 9 tokens are more than this model's context of 48") as refused:
        check_cases([Case(1, 40, 9)], model)
    assert refused.value.hint == "take fewer tokens"


@pytest.mark.parametrize("family", ["bert", "t5", "vit"])
def test_what_does_not_write_from_left_to_right_alone_is_refused(family: str) -> None:
    rules = load_family(family)
    with torch.device("meta"), pytest.raises(UsageError, match="only a decoder's writing") as refused:
        check_cases([Case(1, 4, 4)], rules.spec(rules.TINY).build(0))
    assert refused.value.hint == "give a decoder"


def test_an_unknown_peer_and_a_missing_package_are_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="no peer 'ollama'") as unknown:
        check_peers(["ollama"])
    assert all(name in unknown.value.hint for name in PEERS)
    monkeypatch.setitem(PEERS, "llama.cpp", ("no_such_package", "pip install no_such_package"))
    with pytest.raises(MachineError, match="no_such_package") as raised:
        check_peers(["llama.cpp"])
    assert raised.value.hint == "pip install no_such_package"


@pytest.mark.parametrize("size", [300, 32_000])
def test_the_placeholder_has_exactly_the_ids_and_reads_text(size: int) -> None:
    tokenizer = placeholder_tokenizer(size)
    assert tokenizer.size == size
    assert tokenizer.decode(tokenizer.encode("the cat, äöü")) == "the cat, äöü"
    assert tokenizer.special("end") == size - 1


def test_the_limits_are_numbers_with_notes() -> None:
    reading = BandwidthProbe(1000)
    assert reading() > 0
    assert product_rate(torch.float32, 4, 8, 16, seconds=0.001) > 0
    assert [row[0] for row in rows_of(MACHINE)] == ["memory read", "float32 products"]
    busy = MachineLimits("x", (), 2, 400.0, (10.0, 40.0), {})
    assert any("busy" in note for note in busy.notes())
    assert any("shared" in note for note in busy.notes())


def test_memory_is_read_at_its_bytes_over_the_seconds(monkeypatch: pytest.MonkeyPatch, clock: list[float]) -> None:
    monkeypatch.setattr("orrery.training.machine_rates.PROBE", 2000)
    clock[:] = [5.0, 2.0, 5.0, 4.0]
    assert BandwidthProbe()() == 2000 * 4 / 2.0 / 1e9
    assert BandwidthProbe(500)() == 500 * 4 / 4.0 / 1e9


def test_products_are_made_at_their_operations_over_the_median_of_the_seconds(clock: list[float]) -> None:
    clock[:] = [9.0, 1.0, 9.0, 5.0, 9.0, 2.0]
    assert product_rate(torch.float32, 4, 8, 16, seconds=8.0) == pytest.approx(2 * 4 * 8 * 16 / 2.0 / 1e9)
    clock[:] = [9.0, 1.0, 9.0, 5.0, 9.0, 2.0, 9.0, 8.0]
    assert product_rate(torch.float32, 4, 8, 16, seconds=9.0) == pytest.approx(2 * 4 * 8 * 16 / 3.5 / 1e9)
    assert not clock


def test_the_limits_of_a_machine_are_noted_where_they_are_to_be_doubted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 10)
    for load, rates, notes in (
        (2.0, (10.0, 12.5), 1),
        (2.1, (10.0, 12.5), 2),
        (2.0, (10.0, 12.6), 2),
    ):
        assert len(MachineLimits("x", ("avx2", "sve"), 2, load, rates, {}).notes()) == notes
    assert MACHINE.notes() == ["a processor, 2 threads; avx2"]
    assert "no known features" in MachineLimits("x", (), 2, 0.0, (1.0, 1.0), {}).notes()[0]


def test_the_machine_is_measured_and_says_what_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orrery.training.machine_rates.PROBE", 1000)
    monkeypatch.setattr("orrery.studies.bench.machine.SHAPES", ((4, 8, 16),))
    flags = frozenset({"fpu", "amx_tile", "avx2", "sse"})
    monkeypatch.setattr(
        "orrery.studies.bench.machine.this_processor", lambda: SimpleNamespace(vendor="Makers", flags=flags)
    )
    said: list[str] = []
    machine = measure_machine(said.append)
    assert len(said) == 3
    assert (machine.processor, machine.features) == ("Makers", ("avx2", "amx_tile"))
    assert 0 < machine.read[0] <= machine.read[1]
    assert set(machine.products) == {"float32", "bfloat16"}
    assert json.loads(json.dumps(machine.state()))["threads"] == torch.get_num_threads()


@pytest.mark.parametrize(("name", "millions"), [("gpt2-124m", 124), ("gpt2-355m", 355), ("llama-430m", 430)])
def test_a_shape_has_the_size_that_it_is_called_by(name: str, millions: int) -> None:
    family, config = SHAPES[name]
    # GPT-2's are rounded by who published them, the Llama's is our own.
    assert parameters(load_family(family).spec(config)) / 1e6 == pytest.approx(millions, rel=0.005)


def test_everybody_is_asked_for_the_same_on_the_same_vocabulary_and_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    peers, asked, said = [], [], list[str]()

    def opened(name: str, stored: Stored, kind: str, most_rows: int, aside: Path) -> Writer:
        peers.append((name, kind, most_rows))
        return Closed(f"{name} {kind}".strip())

    def measured(
        subjects: list[Writer], case: Case, vocabulary: int, rounds: int, say: object, probe: Any
    ) -> list[Series]:
        asked.append(([one.name for one in subjects], case, vocabulary, rounds))
        probe()
        return [Series(one.name, case, [0.5], [1.0], []) for one in subjects]

    class Closed(Writer):
        def close(self) -> None:
            said.append(f"{self.name} is closed")

    monkeypatch.setenv("ORRERY_KERNEL", "eager")
    monkeypatch.setattr("orrery.training.machine_rates.PROBE", 1000)
    for name, instead in (("open_peer", opened), ("measure", measured)):
        monkeypatch.setattr(f"orrery.studies.bench.generating.{name}", instead)
    monkeypatch.setattr("orrery.studies.bench.generating.equal_tokens", lambda *words: {})
    cases = [Case(2, 6, 4), Case(5, 20, 1)]
    words = ("gpt2-tiny", "bfloat16", cases, ("transformers", "llama.cpp"), ("bf16", "q8_0"), 3)
    speed = bench_generate(*words, lambda say: MACHINE, said.append)
    assert peers == [("transformers", "", 5), ("llama.cpp", "bf16", 5), ("llama.cpp", "q8_0", 5)]
    names = ["orrery", "transformers", "llama.cpp bf16", "llama.cpp q8_0"]
    assert asked == [(names, case, 300, 3) for case in cases]
    assert said[-3:] == [f"{name} is closed" for name in reversed(names[1:])]
    assert "6 + 4 tokens, 2 rows: orrery 8.0 tokens/s, transformers 8.0 tokens/s" in said[-5]
    assert "reading 20, 5 rows: orrery 200.0 tokens/s" in said[-4]
    assert (speed.model, speed.machine, len(speed.series)) == ("gpt2-tiny bfloat16", MACHINE, 2)
    assert speed.bytes_per_step[0] < speed.bytes_per_step[1]
    assert 0 < speed.read[0] <= speed.read[1]


def test_a_subject_is_closed_whatever_happens() -> None:
    ends = []
    with (
        pytest.raises(KeyboardInterrupt),
        closing(stand_in(PeerProgram, name="a", close=lambda: ends.append("closed"))),
    ):
        raise KeyboardInterrupt
    assert ends == ["closed"]


def test_peers_write_our_tokens_and_all_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orrery.training.machine_rates.PROBE", 1000)
    cases = [Case(2, 6, 4), Case(1, 20, 1)]
    speed = bench_generate("gpt2-tiny", "float32", cases, tuple(PEERS), (), 2, lambda say: MACHINE, lambda line: None)
    assert speed.equal == {"transformers": (CHECKED, CHECKED), "llama.cpp": (CHECKED, CHECKED)}
    assert [series.subject for series in speed.series[0]] == ["orrery", "transformers", "llama.cpp f32"]
    rows = report.rows(speed)
    assert len(rows) == 6
    assert all(len(row) == len(report.COLUMNS) for row in rows)
    assert "16 of 16" in report.notes(speed)[-1]
    assert json.loads(json.dumps(speed.state()))["cases"][0]["subjects"][1]["ours_faster"]["whole"]
    page = report.page(speed, MADE)
    assert page.count("<svg") == 2
    assert "transformers" in page


def test_a_table_has_a_row_for_everybody_in_every_case() -> None:
    assert report.rows(MEASURED) == [
        ["10 + 5 tokens, 2 rows", "orrery", "1.000", "20.0", "4.0", "3.3", "40%", ""],
        ["10 + 5 tokens, 2 rows", "transformers", "2.000", "10.0", "2.0", "1.7", "", "2.00x [2.00 2.00]"],
        ["reading 20", "orrery", "0.500", "40.0", "", "", "", ""],
        ["reading 20", "transformers", "1.000", "20.0", "", "", "", "2.00x [2.00 2.00]"],
    ]
    notes = "\n".join(report.notes(MEASURED))
    for said in ("eager steps", "a processor", "4.0 GB/s, best 5.0", "transformers: 15 of 16 greedy tokens"):
        assert said in notes


def test_a_page_has_the_table_under_its_heads_the_notes_and_the_bars_of_each_case() -> None:
    page = report.page(MEASURED, MADE)
    assert tables(page) == [(list(report.COLUMNS), report.rows(MEASURED))]
    assert all(note in page for note in report.notes(MEASURED))
    assert page.count("<svg") == 2


@pytest.mark.parametrize(
    ("prefill", "read"), [(["--prefill", "7"], [Case(1, 7, 1)]), (["--prefill", "0"], []), ([], [Case(1, 512, 1)])]
)
def test_every_batch_is_a_case_and_a_prompt_that_is_only_read_one_more(
    prefill: list[str], read: list[Case], monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    asked = []
    monkeypatch.setattr(
        "orrery.studies.bench.generating.bench_generate", lambda *words: asked.append(words) or MEASURED
    )
    files = ["--json", str(tmp_path / "a.json"), "--page", str(tmp_path / "a.html")]
    words = ["gpt2-tiny", "--batch", "1", "3", "--prompt", "5", "--new", "2", "--rounds", "4", *prefill, *files]
    assert run(["bench", "generate", *words]) == 0
    ((model, dtype, cases, peers, kinds, rounds, *_),) = asked
    assert (model, dtype, peers, kinds, rounds) == ("gpt2-tiny", "float32", (), (), 4)
    assert cases == [Case(1, 5, 2), Case(3, 5, 2), *read]
    printed = capsys.readouterr().out
    assert all(word in printed for word in (*report.COLUMNS, *report.notes(MEASURED)))
    assert json.loads((tmp_path / "a.json").read_text()) == json.loads(json.dumps(MEASURED.state()))
    page = (tmp_path / "a.html").read_text()
    assert tables(page) == tables(report.page(MEASURED, MADE))
    assert f"<pre>orrery bench generate {' '.join(words)}</pre>" in page


def test_a_model_folder_of_another_kind_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "generate", str(tmp_path / "none"), "--peer", "transformers"]) == 4
    assert "does not exist" in capsys.readouterr().err
    assert run(["bench", "generate", "none", "--peer", "transformers"]) == 2
    assert "gpt2-124m" in capsys.readouterr().err
    assert set(SHAPES) >= {"gpt2-124m", "llama-430m"}


def test_a_file_that_exists_is_refused_before_anything_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.json").write_text("{}")
    assert run(["bench", "--json", str(tmp_path / "a.json")]) == 2
    assert "exists already" in capsys.readouterr().err


def test_a_gguf_file_is_measured_as_it_is_stored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In its blocks here and in llama.cpp, unpacked for a peer that reads no such file."""
    monkeypatch.setattr("orrery.training.machine_rates.PROBE", 1000)
    monkeypatch.setenv("ORRERY_KERNEL", "eager")
    whole, file = tmp_path / "f32.gguf", tmp_path / "q8.gguf"
    folder = make_model("gpt2-tiny", tmp_path / "model", torch.float32, lambda line: None)
    export_gguf(read(folder), whole, "f32")
    rewritten(whole, file, "Q8_0")
    check_model(str(file))
    speed = bench_generate(
        str(file), "float32", [Case(1, 6, 4)], tuple(PEERS), (), 1, lambda say: MACHINE, lambda line: None
    )
    assert [one.subject for one in speed.series[0]] == ["orrery", "transformers", "llama.cpp of the file"]
    assert speed.equal["transformers"] == (CHECKED, CHECKED)
    assert speed.bytes_per_step[0] < step_bytes(read(folder).model, Case(1, 6, 4)) / 2
