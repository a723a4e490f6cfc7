import io
import itertools
import json
import os

import numpy as np
import pytest
import sentencepiece
import tokenizers

from orrery.cli.console import report as report_error
from orrery.data.corpora import read_corpus
from orrery.data.documents import encode
from orrery.data.shards import encoding, large_text, prepare
from orrery.data.shards import file as shards
from orrery.data.shards.index import Index, ShardSet, verify
from orrery.data.shards.large_text import ReadingOptions
from orrery.data.splits import split_documents, split_tail
from orrery.errors import DataError, MachineError
from orrery.text import Tokenizer, load_tokenizer
from orrery.text.sentencepiece.export import definition
from orrery.text.special import framed_tokenizer
from orrery.text.train import train_tokenizer

LINE = "The quick brown fox, number {}, jumps over the lazy dog's tail.\n"
TEXT = "".join(LINE.format(number * 37 % 101) for number in range(120))
TOKENIZER = train_tokenizer("byte_bpe", [TEXT], 400)
END = TOKENIZER.special("end")


class Killed(BaseException):
    """Stands for a kill: nothing of the program catches it."""


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(large_text, "BLOCK", 64)
    monkeypatch.setattr(encoding, "TOGETHER", 128)
    monkeypatch.setattr(prepare, "COMMIT_SECONDS", 0.0)
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # thousands of commits, and nobody pulls the plug


def make(source, folder, **settings):
    return prepare.prepare(source, TOKENIZER, folder, shard_tokens=50, **settings)


def content(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.name != "lock"}


def rows(folder, texts):
    file = folder / "rows.jsonl"
    file.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return file


def ids_of(texts):
    return [id for text in texts for id in [*TOKENIZER.encode(text), END]]


def test_ids_are_on_the_disk_before_the_index_counts_them(tmp_path, monkeypatch):
    synced, sync, write = {}, shards.ShardFile.sync, Index.write

    def syncing(self):
        sync(self)
        synced[self.path.name] = self.count

    def writing(self, folder):
        for split, record in self.splits.items():
            waiting = record.tokens - sum(shard.tokens for shard in record.shards)
            opened = f"{split}-{len(record.shards):05}.tokens"
            assert synced.get(opened, 0) == waiting, (split, record)
        write(self, folder)

    monkeypatch.setattr(shards.ShardFile, "sync", syncing)
    monkeypatch.setattr(Index, "write", writing)
    make(rows(tmp_path, [LINE.format(number) for number in range(40)]), tmp_path / "out", every=5)
    assert len(synced) > 2


def test_what_a_killed_write_of_the_index_left_is_removed(tmp_path):
    file = rows(tmp_path, [LINE.format(number) for number in range(20)])
    (tmp_path / "out").mkdir()
    left = tmp_path / "out" / "index.json.tmp-123-ab"
    left.write_text("{")
    make(file, tmp_path / "out", every=5)
    assert not left.exists()


def test_documents_are_split_and_encoded_as_in_memory(tmp_path):
    file = rows(tmp_path, ["", *(LINE.format(number) * (number % 7) for number in range(60)), "x" * 300])
    index = make(file, tmp_path / "out", every=5)
    expected = split_documents(read_corpus(file), 5)
    for split, documents in zip(("train", "validation"), expected, strict=True):
        ids = ShardSet.open(tmp_path / "out", split, TOKENIZER.fingerprint)
        assert ids[:].tolist() == ids_of(document.text for document in documents)
        record = index.splits[split]
        assert (record.documents, record.tokens) == (len(documents), len(ids))
        assert record.bytes == sum(len(document.text) for document in documents)
        assert {shard.tokens for shard in record.shards[:-1]} <= {50}
    assert len(index.splits["train"].shards) > 5
    assert verify(tmp_path / "out") == sum(record.tokens for record in index.splits.values())


@pytest.mark.parametrize("text", [TEXT, "ab", TEXT + "\u540d\u524d\u3002\n" * 90], ids=["english", "two", "japanese"])
@pytest.mark.parametrize("suffix", [".txt", ".jsonl"])
def test_of_one_text_the_tail_validates(text, suffix, tmp_path):
    (tmp_path / "a.txt").write_text(text, newline="")
    make(tmp_path / "a.txt" if suffix == ".txt" else rows(tmp_path, [text]), tmp_path / "out")
    for split, part in zip(("train", "validation"), split_tail(text), strict=True):
        assert ShardSet.open(tmp_path / "out", split)[:].tolist() == ids_of([part])


@pytest.mark.parametrize("kind", ["text", "rows"])
def test_stopped_at_any_moment_and_continued_is_never_stopped(kind, tmp_path, monkeypatch):
    (tmp_path / "text.txt").write_text(TEXT, newline="")
    source = tmp_path / "text.txt" if kind == "text" else rows(tmp_path, TEXT.splitlines() * 2)
    make(source, tmp_path / "whole")
    whole, folder = content(tmp_path / "whole"), tmp_path / "stopped"
    original, rng = prepare.Preparation.write, np.random.default_rng(0)
    stops = 0
    while True:
        writes, limit = [0], int(rng.integers(1, 9))

        def write(self, batch, encoded, writes=writes, limit=limit):
            writes[0] += 1
            monkeypatch.setattr(prepare, "COMMIT_SECONDS", float(rng.integers(0, 2) * 9))
            original(self, batch, encoded)
            if writes[0] == limit:
                raise Killed

        monkeypatch.setattr(prepare.Preparation, "write", write)
        try:
            make(source, folder)
            break
        except Killed:
            stops += 1
            with pytest.raises(DataError, match=r"interrupted"):
                ShardSet.open(folder)
    assert stops > 5
    assert content(folder) == whole


def begin(monkeypatch, batches, source, folder):
    """Prepare until so many batches are written, then stop as a kill does."""
    original, left = prepare.Preparation.write, [batches]

    def write(self, batch, encoded):
        original(self, batch, encoded)
        left[0] -= 1
        if not left[0]:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(prepare.Preparation, "write", write)
        with pytest.raises(Killed):
            make(source, folder)


def test_what_changed_between_is_named(tmp_path, monkeypatch):
    folder, file = tmp_path / "out", rows(tmp_path, TEXT.splitlines())
    begin(monkeypatch, 5, file, folder)
    before = content(folder)
    other = train_tokenizer("byte_bpe", [TEXT], 300)
    with pytest.raises(DataError, match=r"holds another preparation: the tokenizer's fingerprint was .* now it is"):
        prepare.prepare(file, other, folder, shard_tokens=50)
    with pytest.raises(DataError, match=r"shard_tokens was 50, now it is 51"):
        prepare.prepare(file, TOKENIZER, folder, shard_tokens=51)
    with pytest.raises(DataError, match=r"every was 20, now it is 3"):
        make(file, folder, every=3)
    with pytest.raises(DataError, match=r"skip_bad was 0, now it is 1"):
        make(file, folder, reading=ReadingOptions(skip_bad=1))
    rows(tmp_path, ["changed", *TEXT.splitlines()[1:]])
    with pytest.raises(DataError, match=r"the content of the source is not what it was"):
        make(file, folder)
    rows(tmp_path, TEXT.splitlines()[:2])
    with pytest.raises(DataError, match=r"the content of the source is not what it was"):
        make(file, folder)
    assert content(folder) == before
    rows(tmp_path, TEXT.splitlines())
    done = make(file, folder)
    before = content(folder)
    assert make(file, folder) == done
    assert content(folder) == before
    rows(tmp_path, [*TEXT.splitlines(), "one more"])
    with pytest.raises(DataError, match=r"the content of the source is not what it was"):
        make(file, folder)
    assert content(folder) == before


def test_a_text_that_grew_is_refused(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text(TEXT)
    begin(monkeypatch, 3, tmp_path / "a.txt", tmp_path / "out")
    (tmp_path / "a.txt").write_text(TEXT + "more")
    with pytest.raises(DataError, match=r"the source, or its size, changed"):
        make(tmp_path / "a.txt", tmp_path / "out")


def test_lost_bytes_and_a_damaged_index_are_named(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text(TEXT)
    begin(monkeypatch, 4, tmp_path / "a.txt", tmp_path / "out")
    index = Index.read(tmp_path / "out")
    assert index.splits["train"].tokens % 50 > 3
    last = max((tmp_path / "out").glob("train-*.tokens"))
    last.write_bytes(last.read_bytes()[:70])
    with pytest.raises(DataError, match=r"70 bytes, fewer than the .* already written"):
        make(tmp_path / "a.txt", tmp_path / "out")
    (tmp_path / "out" / "index.json").write_text("{")
    with pytest.raises(DataError, match=r"not an index of token shards"):
        make(tmp_path / "a.txt", tmp_path / "out")


@pytest.mark.parametrize("texts", [[], [""], ["x"]])
def test_too_little_text_leaves_nothing_behind(texts, tmp_path):
    file = rows(tmp_path, texts)
    with pytest.raises(DataError, match=r"leave 0 tokens for"):
        make(file, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_full_disk_leaves_what_can_be_continued(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text(TEXT)
    make(tmp_path / "a.txt", tmp_path / "whole")
    original, left = prepare.ShardWriter.write, [3]

    def write(self, ids):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(28, "No space left on device")
        return original(self, ids)

    with monkeypatch.context() as patch:
        patch.setattr(prepare.ShardWriter, "write", write)
        with pytest.raises(MachineError, match=r"no room to write .*: No space left on device") as caught:
            make(tmp_path / "a.txt", tmp_path / "out")
    assert report_error(caught.value) == 5
    make(tmp_path / "a.txt", tmp_path / "out")
    assert content(tmp_path / "out") == content(tmp_path / "whole")


def test_a_tokenizer_that_reads_texts_whole_is_used_and_bounded(tmp_path, monkeypatch):
    definition = json.loads(json.dumps(TOKENIZER.definition)) | {"normalizer": {"type": "NFC"}}
    (tmp_path / "tokenizer.json").write_text(json.dumps(definition))
    tokenizer = load_tokenizer(tmp_path)
    assert not tokenizer.cuttable
    (tmp_path / "a.txt").write_text(TEXT)
    prepare.prepare(tmp_path / "a.txt", tokenizer, tmp_path / "out")
    train, _ = split_tail(TEXT)
    expected = [*tokenizer.encode(train), tokenizer.special("end")]
    assert ShardSet.open(tmp_path / "out")[:].tolist() == expected
    monkeypatch.setattr(large_text, "WHOLE", 1000)
    with pytest.raises(DataError, match=r"this tokenizer can only read a text whole"):
        prepare.prepare(tmp_path / "a.txt", tokenizer, tmp_path / "other")


@pytest.fixture(scope="module", params=["unigram", "bpe"])
def whole_reader(request):
    """A SentencePiece model, whose ids may depend on all the text before."""
    made = io.BytesIO()
    lines = [*TEXT.splitlines(), "a tail and a fox, jumps; 12 \u540d\u524d"] * 3
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=made,
        vocab_size=90,
        model_type=request.param,
        hard_vocab_limit=False,
        normalization_rule_name="identity",
        minloglevel=3,
    )
    return Tokenizer(definition(made.getvalue()), {"end": "</s>"})


def test_a_sentencepiece_model_reads_a_long_document_block_by_block(whole_reader, tmp_path, monkeypatch):
    monkeypatch.setattr(large_text, "WHOLE", 400)
    for text in (TEXT + "  \u540d\u524d qq" * 9 + " " * 300 + "end " * 99, "x" * 3_000, " " * 999 + "a"):
        (tmp_path / "a.txt").write_text(text, newline="")
        seen = []
        out = tmp_path / str(len(text))
        prepare.prepare(tmp_path / "a.txt", whole_reader, out, report=seen.append)
        for split, part in zip(("train", "validation"), split_tail(text), strict=True):
            expected = [*whole_reader.encode(part), whole_reader.special("end")]
            assert ShardSet.open(out, split)[:].tolist() == expected
        assert (
            max(after - before for before, after in itertools.pairwise(one.done for one in seen))
            < 800
            < len(text.encode())
        )


def killed_after_batches(count, file, tokenizer, folder, monkeypatch):
    """Prepare so many batches, each in a call that is killed behind it, within documents too."""
    original = prepare.Preparation.write

    def write(self, batch, encoded):
        original(self, batch, encoded)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(prepare.Preparation, "write", write)
        for _ in range(count):
            with pytest.raises(Killed):
                prepare.prepare(file, tokenizer, folder, every=3)


def test_a_preparation_with_a_sentencepiece_model_goes_on_within_a_document(whole_reader, tmp_path, monkeypatch):
    file = rows(tmp_path, [TEXT[:900], "fox", TEXT[900:2_500] + "\u540d" * 90, "tail", *TEXT[:400].splitlines()])
    prepare.prepare(file, whole_reader, tmp_path / "whole", every=3)
    killed_after_batches(12, file, whole_reader, tmp_path / "stopped", monkeypatch)
    prepare.prepare(file, whole_reader, tmp_path / "stopped", every=3)
    assert content(tmp_path / "stopped") == content(tmp_path / "whole")


def opening(template):
    """Return the tokenizer with a start token, and what the library gives for a text."""
    library = tokenizers.Tokenizer.from_str(json.dumps(TOKENIZER.definition))
    library.add_special_tokens(["<s>"])
    start = library.token_to_id("<s>")
    library.post_processor = tokenizers.processors.TemplateProcessing(
        single=template, special_tokens=[("<s>", start), ("<|endoftext|>", END)]
    )
    return Tokenizer(library.to_str()), lambda text: library.encode(text).ids


@pytest.mark.parametrize("template", ["<s> $A", "<s> <s> $A", "$A", "<s> $A <|endoftext|>"])
@pytest.mark.parametrize("stops", [False, True])
def test_each_document_is_opened_as_its_tokenizer_opens_a_text(template, stops, tmp_path, monkeypatch):
    tokenizer, read = opening(template)
    file = rows(tmp_path, [TEXT[:300], "", "fox", TEXT[300:700], *TEXT[:300].splitlines()])
    if stops:
        killed_after_batches(5, file, tokenizer, tmp_path / "out", monkeypatch)
    index = prepare.prepare(file, tokenizer, tmp_path / "out", every=3)
    for split, documents in zip(("train", "validation"), split_documents(read_corpus(file), 3), strict=True):
        ids_read = ShardSet.open(tmp_path / "out", split, tokenizer.fingerprint)[:].tolist()
        expected = [[*read(document.text)] for document in documents]
        ends = [] if template.endswith("<|endoftext|>") else [END]
        assert ids_read == [id for ids in expected for id in [*ids, *ends]]
        assert [row.tolist() for row in encode(tokenizer, documents)] == [[*ids, *ends] for ids in expected]
        assert index.splits[split].tokens == len(ids_read)


def test_rows_of_an_encoder_are_framed_by_their_objective_alone():
    framed = framed_tokenizer(TOKENIZER, "bert")
    assert framed.opening
    assert framed.document_opening == ()
    assert framed_tokenizer(TOKENIZER, "t5").document_opening == ()


def test_progress_counts_bytes_and_tokens(tmp_path):
    (tmp_path / "a.txt").write_text(TEXT)
    seen = []
    index = make(tmp_path / "a.txt", tmp_path / "out", report=seen.append)
    assert seen[-1].done == seen[-1].total == len(TEXT)
    assert seen[-1].tokens == sum(record.tokens for record in Index.read(tmp_path / "out").splits.values())
    assert index.complete
