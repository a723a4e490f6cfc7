"""Which routes a model can answer, as /v1/models tells it and as refusals hint."""

from collections.abc import Sequence

from orrery.errors import OrreryError
from orrery.language_model.model import LanguageModel
from orrery.serving.errors import MESSAGES, ApiError
from orrery.tasks import TASKS, Pipeline
from orrery.tasks.classification import Classification
from orrery.tasks.embedding import Embedding
from orrery.tasks.image_classification import ImageClassification
from orrery.tasks.image_feature_extraction import ImageFeatureExtraction
from orrery.tasks.image_segmentation import ImageSegmentation
from orrery.tasks.image_to_text import ImageToText
from orrery.tasks.many_labels import ManyLabels
from orrery.tasks.next_item import NextItem
from orrery.tasks.object_detection import ObjectDetection
from orrery.tasks.tagging import Tagging
from orrery.tasks.translation import Translation
from orrery.tasks.zero_shot_image_classification import ZeroShotImageClassification

COMPLETIONS, CHAT, RESPONSES = "/v1/completions", "/v1/chat/completions", "/v1/responses"
WRITING = (COMPLETIONS, CHAT, RESPONSES, MESSAGES)
"""The routes that an adapter answers."""
TRANSLATE, EMBEDDINGS, CLASSIFY, TAG = (task.route for task in (Translation, Embedding, Classification, Tagging))
RERANK = "/v1/rerank"
SEEING: tuple[type[Pipeline], ...] = (
    ImageClassification,
    ImageSegmentation,
    ObjectDetection,
    ImageToText,
    ImageFeatureExtraction,
    ZeroShotImageClassification,
)
"""What a model that reads pictures can be asked, where it has the head or writes."""


def abilities(lm: LanguageModel) -> tuple[str, ...]:
    """Return the paths of the routes that a model can answer."""
    spec = lm.model.spec
    if spec.vocabulary is None:
        about = (CHAT, RESPONSES, MESSAGES) if ImageToText.fits(lm) else ()
        return (*about, *(task.route for task in SEEING if task.fits(lm)))
    can = {
        COMPLETIONS: spec.writes,
        CHAT: (chats := spec.writes and _chats(lm)),
        RESPONSES: chats,
        MESSAGES: chats,
        TRANSLATE: Translation.fits(lm),
        EMBEDDINGS: True,
        RERANK: lm.ranks,
        CLASSIFY: Classification.fits(lm),
        TAG: Tagging.fits(lm),
        NextItem.route: NextItem.fits(lm),
        ManyLabels.route: ManyLabels.fits(lm),
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
