"""Objectives over labels: the loss of transformers' classes, whatever the padding and the split of a batch."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from objectives_toy import generator, text_rows, tokenizer_of
from orrery.errors import UsageError
from orrery.families import answering, load_family
from orrery.objectives import OBJECTIVES, NeededHead
from orrery.text.word_starts import word_starts
from orrery.training.distributed import Alone
from orrery.training.precision import Precision
from orrery.training.step import accumulate

ROWS, LENGTH, LABELS = 5, 9, 3
CASES = {
    "classification": ("BertForSequenceClassification", "single_label_classification", LABELS),
    "multi_label": ("BertForSequenceClassification", "multi_label_classification", LABELS),
    "regression": ("BertForSequenceClassification", "regression", 1),
    "binary": ("BertForSequenceClassification", "", 1),
    "tagging": ("BertForTokenClassification", "", LABELS),
    "question_answering": ("BertForQuestionAnswering", "", 2),
}


def needed(objective):
    return objective.needed_head({f"label {number}": number + 1 for number in range(LABELS)})


def randomised(model, seed=0):
    torch.manual_seed(seed)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model.double().eval()


def built(name, family="bert"):
    objective = OBJECTIVES.find(name)()
    head = needed(objective)
    rules = load_family(family)
    config = answering(family, rules.TINY, head.kind, head.labels, head.names, head.problem)
    model = randomised(rules.spec(config).build())
    objective.bind(model.spec, None)
    return objective, model, config


def batch_of(name, seed=1):
    rng = torch.Generator().manual_seed(seed)
    ids = torch.randint(1, 60, (ROWS, LENGTH), generator=rng)
    lengths = torch.randint(3, LENGTH + 1, (ROWS,), generator=rng)
    real = torch.arange(LENGTH) < lengths[:, None]
    draw = lambda top: torch.randint(0, top, (ROWS,), generator=rng)  # noqa: E731
    fields = {
        "classification": {"labels": draw(LABELS)},
        "multi_label": {"labels": torch.randint(0, 2, (ROWS, LABELS), generator=rng).float()},
        "regression": {"labels": torch.randn(ROWS, generator=rng)},
        "binary": {"labels": torch.rand(ROWS, generator=rng)},
        "tagging": {
            "targets": torch.randint(0, LABELS, (ROWS, LENGTH), generator=rng)
            .masked_fill(torch.rand(ROWS, LENGTH, generator=rng) < 0.3, -100)
            .masked_fill(~real, -100)
        },
        "question_answering": {"starts": draw(2), "ends": draw(3)},
    }
    return {"ids": ids.masked_fill(~real, 0), "real": real, **fields[name]}


@torch.no_grad()
def total(objective, model, batch):
    counts = objective.counts(batch)
    return sum(term.sum * term.weight / counts[key] for key, term in objective.loss(model, batch).items())


@pytest.mark.parametrize("name", CASES)
def test_the_loss_is_that_of_transformers(name, tmp_path):
    transformers = pytest.importorskip("transformers")
    from orrery.exchange.saving.save import save_model

    objective, model, config = built(name)
    save_model(tmp_path, model.float(), "bert", config)
    model.double()
    assert config["architectures"] == [CASES[name][0]]
    theirs = getattr(transformers, CASES[name][0]).from_pretrained(tmp_path).double().eval()
    assert (theirs.config.problem_type or "") == CASES[name][1]
    batch = batch_of(name)
    told = {"labels": batch.get("labels", batch.get("targets"))} if name != "question_answering" else {}
    if name == "question_answering":
        told = {"start_positions": batch["starts"], "end_positions": batch["ends"]}
        # Theirs counts padding among the places where an answer may begin; rows without any agree.
        batch |= {"ids": batch["ids"] + (~batch["real"]).long(), "real": torch.ones_like(batch["real"])}
    if name == "binary":  # transformers takes one label for a number: the loss is torch's, on their logits
        with torch.no_grad():
            z_B = theirs(input_ids=batch["ids"], attention_mask=batch["real"].long()).logits[:, 0]
        expected = torch.nn.BCEWithLogitsLoss()(z_B, batch["labels"].double())
        assert abs(float(total(objective, model, batch)) - float(expected)) < 1e-6
        return
    if told.get("labels") is not None and told["labels"].is_floating_point():
        told["labels"] = told["labels"].double()
    with torch.no_grad():
        expected = theirs(input_ids=batch["ids"], attention_mask=batch["real"].long(), **told).loss
    assert abs(float(total(objective, model, batch)) - float(expected)) < 1e-6


@pytest.mark.parametrize("name", CASES)
def test_padding_changes_nothing(name):
    objective, model, _ = built(name)
    batch = batch_of(name)
    wider = {}
    for field, tensor in batch.items():
        fill = {"ids": 7, "real": 0, "targets": -100}.get(field)
        extra = torch.full((ROWS, 4), fill or 0, dtype=tensor.dtype) if fill is not None else None
        wider[field] = tensor if extra is None else torch.cat([tensor, extra], 1)
    assert abs(float(total(objective, model, batch) - total(objective, model, wider))) < 1e-9
    alone = [total(objective, model, {k: v[row : row + 1] for k, v in batch.items()}) for row in range(ROWS)]
    if name not in ("tagging",):
        assert abs(float(sum(alone) / ROWS - total(objective, model, batch))) < 1e-9


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("micro", [1, 2, 3])
def test_any_split_of_a_batch_has_the_same_gradient(name, micro):
    results = []
    for size in (None, micro):
        objective, model, _ = built(name)
        precision = Precision("float32", "plain", "cpu", 1)
        loss = accumulate(
            model, objective, batch_of(name), micro_batch=size, seed=(0, 0), ranks=Alone(), precision=precision
        )
        results.append((loss.loss, {key: p.grad for key, p in model.named_parameters() if p.grad is not None}))
    assert abs(results[0][0] - results[1][0]) < 1e-9
    assert results[0][1].keys() == results[1][1].keys()
    assert all((results[0][1][key] - results[1][1][key]).abs().max() < 1e-9 for key in results[0][1])


def test_balanced_weights_let_each_label_count_alike():
    objective = OBJECTIVES.find("classification")(class_weights="balanced")
    objective.needed_head({"a": 60, "b": 30, "c": 10})
    _, model, _ = built("classification")
    spec = model.spec
    objective.bind(replace(spec, heads={"sequence": replace(spec.heads["sequence"], names=("c", "a", "b"))}), None)
    assert objective.weights == pytest.approx((100 / 30, 100 / 180, 100 / 90))
    batch = batch_of("classification")
    losses = torch.nn.functional.cross_entropy(
        model.logits(batch["ids"], real=batch["real"]), batch["labels"], reduction="none"
    )
    weighted = (losses.detach() * torch.tensor(objective.weights, dtype=torch.float64)[batch["labels"]]).sum() / ROWS
    assert abs(float(total(objective, model, batch) - weighted)) < 1e-9
    plain = total(objective.evaluated(), model, batch)
    assert abs(float(plain - losses.detach().mean())) < 1e-9


def test_a_tagger_lets_rare_labels_count_more_by_the_root_of_their_number():
    objective = OBJECTIVES.find("tagging")(class_weights="sqrt")
    objective.needed_head({"O": 81, "B": 16, "I": 3})
    _, model, _ = built("tagging")
    objective.bind(
        replace(model.spec, heads={"token": replace(model.spec.heads["token"], names=("B", "O", "I"))}), None
    )
    scale = 100 / (81**0.5 + 16**0.5 + 3**0.5)
    assert objective.weights == pytest.approx([scale / 4, scale / 9, scale * 3**-0.5])
    batch = batch_of("tagging")
    real, targets = batch["targets"] != -100, batch["targets"]
    logits = model.logits(batch["ids"], real=batch["real"])[real].detach()
    losses = torch.nn.functional.cross_entropy(logits, targets[real], reduction="none")
    chosen = torch.tensor(objective.weights, dtype=torch.float64)[targets[real]]
    assert abs(float(total(objective, model, batch) - (losses * chosen).mean())) < 1e-9
    assert abs(float(total(objective.evaluated(), model, batch) - losses.mean())) < 1e-9


def test_label_smoothing_is_torchs():
    objective = OBJECTIVES.find("classification")(label_smoothing=0.2)
    _, model, _ = built("classification")
    batch = batch_of("classification")
    logits = model.logits(batch["ids"], real=batch["real"])
    expected = torch.nn.functional.cross_entropy(logits.detach(), batch["labels"], label_smoothing=0.2)
    assert abs(float(total(objective, model, batch) - expected)) < 1e-9


@pytest.mark.parametrize("name", CASES)
def test_a_model_without_the_head_is_refused(name):
    rules = load_family("bert")
    with pytest.raises(UsageError, match=f"the objective {name} trains the head"):
        OBJECTIVES.find(name)().bind(rules.spec(rules.TINY), None)


@pytest.mark.parametrize("name", CASES)
def test_the_head_is_found_from_the_labels(name):
    head = needed(OBJECTIVES.find(name)())
    assert isinstance(head, NeededHead)
    assert (head.labels, head.problem) == (CASES[name][2], CASES[name][1])


@pytest.mark.parametrize("name", CASES)
def test_word_dropout_hides_whole_words_in_training_alone(name):
    tokenizer = tokenizer_of("bert")
    objective = OBJECTIVES.find(name)(word_dropout=0.5)
    objective.bind(SimpleNamespace(head_names=(objective.head,), heads={}), tokenizer)
    batch = batch_of(name) | {"ids": text_rows(tokenizer, ROWS, LENGTH, 3)}
    hidden = objective.prepare(batch, generator())
    mask = tokenizer.special("mask")
    changed = hidden["ids"] != batch["ids"]
    assert changed.any()
    assert (hidden["ids"][changed] == mask).all()
    assert not changed[~batch["real"]].any()
    begins = torch.tensor(word_starts(tokenizer))[batch["ids"]]
    inside = ~begins[:, 1:] & batch["real"][:, 1:]
    assert (changed[:, 1:] == changed[:, :-1])[inside].all(), "a word is hidden whole or not at all"
    assert all(torch.equal(hidden[key], batch[key]) for key in batch if key != "ids")
    assert objective.evaluated().prepare(batch, generator()) is batch


def test_word_dropout_needs_a_mask_token():
    _, model, _ = built("classification")
    dropping = OBJECTIVES.find("classification")(word_dropout=0.1)
    with pytest.raises(UsageError, match="classification with word_dropout needs a mask token"):
        dropping.bind(model.spec, None)


def test_speeds_count_tokens_and_not_rows():
    objective, _, _ = built("classification")
    batch = batch_of("classification")
    assert objective.tokens_of(batch, objective.counts(batch)) == int(batch["real"].sum()) > ROWS
    without = {"ids": batch["ids"], "labels": batch["labels"]}
    assert objective.tokens_of(without, objective.counts(without)) == ROWS
