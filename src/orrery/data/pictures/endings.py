"""How the names of picture files end. This imports nothing."""

ENDINGS = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp")
