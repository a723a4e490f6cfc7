"""Pictures in the messages of a chat: the one that a captioner writes about, or the refusal."""

from collections.abc import Sequence

from orrery.errors import OrreryError
from orrery.generation.picture_writer import PictureRow
from orrery.language_model.pictures import images_of, patch_names
from orrery.serving.errors import ApiError, api_error
from orrery.serving.schema.chat import ChatRequest, Message
from orrery.serving.served import Served
from orrery.tasks.pipelines._picture_rows import sent_picture


def refuse_pictures(messages: Sequence[Message]) -> None:
    """Refuse messages to a model of texts that hold a picture.

    Raises:
        ApiError: one does.
    """
    for where, _ in _pictures(messages):
        raise _unsupported("this model sees no picture: it reads texts alone", where)


def picture_of(served: Served, asked: ChatRequest) -> PictureRow:
    """Return the one picture of a conversation, as the model reads it.

    Raises:
        ApiError: there is none or several, a text beside it, which the model could not read, or a picture that is
            damaged or too large; or a function is to be called.
    """
    if asked.used_tools:
        raise _unsupported("this model writes what a picture shows, and calls no function", asked.tools_field)
    if texts := [place for place, message in enumerate(asked.messages) if _text(message).strip()]:
        reason = "this model reads one picture and no text; send a message of the user that holds the picture alone"
        raise _unsupported(reason, f"messages[{texts[0]}].content")
    found = _pictures(asked.messages)
    if len(found) != 1:
        reason = f"this model reads one picture, and the messages hold {len(found) or 'none'}"
        raise _unsupported(reason, "messages" if not found else found[1][0])
    where, address = found[0]
    assert served.pictures is not None
    try:
        (image,) = images_of(served.stored, sent_picture(address))
    except OrreryError as error:
        raise api_error(error, where) from None
    return served.pictures.row(image, len(patch_names(served.stored)), address)


def _pictures(messages: Sequence[Message]) -> list[tuple[str, str]]:
    """Return where each picture stands, and its address."""
    return [
        (f"messages[{n}].content[{place}]", part.image_url.url)
        for n, message in enumerate(messages)
        for place, part in enumerate(message.content if isinstance(message.content, list) else ())
        if part.image_url is not None
    ]


def _text(message: Message) -> str:
    if isinstance(message.content, list):
        return "".join(part.text or "" for part in message.content)
    return message.content or ""


def _unsupported(reason: str, param: str) -> ApiError:
    return ApiError(400, reason, param=param, code="unsupported_content")
