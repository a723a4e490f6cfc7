"""Adapters as files of the library peft (Mangrulkar et al. 2022): written for it, and read from it."""

from typing import TYPE_CHECKING

from orrery.schema.lazy import lazily

if TYPE_CHECKING:
    from orrery.tuning.peft.load import adapter_pairs, base_of, is_adapter, load_adapter, tables_in
    from orrery.tuning.peft.save import save_adapter

__all__ = ["adapter_pairs", "base_of", "is_adapter", "load_adapter", "save_adapter", "tables_in"]


__getattr__ = lazily(
    __name__,
    {"load": ("adapter_pairs", "base_of", "is_adapter", "load_adapter", "tables_in"), "save": ("save_adapter",)},
)
