"""Paths that other servers answer and this one does not: what does the same here, or why nothing does."""

from collections.abc import Iterable, Sequence

_SAME = {
    "POST /v1/completions": "/generate /generate_stream /v1/fim/completions",
    "POST /v1/messages": "/v1/complete",
    "POST /v1/classify": "/classify",
    "POST /v1/embeddings": "/pooling /v1/pooling /v2/embed /v1/embed",
    "POST /embed": "/embed_all /embed_sparse",
    "POST /detokenize": "/decode",
    "POST /v1/rerank": "/reranking /v1/reranking",
    "GET /metrics": "/slots /load",
    "GET /props": "/server_info /get_model_info",
    "GET /v1/models": "/lora-adapters",
    "orrery serve MODEL --adapter NAME=FOLDER": "/v1/load_lora_adapter",
    "POST /v1/chat/completions": "/v1/chat /v2/chat",
}
"""What does here what other servers do under some paths."""
_ELSEWHERE = {path: own for own, paths in _SAME.items() for path in paths.split()}
_ABSENT = {
    "no files are kept, and each request is answered at once, as by POST /v1/chat/completions": (
        "/v1/batches /v1/messages/batches /v1/files /v1/uploads /v1/containers /v1/vector_stores /v1/skills"
    ),
    "POST /v1/responses goes on from an earlier answer by previous_response_id": (
        "/v1/conversations /v1/assistants /v1/threads /v1/agents"
    ),
    "GET and DELETE /v1/responses/{response_id} are what is answered of a response that is kept; its input is not, and "
    "nothing runs on that could be cancelled": "/v1/responses",
    "answers are texts, as of POST /v1/chat/completions": "/v1/audio /v1/images /v1/videos /v1/realtime",
    "nothing is moderated; POST /v1/classify tells labels, of a model that has them": "/v1/moderations",
    "models are trained by other commands than orrery serve; orrery --help lists them": "/v1/fine_tuning /v1/evals",
    "Gemini's interface is not spoken; POST /v1/chat/completions, /v1/messages and /api/chat are": "/v1beta /v1alpha",
}
"""Why nothing here does what is done under paths that begin so."""
_WHY = {path: why for why, paths in _ABSENT.items() for path in paths.split()}


def no_such_url(known: Iterable[str], path: str) -> str:
    """Return what is said of a path that is not answered.

    Args:
        known: the paths that are.
        path: what a client asked.
    """
    path, names = path.rstrip("/"), [own for own in known if own != "/"]
    why = next((said for begin, said in _WHY.items() if f"{path}/".startswith(f"{begin}/")), None)
    if why is not None and path not in names:
        return f"there is no such URL: {why}"
    if (own := _meant(names, path)) is not None:
        return f"there is no such URL; {own} does this, and GET /openapi.json lists all"
    return "there is no such URL; GET /openapi.json lists them"


def _meant(names: Sequence[str], path: str) -> str | None:
    """Return what does here what another server does under a path, or what a path was meant to be."""
    path = path.removeprefix("/api/v0").removeprefix("/api/v1")  # LM Studio's
    if path in _ELSEWHERE or not path:
        return _ELSEWHERE.get(path)
    if within := [own for own in names if own.endswith(path)]:
        return min(within, key=len)
    # Azure's clients and others put more before the end of OpenAI's paths: /openai/deployments/NAME/chat/completions.
    return max((own for own in names if path.endswith(own.removeprefix("/v1"))), key=len, default=None)
