import pytest
import torch

from orrery.errors import DataError, MachineError, UsageError
from orrery.language_model.load import load
from tiny_models import TEXT, TOKENIZER, saved


@pytest.fixture(scope="module", params=["gpt2", "llama"])
def lm(request, tmp_path_factory):
    return load(saved(tmp_path_factory.mktemp("lm"), request.param, torch.float64), say=lambda line: None)


def test_generate_streams_what_it_returns(lm):
    pieces = []
    text = lm.generate("the cat", max_new_tokens=9, temperature=1.3, seed=4, stream=pieces.append)
    assert "".join(pieces) == text
    assert text == lm.generate("the cat", max_new_tokens=9, temperature=1.3, seed=4)
    assert text != lm.generate("the cat", max_new_tokens=9, temperature=1.3, seed=5)
    assert lm.generations(["", "the cat"], max_new_tokens=9, temperature=1.3, seed=3)[1].text == text


def test_an_empty_prompt_is_the_beginning_of_a_text(lm):
    end = TOKENIZER.special("end")
    expected = lm.logits([[end]])[0, -1].argmax()
    assert lm.generations([""], max_new_tokens=1)[0].ids == [int(expected)]


def test_a_prompt_longer_than_the_context_names_both_numbers(lm):
    tokens = len(TOKENIZER.encode(TEXT * 5))
    with pytest.raises(UsageError, match=f"{tokens} tokens .* context of 48"):
        lm.generate(TEXT * 5)
    with pytest.raises(UsageError, match=r"cannot fit .* 48 tokens"):
        lm.generate("a" * 10**6)
    kept = TOKENIZER.decode(TOKENIZER.encode(TEXT * 5)[-40:])
    for long in (TEXT * 5, "a" * 10**5 + TEXT * 5):
        answer = lm.generations([long], max_new_tokens=8, truncate="left")[0]
        assert (answer.text, len(answer.ids)) == (lm.generate(kept, max_new_tokens=8), 8)


def test_score_is_the_chain_rule_over_every_token(lm):
    scored = lm.score("the cat sat")
    ids = TOKENIZER.encode("the cat sat")
    logp = lm.logits([[TOKENIZER.special("end"), *ids]])[0].log_softmax(-1)
    assert scored.ids == ids
    assert "".join(scored.tokens) == "the cat sat"
    assert scored.total == pytest.approx(sum(float(logp[i, id]) for i, id in enumerate(ids)))


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_on_either_side_changes_nothing(lm, side):
    rows = [[5, 9, 200, 31], [7, 8]]
    padded, mask = torch.zeros(2, 6, dtype=torch.long), torch.zeros(2, 6, dtype=torch.long)
    for i, row in enumerate(rows):
        place = slice(6 - len(row), 6) if side == "left" else slice(0, len(row))
        padded[i, place], mask[i, place] = torch.tensor(row), 1
    for method in (lm.logits, lm.hidden):
        logits_of_rows = method(padded, mask)
        for i, row in enumerate(rows):
            torch.testing.assert_close(logits_of_rows[i][mask[i].bool()], method([row])[0], rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        (([[5, TOKENIZER.size]],), DataError, f"token id {TOKENIZER.size}"),
        (([[-1]],), DataError, "token id -1"),
        (([[]],), UsageError, "shape"),
        ((torch.tensor([5, 6]),), UsageError, "shape"),
        (([[1] * 49],), UsageError, "49 tokens"),
        (([[5, 6]], [[1]]), UsageError, "attention_mask of shape"),
        (([[5, 6]], None, [[1]]), UsageError, "no encoder and decoder"),
    ],
)
def test_inputs_that_make_no_sense_are_refused(lm, arguments, error, says):
    with pytest.raises(error, match=says):
        lm.logits(*arguments)


def test_trace_has_the_tokens_and_sound_checks(lm):
    traced = lm.trace("the cat sat", keep=["*.pattern"])
    assert "".join(traced.tokens) == "the cat sat"
    assert list(traced) == ["blocks.0.attention.pattern", "blocks.1.attention.pattern"]
    assert all(check.passed for check in traced.checks)
    assert len(traced.checks) == 3


def test_dtypes_and_devices(tmp_path):
    folder = saved(tmp_path, "llama", torch.bfloat16)
    said = []
    assert next(load(folder, device="cpu", say=said.append).model.parameters()).dtype == torch.float32
    assert said == [f"{folder}: cpu, float32"]
    stored = load(folder, device="cpu", dtype="stored", say=said.append)
    assert next(stored.model.parameters()).dtype == torch.bfloat16
    stored.save(tmp_path / "again")
    assert (tmp_path / "again" / "model.safetensors").read_bytes() == (folder / "model.safetensors").read_bytes()
    assert next(load(folder, dtype="float64", say=said.append).model.parameters()).dtype == torch.float64
    with pytest.raises(UsageError, match="no dtype"):
        load(folder, dtype="int8")
    with pytest.raises(UsageError, match="shapes and no numbers"):
        load(folder, device="meta")
    with pytest.raises(UsageError, match="no kind of device"):
        load(folder, device="abacus")
    if not torch.cuda.is_available():
        with pytest.raises(MachineError, match="cuda"):
            load(folder, device="cuda")


def test_padding_inside_a_row_is_refused(lm):
    mask = [[1, 1, 0, 1, 1]]
    for method in (lm.logits, lm.hidden):
        with pytest.raises(UsageError, match="padding inside a row: row 0, token 3"):
            method([[5, 6, 7, 8, 9]], mask)
