"""Questions about which kind of model does what."""

from orrery.families import load_family
from orrery_course.quiz._question import Question, Wrong, question

KINDS = {"an encoder": "bert", "a decoder": "gpt2", "an encoder-decoder": "t5"}


@question("text-to-text", "S4", "How? (text to text, picture to text)")
def text_to_text() -> Question:
    """Ask which kind of model reads one thing and writes another."""
    specs = {kind: load_family(family).spec({}) for kind, family in KINDS.items()}
    fitting = [kind for kind, spec in specs.items() if spec.reads_source and spec.writes]
    because = {
        kind: "it writes nothing: it gives a vector for each word" if not spec.writes
        else "it has no second input: the source has to stand in front of what it writes"
        for kind, spec in specs.items()
        if kind not in fitting
    }  # fmt: skip
    why = (
        "The encoder reads the source, whole; the decoder writes, and attends to what was read. With a ViT as "
        "encoder the same "
        "model writes captions."
    )
    asks = (
        "A sentence or a picture goes in, another text comes out. Which kind of model has an input apart "
        "from what it writes?"
    )
    wrong = tuple(Wrong(kind, reason) for kind, reason in because.items())
    return Question(asks, "one", tuple(fitting), wrong, why, "orrery course S4 captions")


@question("chatgpt", "S3", "What is ChatGPT?")
def chatgpt() -> Question:
    """Ask what a dialogue agent is made of."""
    spec = load_family("gpt2").spec({})
    kind = "a decoder" if spec.writes and not spec.reads_source else "an encoder-decoder"
    wrong = (
        Wrong("a search engine that picks answers", "it writes one token after the other, each from its probabilities"),
        Wrong("an encoder that classifies what is meant", f"GPT is {kind}: it writes"),
        Wrong("a language model as it comes from its pre-training", "that goes on with a text, and does not answer"),
    )
    why = (
        f"GPT is {kind}, trained to say the next token; then it learned from dialogues, and from what people preferred."
    )
    return Question(
        "What is ChatGPT?", "one", ("a language model, fine-tuned to hold a dialogue",), wrong, why,
        "orrery course S0 rlhf",
    )  # fmt: skip
