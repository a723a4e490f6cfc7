"""Which routes a model can answer, as /v1/models tells it and as refusals hint."""

from collections.abc import Sequence

from orrery.errors import OrreryError
from orrery.language_model.model import LanguageModel
from orrery.nn.heads import SequenceHead, TokenHead
from orrery.serving.errors import ApiError
from orrery.tasks import TASKS, Pipeline

COMPLETIONS, CHAT, TRANSLATE = "/v1/completions", "/v1/chat/completions", "/v1/translate"
RESPONSES = "/v1/responses"
WRITING = (COMPLETIONS, CHAT, RESPONSES)
"""The routes that an adapter answers."""
EMBEDDINGS, CLASSIFY, TAG, RERANK = "/v1/embeddings", "/v1/classify", "/v1/tag", "/v1/rerank"


def abilities(lm: LanguageModel) -> tuple[str, ...]:
    """Return the paths of the routes that a model can answer."""
    spec = lm.model.spec
    if spec.vocabulary is None:
        return ()
    can = {
        COMPLETIONS: spec.writes,
        CHAT: (chats := spec.writes and _chats(lm)),
        RESPONSES: chats,
        TRANSLATE: spec.reads_source,
        EMBEDDINGS: True,
        RERANK: lm.ranks,
        CLASSIFY: any(isinstance(head, SequenceHead.Spec) for head in spec.heads.values()),
        TAG: any(isinstance(head, TokenHead.Spec) and name != "span" for name, head in spec.heads.items()),
    }
    own = (task.route for task in TASKS.own() if issubclass(task, Pipeline) and task.fits(lm))
    return (*(path for path, able in can.items() if able), *own)


def missing(path: str, able: Sequence[str]) -> ApiError:
    """Return the refusal of a route that a model cannot answer, naming those that it can."""
    message = f"this model cannot answer {path}; it answers {', '.join(able) or 'none of them'}"
    return ApiError(400, message, param="model", code="unsupported_model")


def _chats(lm: LanguageModel) -> bool:
    try:
        lm.chat_template()
    except OrreryError:
        return False
    return True
