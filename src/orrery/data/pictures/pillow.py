"""Pillow, where it is installed: nothing else of the package imports it by itself."""

from typing import Any

MISSING = "pip install 'orrery-lm[vision]', or convert it to PNG"
"""What to do without it."""


def pillow() -> Any:
    """Return the module ``PIL.Image``, or nothing where Pillow is not installed."""
    try:
        from PIL import Image
    except ImportError:
        return None
    return Image
