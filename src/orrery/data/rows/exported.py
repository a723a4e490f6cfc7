"""Chats and preferences in the layouts of other services and data sets, as rows in the usual ones."""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from itertools import chain, groupby
from typing import Any

from orrery.data.rows import trees
from orrery.data.rows.messages import messages_of_parts

logger = logging.getLogger(__name__)

Placed = tuple[str, Mapping[str, Any]]
"""Where a row stands, and the row."""
Ranked = tuple[dict[str, Any], list[tuple[Any, float | None]]]
"""What is asked, as columns of a row, and the replies, each with a score where it has one."""
ROUNDS = (
    ("input", "output"), ("human", "assistant"), ("user", "assistant"), ("question", "answer"),
    ("instruction", "response"), ("prompt", "response"),
)  # fmt: skip
"""What the two sides of a round are called in a list of rounds, as Capybara has it."""
_LISTS = ("conversation", "conversations", "turns", "messages", "dialogue")
_HELPSTEER = frozenset({"prompt", "response", "helpfulness"})


def usual_rows(source: str, placed: Iterable[Placed], *, pairs: bool) -> Iterator[Placed]:
    """Yield rows as our readers know them; what is in no layout of others stays as it is.

    Of replies that are ranked or scored the best is chosen, and stands beside each that is worse.

    Args:
        source: what is read, for what is said of it.
        placed: the rows.
        pairs: whether what is rejected is wanted too; else a row has the best reply alone, once.
    """
    rows = iter(placed)
    first = next(rows, None)
    if first is None:
        return
    rows = chain([first], rows)
    tally: Counter[str] = Counter()
    if set(first[1]) >= trees.FLAT:
        rows = trees.trees_of(rows, tally)
    elif pairs and set(first[1]) >= _HELPSTEER:
        rows = _together(rows)
    for where, row in rows:
        try:
            made = list(_usual(row, tally, pairs=pairs))
        except (AttributeError, TypeError, OverflowError, RecursionError):
            made = [row]  # parts of another kind than the layout's, or a tree too deep: refused by its place
        yield from ((where, each) for each in made)
    if tally[trees.APART]:
        _tell(
            f"{source}: {tally[trees.APART]:,} messages left out: they answer none that is there, or share their "
            "message_id"
        )
    if tally["ranked"]:
        out = f"; {tally['equal']:,} of which none is better are left out" if tally["equal"] else ""
        best = "the best is chosen beside each that is worse" if pairs else "the best is learnt"
        _tell(f"{source}: {tally['ranked']:,} prompts with several replies: {best}{out}")


@cache
def _tell(said: str) -> None:
    """Say something once in a process."""
    logger.warning("%s", said)


def _usual(row: Mapping[str, Any], tally: Counter[str], *, pairs: bool) -> Iterator[Mapping[str, Any]]:
    if trees.is_tree(row) and not pairs:
        yield from ({"messages": thread} for thread in trees.threads(row["prompt"]))
        return
    if trees.is_tree(row):
        found = [({"prompt": said}, replies) for said, replies in trees.asked_in(row["prompt"]) if len(replies) > 1]
    else:
        paired = {"chosen", "rejected"} <= set(row) or (not pairs and "messages" in row)
        found = [] if paired else [ranked for read in RANKED if (ranked := read(row)) is not None][:1]
        if not found:
            yield next((plain for read in PLAIN if (plain := read(row)) is not None), row)
    for fields, replies in found:
        scored = sorted(((score, reply) for reply, score in replies if score is not None), key=lambda each: -each[0])
        worse = [reply for score, reply in scored if score < scored[0][0]]
        tally["ranked"] += 1
        tally["equal"] += not (worse if pairs else scored)
        for reply in worse if pairs else scored[:1]:
            yield {**fields, "chosen": scored[0][1], **({"rejected": reply} if pairs else {})}


def _together(rows: Iterable[Placed]) -> Iterator[Placed]:
    """Yield HelpSteer's replies that follow each other under one prompt as one row."""
    for prompt, group in groupby(rows, key=lambda placed: placed[1].get("prompt")):
        own = list(group)
        answers = [{"answer": row.get("response"), "score": row.get("helpfulness")} for _, row in own]
        yield own[0][0], {"prompt": prompt, "answers": answers}


def _of_openai(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a preference as OpenAI's fine-tuning takes it, and Together's and Fireworks'."""
    asked = row.get("input")
    if not isinstance(asked, Mapping) or not {"preferred_output", "non_preferred_output"} <= set(row):
        return None
    sides = {"chosen": row["preferred_output"], "rejected": row["non_preferred_output"]}
    return {"prompt": asked.get("messages"), "tools": asked.get("tools"), **sides}


def _of_gemini(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a conversation as Gemini's tuning takes it."""
    contents = row.get("contents")
    if not isinstance(contents, list) or not all(isinstance(each, Mapping) and "parts" in each for each in contents):
        return None
    system = next((row[name] for name in ("systemInstruction", "system_instruction") if row.get(name)), None)
    declared = [each for tool in row.get("tools") or () for each in tool.get("functionDeclarations") or ()]
    tools = [{"type": "function", "function": each} for each in declared]
    own: dict[str, Any] = {"messages": messages_of_parts(contents), **({"tools": tools} if tools else {})}
    return own if system is None else {**own, "system": messages_of_parts([system])[0]["content"]}


def _of_rounds(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a conversation that is a list of rounds, each with what is asked and answered."""
    for name in _LISTS:
        rounds = row.get(name)
        if not isinstance(rounds, list) or not rounds or not all(isinstance(each, Mapping) for each in rounds):
            continue
        for sides in ROUNDS:
            if all(set(sides) <= set(each) for each in rounds):
                said = [
                    {"role": role, "content": each[side]}
                    for each in rounds
                    for role, side in zip(("user", "assistant"), sides, strict=True)
                ]
                return {**row, name: said}
    return None


def _of_texts(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a conversation that is a list of texts, the user's first, as UltraChat was published."""
    said = row.get("data")
    if not isinstance(said, list) or len(said) < 2 or not all(isinstance(each, str) for each in said):
        return None
    roles = ("user", "assistant")
    return {
        **_without(row, "data"),
        "messages": [{"role": roles[n % 2], "content": each} for n, each in enumerate(said)],
    }


def _of_reply_beside(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a row whose messages end with what is asked, as LLaMA-Factory and axolotl have them beside two replies.

    ms-swift has another reply, or a conversation, beside the messages, or whether they are desirable.
    """
    name = next(
        (name for name in ("messages", "conversations", "conversation") if isinstance(row.get(name), list)), None
    )
    if name is None:
        return None
    if "kto_tag" in row or isinstance(row.get("label"), bool):
        label = row.get("kto_tag", row.get("label"))
        return {**_without(row, name, "kto_tag"), "completion": row[name], "label": label}
    if isinstance(row.get("rejected_messages"), list):
        return {**_without(row, name), "chosen": row[name], "rejected": row["rejected_messages"]}
    if isinstance(row.get("rejected_response"), str) and len(row[name]) > 1:
        *before, last = row[name]
        return {**_without(row, name), "prompt": before, "chosen": [last], "rejected": row["rejected_response"]}
    sides = [row.get("chosen"), row.get("rejected")]
    if "prompt" in row or not all(
        isinstance(side, Mapping) or (isinstance(side, list) and len(side) == 1) for side in sides
    ):
        return None
    return {**_without(row, name), "prompt": row[name]}


def _of_answers(row: Mapping[str, Any]) -> Ranked | None:
    """Return Nectar's ranked answers, and UltraFeedback's and Gemini's scored completions."""
    answers = row.get("answers", row.get("completions"))
    if not isinstance(answers, list) or not answers or not all(isinstance(each, Mapping) for each in answers):
        return None
    replies = []
    for each in answers:
        reply = next((each[name] for name in ("answer", "response", "completion") if name in each), None)
        score = next((each[name] for name in ("overall_score", "score") if each.get(name) is not None), None)
        score = -each["rank"] if score is None and _number(each.get("rank")) is not None else score
        replies.append((messages_of_parts([reply]) if isinstance(reply, Mapping) else reply, _number(score)))
    if any(reply is None for reply, _ in replies) or all(score is None for _, score in replies):
        return None
    gemini = _of_gemini(row)
    asked = _without(row, "answers", "completions") if gemini is None else {**gemini, "prompt": gemini["messages"]}
    return _without(asked, "messages"), replies


def _of_two(row: Mapping[str, Any]) -> Ranked | None:
    """Return two replies in columns of their own, and which is better."""
    for asked, first, second, better in TWO:
        if {asked, first, second} <= set(row) and (sign := better(row)) is not None:
            prompt = row[asked]
            prompt = prompt.get("full_text", prompt.get("post")) if isinstance(prompt, Mapping) else prompt
            whole = asked == first
            return ({} if whole else {"prompt": prompt}), [(row[first], sign), (row[second], -sign)]
    return None


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and value == value else None


def _signed(name: str, first: int | str, second: int | str) -> Callable[[Mapping[str, Any]], float | None]:
    """Return what says by a column's value which of two is better: 1 the first, -1 the second, 0 neither."""

    def better(row: Mapping[str, Any]) -> float | None:
        value = row.get(name)
        return None if value is None else float((str(value) == str(first)) - (str(value) == str(second)))

    return better


def _preference(row: Mapping[str, Any]) -> float | None:
    value = _number(row.get("overall_preference"))
    return None if value is None else -value


def _scores(row: Mapping[str, Any]) -> float | None:
    first, second = (_number(row.get(name)) for name in ("score_0", "score_1"))
    return None if first is None or second is None else first - second


TWO = (
    ("history", "human_ref_A", "human_ref_B", _signed("labels", 1, 0)),  # SHP
    ("context", "response1", "response2", _preference),  # HelpSteer3
    ("conversation_a", "conversation_a", "conversation_b", _signed("winner", "model_a", "model_b")),  # Chatbot Arena
    ("prompt", "response_0", "response_1", _signed("better_response_id", 0, 1)),  # PKU-SafeRLHF
    ("question", "answer_0", "answer_1", _scores),  # WebGPT's comparisons
)
"""Columns of what is asked and of two replies, and what says which is better."""
RANKED = (_of_answers, _of_two)
PLAIN = (_of_openai, _of_gemini, _of_reply_beside, _of_rounds, _of_texts, trees.of_chatgpt)
"""What reads a layout; each returns nothing for rows of another."""


def _without(row: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}
