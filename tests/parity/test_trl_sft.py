"""Supervised fine-tuning beside trl's SFTTrainer: the same ids and labels, the same loss, the same gradients."""

import json

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from chat_toy import chat_tokenizer
from orrery.checkpoints.rules import to_theirs
from orrery.data.batches.token_windows import IGNORE
from orrery.data.sources import BatchRequest
from orrery.data.sources.conversations import ConversationSettings, ConversationSource
from orrery.exchange.reading.read import read
from orrery.exchange.saving.save import save_model
from orrery.families import load_family, rules_of
from orrery.laws.accumulation import gradients
from orrery.objectives.sft import SupervisedFineTuning
from orrery.text.chat.formats import ChatFormat
from tiny_models import CONFIGS, randomised

pytestmark = pytest.mark.filterwarnings("ignore")  # those of the reference
TOKENIZER = chat_tokenizer("chatml")
CONFIG = {**CONFIGS["llama"], "vocab_size": TOKENIZER.size, "max_position_embeddings": 256}
TEMPLATE = {"default": ChatFormat("chatml").jinja()}
CHATS = [
    ("the cat?", "on the mat", "why?", "the cat sat"),
    ("on the mat", "the cat"),
    ("What is 1 + 1?", "It is 2.", "and why?", "It is 2.", "on the mat", "the cat sat on the mat"),
    ("Hello there!", "Hello!"),
]
LENGTH = 160


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Return a folder with a model, every parameter random, in float64, and conversations."""
    folder = tmp_path_factory.mktemp("sft")
    model = randomised(load_family("llama").spec(CONFIG).build().double())
    save_model(folder / "model", model, "llama", CONFIG, TOKENIZER, chat=TEMPLATE)
    with (folder / "chats.jsonl").open("w") as stream:
        for said in CHATS:
            roles = ("user", "assistant") * len(said)
            messages = [{"role": role, "content": text} for role, text in zip(roles, said, strict=False)]
            stream.write(json.dumps({"messages": messages}) + "\n")
    return folder


def theirs(place, packing):
    """Return trl's batch, its loss on it, and the gradients by name."""
    from datasets import Dataset
    from trl import SFTConfig, SFTTrainer

    rows = [json.loads(line) for line in (place / "chats.jsonl").read_text().splitlines()]
    model = AutoModelForCausalLM.from_pretrained(place / "model", dtype=torch.float64)
    how = {"use_cpu": True, "bf16": False, "report_to": [], "seed": 0}
    config = SFTConfig(
        str(place / "trl"),
        assistant_only_loss=True,
        per_device_train_batch_size=len(CHATS),
        max_length=LENGTH,
        packing=packing,
        dataset_num_proc=None,
        **how,
    )
    tokenizer = AutoTokenizer.from_pretrained(place / "model")
    tokenizer.pad_token = "<|endoftext|>"
    trainer = SFTTrainer(model, args=config, train_dataset=Dataset.from_list(rows), processing_class=tokenizer)
    batch = next(iter(trainer.get_train_dataloader()))
    loss = trainer.compute_loss(trainer.model, dict(batch))
    loss.backward()
    gradients_there = {name: p.grad for name, p in trainer.model.named_parameters()}
    return batch, float(loss.detach()), gradients_there


def ours(place, kind):
    """Return our batch, and the model."""
    source = ConversationSource.read(ConversationSettings(train=str(place / "chats.jsonl")))
    request = BatchRequest(kind, LENGTH, len(CHATS), 1, TOKENIZER, chat=source.chat(TEMPLATE))
    train = source.examples(request).train
    rows = len(train.packed) if kind == "packed" else len(CHATS)
    return source.examples(BatchRequest(**{**vars(request), "size": rows})).train.batch(0)


def loss_and_gradients(place, batch):
    stored = read(place / "model")
    objective = SupervisedFineTuning()
    (term,) = objective.loss(stored.model, batch).values()
    named = [name for name, _ in stored.model.named_parameters()]
    by_name = dict(zip(named, gradients(stored.model, objective, batch, None), strict=True))
    return float((term.sum / term.count).detach()), to_theirs(by_name, rules_of(load_family("llama"), CONFIG))


def deviation(place, batch, loss, expected):
    """Return how far our loss and gradients on a batch are from those of trl."""
    own, gradients_here = loss_and_gradients(place, batch)
    known = {name: tensor for name, tensor in expected.items() if tensor is not None}
    assert set(known) <= set(gradients_here)
    assert len(known) > 10
    return max(abs(own - loss), *(float((gradients_here[name] - known[name]).abs().max()) for name in known))


@pytest.mark.parametrize("kind", ["padded", "packed"])
def test_loss_and_gradients_equal_trls(place, kind):
    batch, loss, expected = theirs(place, kind == "packed")
    own = ours(place, kind)
    learnt = batch["labels"][batch["labels"] != IGNORE].tolist()
    assert sorted(learnt) == sorted(own["targets"][own["targets"] != IGNORE].tolist())
    assert deviation(place, own, loss, expected) < 1e-6
    # The comparison sees a prompt that is learnt, and replies that are one place off.
    everything = torch.where(own["ids"].roll(-1, 1) > 2, own["ids"].roll(-1, 1), IGNORE)
    assert deviation(place, {**own, "targets": everything}, loss, expected) > 1e-3
    assert deviation(place, {**own, "targets": own["targets"].roll(1, 1)}, loss, expected) > 1e-3
