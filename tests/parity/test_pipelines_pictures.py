"""What models that see write and say of pictures, beside transformers over the same folders."""

import pytest
import torch
import transformers

import orrery
from orrery.errors import DataError, UsageError
from orrery.generation.picture_writer import PictureWriter
from tests.parity.picture_folders import MODES, blip, captioner, picture, seeing
from tests.parity.pipelines import edit_config, same

PICTURES = [picture("RGB", (20 + 3 * n, 30 - 2 * n), n) for n in range(5)]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    place = tmp_path_factory.mktemp("captioner")
    theirs, tokenizer, processor = captioner(place)

    @torch.no_grad()
    def answers(pictures, **settings):
        """Return what transformers 4's pipeline returned: the texts of each picture."""
        rows = processor(pictures, return_tensors="pt")["pixel_values"]
        count = settings.get("num_return_sequences", 1)
        usual = {} if "max_length" in settings else {"max_new_tokens": 256}
        ids = theirs.generate(rows, **{**usual, **settings})
        texts = tokenizer.batch_decode(ids, skip_special_tokens=True)
        return [[{"generated_text": text} for text in texts[n : n + count]] for n in range(0, len(texts), count)]

    return place, orrery.load(place), answers, theirs, processor


SETTINGS = [
    {"max_new_tokens": 9},
    {"max_new_tokens": 9, "num_beams": 3},
    {"max_new_tokens": 7, "num_beams": 4, "num_return_sequences": 2, "length_penalty": 0.3, "early_stopping": True},
    {"max_length": 8, "no_repeat_ngram_size": 2},
    {"max_new_tokens": 6, "min_new_tokens": 6, "repetition_penalty": 1.7},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_captions_equal_what_generate_writes(written, settings):
    place, _, answers, _, _ = written
    expected = answers(PICTURES, do_sample=False, **settings)
    ours = orrery.pipeline("image-to-text", place, device="cpu")
    for size in (1, 3):
        same(ours(PICTURES, batch_size=size, **settings), expected, where=str(settings))
    same(ours(PICTURES[2], **settings), expected[2])
    assert len({str(one) for one in expected}) > 1, "pictures that change nothing show nothing"


@pytest.mark.parametrize(
    ("sides", "decoder"),
    [
        (("DeiT", "Bert"), {"tie_word_embeddings": False}),
        (("ViT", "TrOCR"), {"tie_word_embeddings": False, "cross_attention_hidden_size": 32}),
        (("DeiT", "TrOCR"), {"tie_word_embeddings": False, "use_learned_position_embeddings": False}),
        (("DeiT", "TrOCR"), {"scale_embedding": True}),
    ],
    ids=str,
)
def test_captions_of_other_families_equal_what_generate_writes(tmp_path, sides, decoder):
    theirs, tokenizer, processor = captioner(tmp_path, sides=sides, **decoder)
    rows = processor(PICTURES, return_tensors="pt")["pixel_values"]
    ours, seen = orrery.pipeline("image-to-text", tmp_path, device="cpu"), set()
    for settings in ({}, {"num_beams": 3}, {"num_beams": 2, "no_repeat_ngram_size": 1}):
        settings = {"max_new_tokens": 9, **settings}
        with torch.no_grad():
            ids = theirs.generate(rows, do_sample=False, **settings)
        texts = tokenizer.batch_decode(ids, skip_special_tokens=True)
        same(ours(PICTURES, **settings), [[{"generated_text": text}] for text in texts], where=str(settings))
        seen |= set(texts)
    assert len(seen) > 2, "pictures that change nothing show nothing"


def test_blip_writes_what_generate_writes_and_ends_at_the_separator(tmp_path):
    theirs, tokenizer, prepares = blip(tmp_path)
    rows = prepares(PICTURES, return_tensors="pt")["pixel_values"]
    ours, ended = orrery.pipeline("image-to-text", tmp_path, device="cpu"), 0
    for settings in ({"max_new_tokens": 44, "no_repeat_ngram_size": 1}, {"max_new_tokens": 12, "num_beams": 3}):
        with torch.no_grad():
            ids = theirs.generate(rows, do_sample=False, **settings)
        texts = tokenizer.batch_decode(ids, skip_special_tokens=True)
        same(ours(PICTURES, **settings), [[{"generated_text": text}] for text in texts], where=str(settings))
        ended += int((ids == tokenizer.sep_token_id).any(-1).sum())
    assert ended, "a separator ends at least one"
    assert len(set(texts)) > 1, "pictures that change nothing show nothing"


def test_every_door_writes_the_same(written):
    _, lm, answers, _, _ = written
    expected = [one[0]["generated_text"] for one in answers(PICTURES, do_sample=False, max_new_tokens=9)]
    beams = [one[0]["generated_text"] for one in answers(PICTURES, do_sample=False, max_new_tokens=9, num_beams=3)]
    first = PICTURES[0]
    assert lm.caption(PICTURES, max_new_tokens=9) == expected
    assert lm.caption(first, max_new_tokens=9) == expected[0]
    assert lm.caption(PICTURES, max_new_tokens=9, num_beams=3, batch_size=2) == beams
    assert [lm.generate(one, max_new_tokens=9) for one in PICTURES] == expected
    assert [one.text for one in lm.generations(PICTURES, temperature=0, max_new_tokens=9)] == expected
    assert lm.contrastive_search(first, penalty_alpha=0, max_new_tokens=9).text == expected[0]
    assert lm.speculate(first, "lookup", temperature=0, max_new_tokens=9).answer.text == expected[0]
    one_beam = lm.search(PICTURES, num_beams=1, length_penalty=0, max_new_tokens=9)
    assert [one[0].text for one in one_beam] == expected
    assert "a picture" in lm.tree(first, max_new_tokens=2).lines()[0]


def test_another_picture_in_its_place_is_seen(written):
    _, lm, answers, _, _ = written
    expected = [one[0]["generated_text"] for one in answers(PICTURES, do_sample=False, max_new_tokens=9)]
    assert lm.caption([*PICTURES[1:], PICTURES[0]], max_new_tokens=9) == [*expected[1:], expected[0]] != expected


def test_an_edit_inside_changes_a_caption_as_it_changes_a_trace(written):
    _, lm, _, _, _ = written
    edit = lm.trace(PICTURES[0], target="").edit().zero("blocks.0.cross.mixed").zero("blocks.1.cross.mixed")
    blind = {lm.generate(one, max_new_tokens=6, edits=edit) for one in PICTURES}
    assert len(blind) == 1, "without a look at the picture every caption is the same"
    assert len({lm.generate(one, max_new_tokens=6) for one in PICTURES}) > 1


def test_the_files_settings_count(written, tmp_path):
    captioner(tmp_path)
    edit_config(tmp_path, max_length=6)
    (tmp_path / "generation_config.json").unlink()
    lm = orrery.load(tmp_path)
    assert len(lm.write([PICTURES[0]], {})[0][0]) == 5
    assert len(lm.tokenizer.encode(lm.caption(PICTURES[0]))) == 5


def test_the_end_may_stand_in_the_decoders_part(tmp_path):
    captioner(tmp_path)
    (tmp_path / "generation_config.json").unlink()
    edit_config(tmp_path, eos_token_id=None)
    assert orrery.load(tmp_path).end == {2}


def test_features(written, tmp_path):
    place, _, _, captions, processor = written
    for folder, kind in (("bare", "ViTModel"), ("classes", "ViTForImageClassification")):
        model, _ = seeing(tmp_path / folder, kind)
        bare = model if kind == "ViTModel" else model.vit
        theirs = transformers.pipeline("image-feature-extraction", model=bare, image_processor=processor)
        ours = orrery.pipeline("image-feature-extraction", tmp_path / folder, device="cpu")
        same(ours(PICTURES, batch_size=2), theirs(PICTURES))
        same(ours(PICTURES[0]), theirs(PICTURES[0]))
        assert torch.equal(ours(PICTURES[0], return_tensors=True), torch.tensor(ours(PICTURES[0])))
        if kind == "ViTModel":
            same(ours(PICTURES, pool=True), theirs(PICTURES, pool=True))
        else:
            with pytest.raises(UsageError, match="no pooler"):
                ours(PICTURES[0], pool=True)
    with torch.no_grad():
        expected = captions.encoder(processor(PICTURES[0], return_tensors="pt")["pixel_values"])[0]
    same(orrery.pipeline("image-feature-extraction", place, device="cpu")(PICTURES[0]), expected.tolist())


@pytest.mark.parametrize("settings", [{}, {"top_k": 2}, {"function_to_apply": "sigmoid"}], ids=str)
def test_classes(tmp_path, settings):
    model, processor = seeing(tmp_path, "ViTForImageClassification", num_labels=7)
    theirs = transformers.pipeline("image-classification", model=model, image_processor=processor)
    ours = orrery.pipeline("image-classification", tmp_path, device="cpu")
    same(ours(PICTURES, batch_size=3, **settings), theirs(PICTURES, **settings))
    same(ours(PICTURES[0], **settings), theirs(PICTURES[0], **settings))


def test_files_of_every_mode_say_what_their_pictures_say(tmp_path):
    seeing(tmp_path, "ViTForImageClassification", num_labels=5)
    ask = orrery.pipeline("image-classification", tmp_path, device="cpu")
    for number, mode in enumerate(MODES):
        shown = picture(mode, (30, 21), number)
        file = tmp_path / (f"{number}.jpg" if mode == "CMYK" else f"{number}.png")
        shown.save(file, **({"quality": 100, "subsampling": 0} if mode == "CMYK" else {}))
        loaded = transformers.image_utils.load_image(str(file))  # what their pipeline reads of a file
        if mode in ("RGBA", "LA"):  # it drops how transparent pixels are; their processors and we lay them on white
            loaded = transformers.image_transforms.convert_to_rgb(shown)
        same(ask(file), ask(loaded), where=mode)


def test_what_cannot_be_asked_is_refused(written, tmp_path):
    place, lm, _, _, _ = written
    seeing(tmp_path, "ViTForImageClassification", num_labels=2)
    classes = orrery.load(tmp_path)
    for ask in (lambda: classes.caption(PICTURES[0]), lambda: orrery.pipeline("image-to-text", classes)):
        with pytest.raises(UsageError, match="reads pictures and writes"):
            ask()
    with pytest.raises(UsageError, match="an encoder"):
        classes.generate(PICTURES[0])
    with pytest.raises(UsageError, match="that reads texts"):
        orrery.pipeline("summarization", place)
    with pytest.raises(DataError, match="hello cannot be read"):
        lm.generate("hello")
    with pytest.raises(UsageError, match="an image of list"):
        lm.generate([1, 2, 3])
    with pytest.raises(UsageError, match="2 pictures"):
        lm.generate(torch.zeros(2, 3, 16, 16))
    with pytest.raises(UsageError, match="no pictures"):
        lm.write([])
    with pytest.raises(UsageError, match="take lookup"):
        lm.speculate(PICTURES[0], lm)


def test_a_writer_of_pictures_says_what_its_model_says(written):
    _, lm, _, _, _ = written
    wrapped = PictureWriter(lm.model, {})
    assert (wrapped.first_token, wrapped.reads_at_once) == (lm.model.first_token, lm.model.reads_at_once)
