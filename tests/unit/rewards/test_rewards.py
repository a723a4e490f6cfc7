"""What answers are worth."""

import pytest
import torch

from orrery.data.rows.prompts import Answered, Prompt, prompt_ids, read_prompts
from orrery.errors import DataError, UsageError
from orrery.exchange.saving.save import save_model
from orrery.families import load_family, spec_of
from orrery.language_model.load import load
from orrery.rewards import REWARDS
from orrery.rewards.arithmetic import Arithmetic, last_number
from orrery.rewards.reward_model import RewardModel
from rollout_toy import sums_tokenizer
from tiny_models import CONFIGS, TOKENIZER, randomised, saved


def answered(text, finished=True, **row):
    return Answered(Prompt("file.jsonl:3", "17+25=", {"prompt": "17+25=", **row}), text, len(text) + 1, finished)


def score(kind, answer, **settings):
    reward = REWARDS.find(kind)
    return reward.of(reward.Settings(**settings)).score([answer])[0]


def test_arithmetic_compares_the_last_numbers():
    assert score("arithmetic", answered("42", answer="42")) == 1
    assert score("arithmetic", answered("It is 1,042.0 now", answer="#### 1042")) == 1
    assert score("arithmetic", answered("42", finished=False, answer="42")) == 0
    assert score("arithmetic", answered("none", answer="42")) == 0
    assert score("arithmetic", answered("-42", answer="42")) == 0
    assert score("arithmetic", answered("9" * 4000, answer="42")) == 0
    assert last_number("3.50 and .5") == last_number("0.5")


@pytest.mark.parametrize("right", ["x^2", "x^{10}", r"3\sqrt{2}", "12/05/2020", r"\frac{a}{2}", r"So 4 = \boxed{x^2}."])
def test_a_number_that_is_part_of_another_is_no_right_answer(right):
    with pytest.raises(DataError, match=r"of which .* is a part alone"):
        score("arithmetic", answered("4", answer=right))


@pytest.mark.parametrize(
    "half", ["1/2", ".5", r"\frac{1}{2}", r"\dfrac12", r"-\frac{-1}{2}", r"\boxed{\tfrac{1}{2}}. Check: 7"]
)
def test_fractions_and_boxes_have_the_value_that_is_meant(half):
    for right in ("0.5", r"$x^2 = 4$, so $x = \boxed{\frac{1}{2}}$, and not 3.", "2/4"):
        assert score("arithmetic", answered(f"It is {half}", answer=right)) == 1
    assert score("arithmetic", answered(f"It is {half}", answer="2")) == 0


def test_mixed_numbers_and_what_has_no_value():
    assert last_number(r"-2\frac{1}{2}") == -2.5
    assert last_number("1,234") == 1234
    assert last_number(r"\boxed{3} and \boxed{4") == 3
    assert last_number("1/0") is None


def test_verls_ground_truth_is_found():
    prompt = Prompt("file.jsonl:3", "6 * 7", {"reward_model": {"style": "rule", "ground_truth": "42"}})
    assert score("arithmetic", Answered(prompt, "42", 1, finished=True)) == 1


@pytest.mark.parametrize(
    "right", ["1/2 of 8 is 4", "3/4 + 1/4 = <<1*4=4>>4\n#### 4", r"\boxed{4}", "$4", "4%", "x = 4."]
)
def test_other_signs_around_a_right_number_do_not_matter(right):
    assert score("arithmetic", answered("4", answer=right)) == 1


def test_a_right_answer_that_is_missing_is_told_by_its_place():
    with pytest.raises(DataError, match=r"file\.jsonl:3: no column answer or target"):
        score("arithmetic", answered("42"))
    with pytest.raises(DataError, match=r"file\.jsonl:3: no column sum"):
        score("exact", answered("42", answer="42"), column="sum")
    with pytest.raises(DataError, match="holds no number"):
        score("arithmetic", answered("42", answer="none"))
    with pytest.raises(DataError, match="not a text but list"):
        score("exact", answered("42", answer=[42]))


def test_exact_format_and_length():
    assert score("exact", answered(" 42\n", answer="42")) == 1
    assert score("exact", answered("43", answer="42")) == 0
    assert score("exact", answered("42", answer=42)) == 1
    assert score("format", answered("42"), pattern=r"\d+") == 1
    assert score("format", answered("42."), pattern=r"\d+") == 0
    assert score("format", answered("42", finished=False), pattern=r"\d+") == 0
    assert score("length", answered("42"), tokens=3) == 0
    assert score("length", answered("4" * 8), tokens=3) == -2
    assert score("length", answered("4" * 8), tokens=3, slack=6) == 0


def test_rewards_made_by_hand_look_for_the_known_columns_and_match_no_longer_text_than_is_safe():
    assert Arithmetic().score([answered("42", answer="42")]) == [1.0]
    assert Arithmetic("sum").score([answered("42", sum="42")]) == [1.0]
    assert [score("format", answered("a" * size), pattern="a*") for size in (9_999, 10_000, 10_001)] == [1, 1, 0]


def test_a_reward_model_that_is_none_is_refused(tmp_path):
    from orrery.errors import ModelFileError

    with pytest.raises(ModelFileError):
        score("reward_model", answered("42"), model=str(tmp_path / "none"))


@pytest.fixture(scope="module")
def judge(tmp_path_factory):
    """Return the folder of a small reward model without a template."""
    folder = tmp_path_factory.mktemp("judge") / "model"
    config = {**CONFIGS["llama"], "architectures": ["LlamaForSequenceClassification"], "id2label": {"0": "worth"}}
    model = randomised(spec_of(load_family("llama"), config).build(0).eval())
    save_model(folder, model, "llama", config, TOKENIZER)
    return folder


@pytest.mark.parametrize("size", [1, 2, 3, 7, 32])
def test_answers_are_worth_the_same_however_many_are_read_together(judge, size):
    answers = [answered("the cat " * (n % 4 + 1)) for n in range(7)]
    reward = RewardModel(str(judge), size=size)
    alone = [RewardModel(str(judge)).score([one])[0] for one in answers]
    assert reward.score(answers) == pytest.approx(alone, rel=1e-5)
    model = load(judge, "cpu", say=lambda line: None).model
    rows = [torch.tensor([TOKENIZER.encode(one.prompt.text + one.text)]) for one in answers[:2]]
    with torch.no_grad():
        assert alone[:2] == pytest.approx([float(model.logits(row, head="sequence")) for row in rows], rel=1e-5)


def test_a_model_without_such_a_head_is_told_how_to_become_one(tmp_path):
    with pytest.raises(UsageError, match="is no reward model") as caught:
        RewardModel(str(saved(tmp_path / "model", "llama"))).score([answered("42")])
    assert "the objective reward" in caught.value.hint


def test_prompts_are_read_with_their_rows(tmp_path):
    file = tmp_path / "prompts.jsonl"
    file.write_text('{"question": "1+1=", "answer": "2"}\n{"question": "  ", "answer": "2"}\n')
    with pytest.raises(DataError, match=r"prompts\.jsonl:2: column 'question' is empty"):
        list(read_prompts(file))
    (prompt,) = read_prompts(file, skip_bad=1)
    assert (prompt.text, prompt.row["answer"], prompt.where) == ("1+1=", "2", f"{file}:1")
    with pytest.raises(DataError, match="no column ask"):
        list(read_prompts(file, "ask"))


def test_prompts_that_are_conversations_need_a_template(tmp_path):
    file = tmp_path / "prompts.jsonl"
    talk = '{"prompt": [{"role": "user", "content": "1+1="}]}\n'
    file.write_text(talk)
    prompts = list(read_prompts(file))
    assert prompts[0].text == "1+1="
    with pytest.raises(DataError, match=r"prompts\.jsonl:1: the prompt is a conversation"):
        prompt_ids(prompts, sums_tokenizer(), None)
    file.write_text(talk.replace("}]", '}, {"role": "assistant", "content": "2"}]'))
    with pytest.raises(DataError, match="ends with the assistant"):
        list(read_prompts(file))


def test_sums_are_split_by_their_numbers():
    from orrery.data import generated

    parts = {
        part: [row["question"] for _, row in generated.find(f"addition/{part}").rows()]
        for part in ("train", "val", "few")
    }
    assert len(parts["train"]) + len(parts["val"]) == 10_000
    assert set(parts["few"]) < set(parts["train"])
    turned = {"+".join(reversed(sum.rstrip("=").split("+"))) + "=" for sum in parts["val"]}
    assert turned == set(parts["val"])


def test_kinds_of_rewards_are_known_by_name():
    assert {"arithmetic", "exact", "format", "length", "reward_model"} <= set(REWARDS.names())
    with pytest.raises(UsageError, match=r"there is no reward called .*register"):
        REWARDS.find("good")
