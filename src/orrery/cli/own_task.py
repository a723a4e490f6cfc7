"""The verbs of tasks that a program has registered, each made from what its task says of itself."""

from collections.abc import Callable
from inspect import Parameter, Signature, cleandoc
from typing import TYPE_CHECKING, Annotated, Any

import cyclopts

from orrery.cli.asking import ask
from orrery.cli.places import MODEL
from orrery.cli.texts import READING, TextReading, read
from orrery.errors import UsageError

if TYPE_CHECKING:
    from orrery.tasks import Pipeline

_MODEL = "A run, a checkpoint or a folder of a model that answers this."
_DEVICE = "auto, cpu or cuda."
_DTYPE = "auto, stored, float32, bfloat16, float16 or float64."


def __getattr__(kind: str) -> Callable[..., None]:
    """Return the verb of a task: what ``orrery.cli.own_task:KIND`` names."""
    from orrery.tasks import TASKS, Pipeline

    task = TASKS.find(kind) if kind.isidentifier() and kind in TASKS.names() else None
    if task is None or not issubclass(task, Pipeline):
        raise AttributeError(f"module {__name__!r} has no attribute {kind!r}")
    return verb_of(task)


def verb_of(task: "type[Pipeline]") -> Callable[..., None]:
    """Return the function of a task's verb: texts or rows in, answers out, its settings as flags."""

    def carry_out(
        model: str,
        /,
        *texts: str,
        reading: TextReading = READING,
        device: str = "auto",
        dtype: str = "auto",
        **settings: Any,
    ) -> None:
        if texts and len(task.fields) > 1:
            raise UsageError(f"{task.kind} reads {' and '.join(task.fields)}", "give --file FILE with these columns")
        given = read(texts, reading, task.fields if len(task.fields) > 1 else None)
        inputs = [one.fields for one in given] if len(task.fields) > 1 else None
        ask(task.kind, model, device, dtype, given, inputs, reading, **settings)

    carry_out.__doc__ = cleandoc(task.__doc__ or "")
    carry_out.__name__ = task.kind
    signature = Signature(parameters(task))
    vars(carry_out)["__signature__"] = signature
    carry_out.__annotations__ = {each.name: each.annotation for each in signature.parameters.values()}
    return carry_out


def parameters(task: "type[Pipeline]") -> list[Parameter]:
    """Return what the verb of a task takes: a model, texts, where they come from, and the task's settings."""
    said: dict[str, tuple[Any, Any, str]] = {"device": ("auto", str, _DEVICE), "dtype": ("auto", str, _DTYPE)}
    said |= {
        name: (
            Parameter.empty if field.is_required() else field.get_default(call_default_factory=True),
            field.rebuild_annotation(),
            field.description or "",
        )
        for name, field in task.Settings.model_fields.items()
    }
    texts = Annotated[str, cyclopts.Parameter(help="Texts; without any, those of --file or of standard input.")]
    places = [
        Parameter(
            "model", Parameter.POSITIONAL_ONLY, annotation=Annotated[str, MODEL, cyclopts.Parameter(help=_MODEL)]
        ),
        Parameter("texts", Parameter.VAR_POSITIONAL, annotation=texts),
        Parameter("reading", Parameter.KEYWORD_ONLY, default=READING, annotation=TextReading),
    ]
    flags = [
        Parameter(
            name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, cyclopts.Parameter(help=text)]
        )
        for name, (default, kind, text) in said.items()
    ]
    return places + flags
