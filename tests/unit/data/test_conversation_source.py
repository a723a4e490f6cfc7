"""Data of kind conversations: rows, packed rows, what is too long, and what is said before anything is learnt."""

import json

import pytest
import torch
from tests.chat_toy import chat_tokenizer

from orrery.data.batches.token_windows import IGNORE
from orrery.data.sources import BatchRequest
from orrery.data.sources.conversations import ConversationSettings, ConversationSource
from orrery.errors import DataError
from orrery.text.chat.folder import DEFAULT

TOKENIZER = chat_tokenizer("chatml")


def chat(*said):
    roles = ("user", "assistant") * len(said)
    return {"messages": [{"role": role, "content": text} for role, text in zip(roles, said, strict=False)]}


ROWS = [chat(f"the cat {n}", "on the mat " * (n % 3 + 1), "why?", f"the cat {n}") for n in range(20)]


def source_of(tmp_path, rows=ROWS, **settings):
    file = tmp_path / "chats.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    held_back = {} if "val" in settings or "split" in settings else {"split": {"every": 5}}
    return ConversationSource.read(ConversationSettings(train=str(file), **held_back, **settings))


def request(source, kind="padded", length=96, size=4, **more):
    return BatchRequest(kind, length, size, 7, TOKENIZER, chat=source.chat({}), **more)


@pytest.mark.parametrize("kind", ["padded", "packed"])
def test_a_batch_has_its_fields_and_the_replies_as_targets(kind, tmp_path):
    source = source_of(tmp_path)
    examples = source.examples(request(source, kind))
    batch = examples.train.batch(0)
    assert tuple(sorted(batch)) == tuple(sorted(source.fields(kind)))
    assert all(torch.equal(batch[name], examples.train.batch(0)[name]) for name in batch)
    learnt = batch["targets"] != IGNORE
    assert torch.equal(batch["targets"][:, :-1][learnt[:, :-1]], batch["ids"][:, 1:][learnt[:, :-1]])
    assert set(examples.held_back.source.batch(0)) == {"ids", "targets", "real"}
    if kind == "packed":
        first = batch["documents"] != torch.roll(batch["documents"], 1, 1)
        assert not learnt[torch.roll(first, -1, 1) & (batch["documents"] >= 0)].any()  # nothing across a border
        assert batch["positions"].max() < 96


def test_packed_rows_hold_what_padded_ones_do(tmp_path):
    source = source_of(tmp_path)
    learnt_ids = {}
    for kind in ("padded", "packed"):
        train = source.examples(request(source, kind, size=1)).train
        steps = 16 if kind == "padded" else len(train.packed)
        batches = [train.batch(step) for step in range(steps)]
        learnt_ids[kind] = sorted(id for b in batches for id in b["targets"][b["targets"] != IGNORE].tolist())
    assert learnt_ids["padded"] == learnt_ids["packed"]


def test_the_last_reply_alone_is_learnt(tmp_path):
    source = source_of(tmp_path, replies="last")
    batch = source.examples(request(source)).train.batch(0)
    learnt = TOKENIZER.decode(batch["targets"][0][batch["targets"][0] != IGNORE].tolist(), special=True)
    assert learnt.startswith("the cat ")
    assert learnt.endswith("<|im_end|>")


def test_what_is_said_of_the_data(tmp_path):
    rows = [*ROWS, ROWS[0], chat("the cat 1", "no")]
    source = source_of(tmp_path, rows, split={"every": 22})
    notes = "\n".join([*source.remarks(), *source.examples(request(source)).notes])
    assert "training: 21 conversations, messages: user 42, assistant 42" in notes
    assert "tokens are learnt" in notes
    assert "EOS share 100.0%: 21 of 21 last replies end with the end token" in notes
    assert "1 of 21 training conversations repeat another word for word" in notes
    assert "leak: 1 of 1 rows held back share a text with a training row" in notes
    assert "chats.jsonl:22" in notes


def test_a_conversation_longer_than_a_row(tmp_path):
    rows = [*ROWS[:3], chat("the cat", "on the mat " * 40, "why?", "so")]
    source = source_of(tmp_path, rows, split=None)
    with pytest.raises(DataError, match=r"chats.jsonl:4: \d+ tokens; 1 of 4 training conversations are longer") as no:
        source.examples(request(source))
    assert "cut, leave_out" in no.value.hint
    cut = source_of(tmp_path, rows, split=None, long="cut")
    examples = cut.examples(request(cut, size=1))
    notes = "\n".join(examples.notes)
    assert "1 of 4 training conversations cut" in notes
    assert "1 lose the end token of the last reply" in notes
    assert "EOS share 75.0%" in notes
    assert max(examples.train.batch(step)["ids"].shape[1] for step in range(4)) == 96
    left = source_of(tmp_path, rows, split=None, long="leave_out")
    notes = "\n".join(left.examples(request(left)).notes)
    assert "1 of 4 training conversations left out" in notes
    assert "EOS share 100.0%" in notes
    with pytest.raises(DataError, match="every training conversation is left out"):
        left.examples(request(left, length=2))


def test_bad_conversations_are_refused_or_left_out(tmp_path):
    rows = [*ROWS[:4], chat("the cat"), *ROWS[4:]]
    with pytest.raises(DataError, match=r"chats.jsonl:5: the assistant says nothing"):
        source_of(tmp_path, rows)
    assert len(source_of(tmp_path, rows, skip_bad=1).train) == 16


def test_the_fingerprint_is_that_of_what_is_said(tmp_path):
    whole = source_of(tmp_path).fingerprint
    assert whole == source_of(tmp_path).fingerprint
    assert whole != source_of(tmp_path, ROWS[:-1]).fingerprint
    assert whole != source_of(tmp_path, system="Be brief.").fingerprint


def test_the_template_is_the_bases_own_or_the_one_that_is_named(tmp_path):
    own = {DEFAULT: "{{ messages }}"}
    assert source_of(tmp_path).chat(own) == own
    assert "<|im_start|>" in source_of(tmp_path, template="chatml").chat(own)[DEFAULT]
