"""A language model into a folder, in the layout that the user names."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from orrery.errors import UsageError
from orrery.exchange.reading.generation_settings import as_file
from orrery.exchange.reading.read import Stored
from orrery.exchange.saving.own import save_own
from orrery.exchange.saving.save import save_model, write_uses
from orrery.exchange.saving.static_folder import write_static


def save(
    stored: Stored,
    folder: str | Path,
    card: Mapping[str, Any] | None = None,
    layout: Literal["hf", "own"] = "hf",
) -> None:
    """Write what a language model consists of; see ``LanguageModel.save``."""
    if layout not in ("hf", "own"):
        raise UsageError(f"no layout {layout!r}", "use hf or own")
    if stored.is_table:
        write_static(Path(folder), stored)
        return
    generation = stored.generation or as_file(stored.config or {}) or None
    beside: dict[str, Any] = {"generation": generation, "chat": stored.chat, "pictures": stored.pictures}
    if layout == "own":
        save_own(folder, stored.model, stored.tokenizer, family=stored.family, config=stored.config, **beside)
        write_uses(Path(folder), stored.sentences, stored.pairs, stored.model.spec.width)
        return
    if stored.family is None or stored.config is None:
        raise UsageError(
            f"{stored.folder} does not say which family its model belongs to",
            "load the checkpoint inside its run, whose config.yaml says it, or save it in our own layout: layout='own'",
        )
    beside |= {"sentences": stored.sentences, "pairs": stored.pairs}
    save_model(folder, stored.model, stored.family, stored.config, stored.tokenizer, card, **beside)
