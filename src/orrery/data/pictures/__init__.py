"""Pictures: files as pixels, and pixels as a model reads them."""
