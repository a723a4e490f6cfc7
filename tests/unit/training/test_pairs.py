"""A recipe with pairs: settings, what is left out, every pair once an epoch, padding, resume."""

import json
import re
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import torch

from orrery.checkpoints.store import CheckpointStore
from orrery.cli.train.app import plan, run
from orrery.data.batches.pairs import pair_batch
from orrery.data.sources.text import text_of
from orrery.errors import DataError, UsageError
from orrery.families import load_family
from orrery.language_model.load import load
from orrery.models.dropout import with_dropout
from orrery.models.encoder_decoder import EncoderDecoder
from orrery.nn.residual import Dropout
from orrery.nn.spec import to_json, traverse
from orrery.objectives._from_source import FromSource
from orrery.recipes.config import Recipe
from orrery.recipes.read import as_yaml, check_recipe, load_recipe, set_dotted
from orrery.runs.assemble import assemble

WIDTHS: dict[str, dict[str, Any]] = {
    "rnnsearch": {"hidden_size": 12},
    "rnnenc": {"hidden_size": 12},
    "luong": {"hidden_size": 12},
    "transformer": {"d_model": 12, "d_ff": 24, "num_layers": 1, "num_heads": 2},
}
PAIRS = [("abcde"[: 1 + n % 5] * (1 + n % 3), "edcba"[: 1 + n % 4] * (1 + n % 2)) for n in range(37)]


def write(folder: Path, pairs: list[tuple[str, str]], name: str = "train") -> dict[str, str]:
    files = {side: folder / f"{name}.{side}" for side in ("source", "target")}
    for number, path in enumerate(files.values()):
        path.write_text("".join(pair[number] + "\n" for pair in pairs))
    return {side: str(path) for side, path in files.items()}


@pytest.fixture
def files(tmp_path: Path) -> dict[str, dict[str, str]]:
    return {"pairs": write(tmp_path, PAIRS), "val": write(tmp_path, PAIRS[::3], "val")}


def recipe(files: dict[str, dict[str, str]], family: str = "rnnsearch", **dotted: Any) -> Recipe:
    values: dict[str, Any] = {
        "name": "paired",
        "model": {"family": family, "config": {**WIDTHS[family], "dropout": 0.1, "max_position_embeddings": 32}},
        "tokenizer": {"kind": "character"},
        "data": files,
        "batches": {"kind": "pairs", "length": 16, "size": 5},
        "objective": {"kind": "seq2seq", "label_smoothing": 0.1},
        "training": {
            "steps": 6,
            "precision": "float32",
            "device": "cpu",
            "optimizer": {"rate": 0.01},
            "schedule": {"kind": "constant"},
        },
        "evaluation": {"every": 3},
        "checkpoints": {"every": 3, "keep": 3},
        "logging": {"every": 1},
    }
    for key, value in dotted.items():
        set_dotted(values, key.replace("__", "."), value)
    return check_recipe(values, "paired")


def records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def weights(folder: Path) -> dict[str, bytes]:
    last = CheckpointStore(folder / "checkpoints").path(6)
    return {path.name: path.read_bytes() for path in last.glob("*.safetensors")}


@pytest.mark.parametrize("family", list(WIDTHS))
def test_stopped_and_resumed_equals_uninterrupted(family: str, files: Any, tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    run(recipe(files, family), whole, resume=False, overwrite=False)
    run(recipe(files, family, training__steps=3), cut, resume=False, overwrite=False)
    run(recipe(files, family), cut, resume=True, overwrite=False)
    assert weights(cut) == weights(whole)
    assert len(weights(whole)) == 2
    assert set(records(whole)[-1]) >= {"val/loss", "val/perplexity", "epochs/pairs"}
    timed = ("tokens_per_second", "memory")
    untimed = [[{k: v for k, v in r.items() if k not in timed} for r in records(folder)] for folder in (whole, cut)]
    assert untimed[0] == untimed[1]


def test_every_pair_once_an_epoch(files: Any) -> None:
    assembly = assemble(recipe(files))
    source, tokenizer = assembly.parts.source, assembly.tokenizer
    drawn = []
    for step in range(64 * 37):  # pools of 64 batches of 5 end with an epoch of 37 pairs after 37 of them
        batch = source.batch(step)
        for row, real, target in zip(batch["source"], batch["source_real"], batch["targets"], strict=True):
            written = target[target != -100].tolist()
            assert written[-1] == tokenizer.special("end")
            drawn.append((tokenizer.decode(row[real].tolist()), tokenizer.decode(written[:-1])))
    assert sorted(drawn) == sorted(PAIRS * 320)
    assert assembly.parts.epochs is not None
    assert assembly.parts.epochs(37) == {"pairs": 5.0}
    assert assembly.train_tokens == sum(len(target) + 1 for _, target in PAIRS)


BY_TOKENS = {"kind": "pairs", "length": 16, "tokens": 40}


def test_batches_by_tokens_hold_every_pair_once_an_epoch(files: Any) -> None:
    assembly = assemble(recipe(files, batches=BY_TOKENS))
    source, tokenizer, epochs = assembly.parts.source, assembly.tokenizer, assembly.parts.epochs
    assert epochs is not None
    drawn, step, rows = [], 0, set()
    while epochs(step)["pairs"] < 3:
        batch = source.batch(step)
        assert all(batch[side].numel() <= 40 for side in ("source", "ids"))
        rows.add(len(batch["ids"]))
        drawn += [
            tokenizer.decode(row[real].tolist())
            for row, real in zip(batch["source"], batch["source_real"], strict=True)
        ]
        step += 1
    assert sorted(drawn) == sorted(source for source, _ in PAIRS * 3)
    assert len(rows) > 3
    validation = assembly.parts.validation
    assert validation is not None
    held_back = [validation.source.batch(number) for number in range(validation.batches)]
    assert max(batch["source"].numel() for batch in held_back) <= 40
    assert sum(len(batch["ids"]) for batch in held_back) == len(PAIRS[::3])


def test_batches_by_tokens_are_told_of_and_resumed(files: Any, tmp_path: Path, capsys: Any) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    by_tokens = recipe(files, batches=BY_TOKENS)
    assert "at most 40 positions, rows of 16" in plan(by_tokens, assemble(by_tokens), tmp_path)
    run(by_tokens, whole, resume=False, overwrite=False)
    assert re.search(r"padding: \d+\.\d% of the positions of the first epoch", capsys.readouterr().err)
    run(recipe(files, batches=BY_TOKENS, training__steps=3), cut, resume=False, overwrite=False)
    run(by_tokens, cut, resume=True, overwrite=False)
    assert weights(cut) == weights(whole)
    with pytest.raises(UsageError, match=r"batches\.size was None and is now 5"):
        run(recipe(files), cut, resume=True, overwrite=False)


@pytest.mark.parametrize("family", list(WIDTHS))
def test_a_batch_costs_what_its_pairs_cost_alone(family: str, files: Any) -> None:
    """Padding counts for nothing; validation sees every pair once, whatever the batches' sizes."""
    assembly = assemble(recipe(files, family))
    model, validation = assembly.parts.model.double().eval(), assembly.parts.validation
    assert isinstance(model, EncoderDecoder)
    assert validation is not None
    terms = [
        validation.objective.loss(model, validation.source.batch(n))["next_token"] for n in range(validation.batches)
    ]
    pairs, ends = validation.source.pairs, validation.source.ends
    assert len(pairs) == len(PAIRS[::3])
    alone = [validation.objective.loss(model, pair_batch([pair], ends))["next_token"] for pair in pairs]
    torch.testing.assert_close(sum(t.sum for t in terms), sum(t.sum for t in alone), rtol=1e-12, atol=0)
    assert sum(int(t.count) for t in terms) == sum(len(target) + 1 for _, target in pairs)


def test_long_pairs_are_left_out_and_counted(files: Any, tmp_path: Path, capsys: Any) -> None:
    fitting = [pair for pair in PAIRS if len(pair[0]) <= 6 and len(pair[1]) + 1 <= 6]
    short = recipe(files, batches__length=6)
    assembly = assemble(short)
    assert assembly.parts.source.rows_per_epoch == len(fitting) < len(PAIRS)
    note = f"{len(PAIRS) - len(fitting)} of 37 training pairs left out"
    assert any(note in said for said in assembly.parts.notes)
    assert note in plan(short, assembly, tmp_path)
    run(short, tmp_path / "run", resume=False, overwrite=False)
    assert note in capsys.readouterr().err
    assert note in (tmp_path / "run" / "log.txt").read_text()
    assert [note.partition(":")[0] for note in assemble(recipe(files)).parts.notes] == ["leak", "padding"]
    with pytest.raises(DataError, match="every training pair is longer than 1 tokens"):
        assemble(recipe(files, batches__length=1))


def test_targets_begin_with_the_start_or_the_end_of_the_tokenizer(files: Any, tmp_path: Path) -> None:
    assembly = assemble(recipe(files))
    end = assembly.tokenizer.special("end")
    assert assembly.spec.start == end == assembly.config["decoder_start_token_id"]
    assert assembly.parts.source.batch(0)["ids"][:, 0].tolist() == [end] * 5
    with pytest.raises(UsageError, match=r"begin with token 3, which is no start or end"):
        assemble(recipe(files, model__config__decoder_start_token_id=3))
    (tmp_path / "spec.json").write_text(json.dumps(to_json(assembly.spec)))
    again = assemble(recipe(files, model={"spec": str(tmp_path / "spec.json")}))
    assert again.spec == assembly.spec


def test_a_target_that_its_frame_opens_with_the_start_token_has_it_once(files: Any) -> None:
    framed = {"kind": "byte_bpe", "vocabulary": 261, "frame": "roberta"}
    assembly = assemble(recipe(files, tokenizer=framed))
    end, start = (assembly.tokenizer.special(role) for role in ("end", "start"))
    ids = assembly.parts.source.batch(0)["ids"]
    assert ids[:, :2].tolist() == [[end, start]] * len(ids)


def test_a_run_that_another_version_began_with_another_start_is_not_gone_on_with(files: Any, tmp_path: Path) -> None:
    run(recipe(files, training__steps=3), tmp_path / "run", resume=False, overwrite=False)
    with (
        patch.object(FromSource, "config", lambda self, tokenizer: {"decoder_start_token_id": 1}),
        patch.object(FromSource, "bind", lambda self, spec, tokenizer: None),
        pytest.raises(DataError, match=r"another model than the checkpoint holds \(start\)"),
    ):
        run(recipe(files), tmp_path / "run", resume=True, overwrite=False)


def test_a_checkpoint_is_saved_and_loaded_without_what_the_recipe_left_out(files: Any, tmp_path: Path) -> None:
    run(recipe(files), tmp_path / "run", resume=False, overwrite=False)
    final, checkpoint = (
        load(tmp_path / "run" / name, say=lambda line: None) for name in ("final", "checkpoints/step-000006")
    )
    checkpoint.save(tmp_path / "saved")
    saved = load(tmp_path / "saved", say=lambda line: None)
    texts = [source for source, _ in PAIRS[:6]]
    assert final.translate(texts) == checkpoint.translate(texts) == saved.translate(texts)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"batches__kind": "padded"}, "batches.kind padded: data of kind pairs come as pairs"),
        (
            {"objective": {"kind": "causal"}},
            "does not read source, which data of kind pairs are about; objectives that do: seq2seq",
        ),
        ({"data": {"train": "text.txt"}}, "batches.kind pairs: data of kind text come as crops, packed, padded"),
        (
            {"data": {"train": "text.txt"}, "batches__kind": "crops"},
            "seq2seq needs source, and data of kind text give ids, targets",
        ),
        ({"data__pairs": {"source": "a"}}, "data.pairs.target"),
        ({"data__pairs": {"source": "a", "target": "b", "tarlet": "c"}}, "did you mean 'target'"),
        ({"data__split": {"every": 5}}, "split"),
        ({"data__train": "text.txt"}, "train"),
        ({"batches__tokens": 40}, "exactly one of size (rows) and tokens (positions)"),
        ({"batches__size": None}, "exactly one of size (rows) and tokens (positions)"),
        ({"batches": {"length": 16, "tokens": 15}}, "tokens 15 cannot hold a row of length 16"),
        (
            {
                "data": {"train": "text.txt"},
                "batches": {"kind": "crops", "length": 16, "tokens": 64},
                "objective": {"kind": "causal"},
            },
            "batches.tokens: crops of kind text are counted in rows; name size",
        ),
    ],
)
def test_settings_that_do_not_fit_are_refused_by_key(changes: dict[str, Any], words: str, files: Any) -> None:
    with pytest.raises(UsageError) as caught:
        recipe(files, **changes)
    assert words in caught.value.message


def test_models_that_do_not_fit_are_refused_by_name(files: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="seq2seq needs an encoder-decoder"):
        assemble(recipe(files, model={"family": "gpt2"}))
    with pytest.raises(UsageError, match=r"batches\.length is 16, the model's context 8"):
        assemble(recipe(files, model__config__max_position_embeddings=8))
    with pytest.raises(UsageError, match="vocabulary of 3, the tokenizer"):
        assemble(recipe(files, model__config__vocab_size=3))
    text = {"data": {"train": files["pairs"]["source"]}, "batches__kind": "packed", "objective": {"kind": "causal"}}
    with pytest.raises(UsageError, match="causal needs a decoder"):
        assemble(recipe(files, **text))
    paired = recipe(files)
    with pytest.raises(UsageError, match="are no text"):
        text_of(paired.data, paired.name)


def test_pairs_are_read_by_name_as_well(files: Any, data_set: Any) -> None:
    data_set("multi30k-en-de")
    named = recipe(
        files, data={"pairs": "multi30k-en-de/val"}, batches__length=400, model__config__max_position_embeddings=400
    )
    assert assemble(named).parts.source.rows_per_epoch == 1014
    assert assemble(named).parts.validation is None
    path = Path(files["pairs"]["source"]).with_name("recipe.yaml")
    path.write_text(as_yaml(named))
    assert load_recipe(path) == named


@pytest.mark.parametrize("broken", ["", "\n"])
def test_files_without_pairs_are_refused(broken: str, files: Any) -> None:
    for path in files["pairs"].values():
        Path(path).write_text(broken)
    with pytest.raises(DataError):
        assemble(recipe(files))


@pytest.mark.parametrize("family", list(WIDTHS))
def test_one_rate_reaches_what_a_recurrence_drops(family: str, files: Any) -> None:
    spec = with_dropout(assemble(recipe(files, family)).spec, 0.25)
    rates = {getattr(part, "dropout", 0.0) for path, part in traverse(spec)} - {0.0}
    rates |= {part.rate for _, part in traverse(spec) if isinstance(part, Dropout.Spec)} - {0.0}
    assert rates == {0.25}
    if family != "transformer":
        assert spec.reader.enter == spec.decoder.start == Dropout.Spec(rate=0.25)


@pytest.mark.parametrize("family", ["bart", "luong", "marian", "mbart", "mt5", "pegasus", "sutskever", "t5"])
def test_any_encoder_decoder_learns_from_pairs(family: str, files: Any, tmp_path: Path) -> None:
    own = ("vocab_size", "decoder_start_token_id", "pad_token_id", "eos_token_id", "bos_token_id")
    config = {key: value for key, value in load_family(family).TINY.items() if key not in own}
    run(recipe(files, model={"family": family, "config": config}), tmp_path / "run", resume=False, overwrite=False)
    lines = records(tmp_path / "run")
    assert lines[-1]["val/loss"] < lines[2]["val/loss"] < 4
    assert len(load(tmp_path / "run", say=lambda line: None).translate(["abc"], max_new_tokens=3)) == 1


def test_pairs_are_columns_of_a_table_as_well(files: Any, tmp_path: Path) -> None:
    table = tmp_path / "pairs.jsonl"
    table.write_text("".join(json.dumps({"long": left, "short": right}) + "\n" for left, right in PAIRS))
    named = {"kind": "pairs", "pairs": str(table), "columns": {"source": "long", "target": "short"}}
    run(recipe(files, data=named), tmp_path / "table", resume=False, overwrite=False)
    run(recipe(files, data={"kind": "pairs", "pairs": files["pairs"]}), tmp_path / "two", resume=False, overwrite=False)
    assert weights(tmp_path / "table") == weights(tmp_path / "two")


def test_pairs_that_are_made_here_are_read_by_name(files: Any) -> None:
    named = recipe(files, data={"pairs": "unicode-names/train", "val": "unicode-names/val"}, batches__length=32)
    assembly = assemble(named)
    assert assembly.parts.source.rows_per_epoch > 20_000
    assert assembly.parts.validation is not None
    assert any("left out: longer than" in note for note in assembly.parts.notes)
