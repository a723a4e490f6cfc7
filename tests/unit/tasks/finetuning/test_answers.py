"""Answers of a model: where they end, which of several is kept, how long they may be, and how likely they are."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import refusals
from orrery.data.rows.conversations import Conversation
from orrery.data.rows.preferences import Preference
from orrery.data.rows.prompts import Prompt
from orrery.data.rows.tagged import Tagged
from orrery.errors import UsageError
from orrery.exchange.saving.save import save_model
from orrery.language_model.load import load
from orrery.tasks import TASKS
from orrery.tasks.dpo import DirectPreferences, with_chat
from orrery.tasks.finetuning import _answering, _pairs
from orrery.tasks.finetuning._replies import fitting, template_of
from orrery.tasks.finetuning.answering_recipe import reward_section, reward_settings
from orrery.tasks.finetuning.answers_as_data import best_answers
from orrery.tasks.sft import SupervisedFineTuning
from orrery.tasks.tagging import mistakes
from orrery.text.chat.formats import ChatFormat
from orrery.text.chat.of_run import control_tokens_of
from orrery.text.special import with_control
from orrery.training.rollouts import Judge
from rollout_toy import Digits, prompts, sums_tokenizer
from tiny_models import CONFIGS, TOKENIZER, randomised, tiny

NO_REWARD, DIGITS = Judge({}), Judge({"digits": (Digits(), 1.0), "again": (Digits(), 1.0)})


class Scripted:
    """What answers prompts with given texts, ``.`` for the end token, and notes what it was asked for."""

    def __init__(self, *texts, context=32):
        self.tokenizer, self.context = sums_tokenizer(), context
        self.end = {self.tokenizer.encode("=")[0]}
        self.texts, self.asked = list(texts), []

    def write(self, rows, settings, *, seeds=None):
        self.asked.append((len(rows), settings, seeds))
        said, self.texts = self.texts[: len(rows)], self.texts[len(rows) :]
        return [[self.tokenizer.encode(text.replace(".", "="))] for text in said]


def kept(lm, asked, own=NO_REWARD, **settings):
    return [each and (each.answered.text, each.reward) for each in best_answers(lm, asked, None, own, **settings)]


def test_an_answer_without_an_end_or_a_word_is_none():
    lm = Scripted("12.", "34", ".", "")
    assert kept(lm, prompts()) == [("12", 0.0), None, None, None]
    assert lm.asked[0][1]["eos_token_id"] == sorted(lm.end)


def test_the_best_finished_answer_is_kept_and_the_first_of_equals():
    lm = Scripted("11.", "4.", "9", "21.", "12.", "30.")
    assert kept(lm, prompts()[:2], DIGITS, samples=3) == [("4", 0.8), ("21", 0.6)]
    counts, _, seeds = zip(*lm.asked, strict=True)
    assert counts == (6,)
    assert len(set(seeds[0])) == 6


def test_a_row_of_data_says_the_answer_and_its_worth():
    answer = next(iter(best_answers(Scripted("7."), prompts()[:1], None, DIGITS)))
    assert answer.row == {"prompt": "3+4=", "completion": "7", "reward": 1.4}
    asked = ({"role": "user", "content": "3+4="},)
    talked = replace(answer, answered=replace(answer.answered, prompt=Prompt("talks:1", "3+4=", {}, asked)))
    assert talked.row == {"messages": [*asked, {"role": "assistant", "content": "7"}], "reward": 1.4}


def answered(lm, asked):
    settings = SimpleNamespace(max_new_tokens=5, template="plain")
    return _answering.answered(lm, SimpleNamespace(settings=settings, held_back=asked))


def test_an_answer_is_finished_where_an_end_token_ends_it():
    answers = answered(Scripted("7.", "17", "", "."), prompts())
    assert [(each.text, each.tokens, each.finished) for each in answers] == [
        ("7", 2, True),
        ("17", 2, False),
        ("", 0, False),
        ("", 1, True),
    ]
    assert [each.prompt for each in answers] == prompts()


@pytest.mark.parametrize(("context", "most", "limit"), [(20, 30, 13), (20, 12, 12), (20, 13, 13), (7, 30, 1)])
def test_the_longest_prompt_leaves_its_answer_room(context, most, limit):
    lm = Scripted("1.", "2.", "3.", context=context)
    rows = [[1] * 4, [2] * 7, [3] * 2]
    assert _pairs.answered(lm, rows, most) == [lm.tokenizer.encode(text) for text in ("2=", "1=", "3=")]
    ((count, settings, seeds),) = lm.asked
    assert (count, settings["max_new_tokens"], seeds) == (3, limit, None)


def test_the_sentences_with_most_wrong_labels_come_first():
    rows = [Tagged(f"file:{n}", ("a",) * n, ("X",) * n) for n in range(1, 13)]
    wrong = [0, 3, 0, 4, 1, 0, 0, 2, 0, 10, 0, 11]
    said = [["Y"] * count + ["X"] * (len(row.words) - count) for row, count in zip(rows, wrong, strict=True)]
    worst = mistakes(rows[3:], said[3:])
    assert [each.text.count("a") for each in worst] == [12, 10, 4, 8, 5]
    assert [each.said.count("Y") for each in worst] == [8, 8, 4, 2, 1]  # as many as a line of the page can show
    assert worst[-1].right == "a: X"


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """An assistant, and another model with its tokenizer and no template."""
    folder = tmp_path_factory.mktemp("models")
    tokenizer = with_control(TOKENIZER, control_tokens_of("chatml"))
    config = {**CONFIGS["llama"], "vocab_size": tokenizer.size, "max_position_embeddings": 64}
    chat = {"assistant": {"default": ChatFormat("chatml").jinja()}, "base": {}}
    for seed, name in enumerate(chat):
        model = randomised(tiny("llama", torch.float32, **config), seed)
        save_model(folder / name, model, "llama", config, tokenizer, chat=chat[name])
    return [load(folder / name, device="cpu", say=lambda line: None) for name in chat]


def talk(asked, reply):
    return Conversation("talks:1", ({"role": "user", "content": asked}, {"role": "assistant", "content": reply}))


def log_probabilities(lm, ids):
    """Return the log probability of each token of a row after its first."""
    logits = lm.logits([ids])[0, :-1].double().log_softmax(-1)
    return logits.gather(1, torch.tensor(ids[1:])[:, None])[:, 0]


def test_the_perplexity_of_replies_is_that_of_their_tokens_alone(models):
    lm = models[0]
    talks = [talk("the cat", "on the log"), talk("the dog sat", "on the mat, the mat")]
    findings = SupervisedFineTuning.findings(
        lm, SimpleNamespace(held_back=talks, settings=SimpleNamespace(replies="all")), 64
    )
    nats, right = [], []
    for _, rendered in fitting(lm, talks, "all", 64):
        own = torch.tensor(rendered.reply[1:])
        nats += (-log_probabilities(lm, rendered.ids)[own]).tolist()
        best = lm.logits([rendered.ids])[0, :-1].argmax(-1)
        right += (best == torch.tensor(rendered.ids[1:]))[own].tolist()
    perplexity, accuracy, *_ = findings.scores
    assert perplexity.score == pytest.approx(math.exp(np.mean(nats)), rel=1e-4)
    assert accuracy.score == pytest.approx(np.mean(right))
    assert not perplexity.higher_is_better


def test_a_model_is_compared_with_the_one_it_began_from(models):
    lm, base = models
    rows = [Preference(talk(word, "the " + word), talk(word, "no")) for word in ("cat", "dog", "mat", "log")]
    source = SimpleNamespace(train=rows, held_back=rows, long="cut")
    scores = dict(DirectPreferences.beside(lm, lambda: base, source, 64)[2:])
    gained = [
        [
            sum(log_probabilities(each, ids)[start - 1 :].sum() * sign for each, sign in ((lm, 1), (base, -1)))
            for ids, start in ((side.ids, side.start) for side in sides)
        ]
        for _, sides in _pairs.pairs_of(lm, source, 64)
    ]
    assert scores["the model against the model it began from"].score == np.mean([a > b for a, b in gained])
    assert scores["the model and the model it began from"].score > 0.01
    same = dict(DirectPreferences.beside(lm, lambda: lm, source, 64)[2:])
    assert {name: score.score for name, score in same.items()} == dict.fromkeys(same, 0.0)


def test_a_base_without_a_chat_template_speaks_in_that_of_the_run(models):
    lm, base = models
    assert not base.stored.chat
    assert template_of(with_chat(base, lm)).end == template_of(lm).end
    assert with_chat(lm, base) is lm


def held_back(*rows):
    settings = SimpleNamespace(replies="all")
    return SimpleNamespace(train=rows, held_back=rows, long="leave_out", settings=settings)


REFUSED = {
    "no pair fits": (
        lambda lm: _pairs.pairs_of(lm, held_back(Preference(talk("cat", "the cat"), talk("cat", "no"))), 4),
        "no preference held back fits into a row", "raise batches.length",
    ),
    "no pair": (
        lambda lm: _pairs.pairs_of(lm, held_back(Preference(talk("cat", "the cat"), None)), 64),
        "no pair is held back: every reply stands alone", "give --val FILE with pairs",
    ),
    "no conversation fits": (
        lambda lm: SupervisedFineTuning.findings(lm, held_back(talk("the cat", "on the log")), 4),
        "no conversation held back fits into a row", "raise batches.length",
    ),
    "answers without rewards": (
        lambda lm: TASKS.find("grpo").findings(lm, held_back(), 64),
        "answers are judged by the rewards of a recipe", "score the run, which has one",
    ),
    "a reward with settings": (
        lambda lm: reward_settings("format"), "--reward format needs settings: pattern", "name a reward without",
    ),
    "no reward": (
        lambda lm: reward_section("good"), "--reward 'good' is neither a reward nor the folder", "rewards: ",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_it_is_refused_by_name_with_what_to_do(models, case):
    call, says, hint = REFUSED[case]
    refusals.check((call, UsageError, says, hint), models[0])
