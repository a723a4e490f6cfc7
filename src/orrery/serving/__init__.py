"""The HTTP server, and the thread that owns the engine."""
