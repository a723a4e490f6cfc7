"""Decoders with a head for the whole row (rewards, classes) are transformers' ForSequenceClassification."""

import pytest
import torch
import transformers

from orrery.errors import ModelFileError
from orrery.exchange.saving.save import save_model
from orrery.families import answering, load_family, names
from orrery.families._classifier import class_beside, padding_of
from orrery.language_model.load import load as load_model
from tests.parity.helper import pair

AUTO = "AutoModelForSequenceClassification"
DECODERS = [name for name in names() if class_beside(load_family(name).ARCHITECTURE)]


@pytest.mark.parametrize("kind", DECODERS)
def test_the_score_of_a_row_is_theirs(kind: str) -> None:
    plain = {"word_embed_proj_dim": load_family(kind).TINY["hidden_size"]} if kind == "opt" else {}
    made = pair(kind, auto=AUTO, **{**load_family(kind).TINY, **plain, "num_labels": 3, "pad_token_id": 0})
    ids = torch.randint(3, 50, (3, 7), generator=torch.Generator().manual_seed(0))
    lengths = torch.tensor([7, 4, 1])
    real = torch.arange(7) < lengths[:, None]
    ids = ids * real
    theirs = made.reference(ids, attention_mask=real.long()).logits
    ours = made.ours({"ids": ids, "real": real}, ("sequence",))["sequence"]
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)
    # The last token by its place: one with the padding's number counts, where they look for it by the number.
    ended = torch.where(real, ids, 5)
    torch.testing.assert_close(made.ours({"ids": ended, "real": real}, ("sequence",))["sequence"], ours)


@pytest.mark.parametrize(
    ("kind", "padding"), [*[(kind, 5) for kind in DECODERS], *[("llama", id) for id in (0, -1, 49)]]
)
def test_a_row_ends_before_the_padding_wherever_it_stands(kind: str, padding: int) -> None:
    plain = {"word_embed_proj_dim": load_family(kind).TINY["hidden_size"]} if kind == "opt" else {}
    made = pair(kind, auto=AUTO, **{**load_family(kind).TINY, **plain, "num_labels": 3, "pad_token_id": padding})
    rows = [[7, 8, 9, 6], [7, 8, 9, 5], [7, 5, 9, 0], [7, 9, 5, 5], [5, 5, 5, 5], [0, 0, 0, 0], [49, 1, 49, 49]]
    ids = torch.tensor(rows)
    theirs = made.reference(ids, attention_mask=torch.ones_like(ids)).logits
    ours = made.ours({"ids": ids}, ("sequence",))["sequence"]
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", DECODERS)
def test_the_padding_of_a_file_without_the_key_is_that_of_their_configuration(kind: str) -> None:
    rules = load_family(kind)
    theirs = getattr(transformers, class_beside(rules.ARCHITECTURE)).config_class().pad_token_id
    assert padding_of(rules.ARCHITECTURE, {}) == theirs


@pytest.mark.parametrize("padding", ["<pad>", 1.5, True, [0]])
def test_a_padding_that_is_no_token_is_refused(padding) -> None:
    with pytest.raises(ModelFileError, match=r"pad_token_id = .* is no token"):
        padding_of("LlamaForCausalLM", {"pad_token_id": padding})


def test_families_without_such_a_class_have_none() -> None:
    assert {"llama", "gpt2", "qwen2", "mistral", "gemma2"} <= set(DECODERS)
    for kind in ("cohere", "granite", "olmoe"):
        assert answering(kind, load_family(kind).TINY, "sequence", 1) is None
        stem = load_family(kind).ARCHITECTURE.removesuffix("ForCausalLM")
        assert not hasattr(transformers, f"{stem}ForSequenceClassification")


def test_a_saved_reward_model_is_one_in_transformers(tmp_path) -> None:
    rules = load_family("llama")
    config = answering("llama", {**rules.TINY, "pad_token_id": 0}, "sequence", 1, (), "regression")
    assert config is not None
    made = pair("llama", auto=AUTO, **{**rules.TINY, "num_labels": 1, "pad_token_id": 0})
    save_model(tmp_path, made.ours, "llama", {**made.config, **{"architectures": config["architectures"]}})
    theirs = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path).eval()
    ids = torch.tensor([[5, 6, 7, 8], [9, 10, 0, 0]])
    real = ids != 0
    logits = load_model(tmp_path, say=lambda line: None).model({"ids": ids, "real": real}, ("sequence",))["sequence"]
    torch.testing.assert_close(logits, theirs.double()(ids, attention_mask=real.long()).logits, rtol=1e-5, atol=1e-5)
