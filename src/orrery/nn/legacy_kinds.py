"""What parts were called in files of earlier versions, and what they are called now, so that old files load."""

from collections.abc import Callable, Mapping
from typing import Any

LEGACY_KINDS: Mapping[str, str] = {
    "nn.attention.multihead.Scoring": "nn.attention.multihead.ScoreSettings",
    "nn.attention.scorings.Additive": "nn.attention.alignment_score.Additive",
    "nn.attention.scorings.Dot": "nn.attention.alignment_score.Dot",
    "nn.attention.scorings.General": "nn.attention.alignment_score.General",
    "nn.attention.sources.Memory": "nn.attention.sources.CrossSource",
    "nn.attention.sources.Self": "nn.attention.sources.SelfSource",
    "nn.embeddings.SegmentedEmbedding": "nn.embeddings.TokenTypeEmbedding",
    "nn.feedforward.routers.AsScored": "nn.feedforward.routers.RawScores",
    "nn.masks.Everything": "nn.masks.Full",
    "nn.masks.Near": "nn.masks.LocalWindow",
    "nn.masks.Past": "nn.masks.RecurrentPast",
    "nn.norms.EachHeadNorm": "nn.norms.PerHeadNorm",
    "nn.recurrent.feeding.FeedingLSTM": "nn.recurrent.luong.InputFeedingLSTM",
    "nn.recurrent.feeding.UnrolledLSTM": "nn.recurrent.luong.LSTMDecoder",
    "nn.recurrent.readers.Backwards": "nn.recurrent.encoders.ReversedSource",
    "nn.recurrent.readers.BothWaysGRU": "nn.recurrent.encoders.BidirectionalGRUEncoder",
    "nn.recurrent.readers.StackedLSTM": "nn.recurrent.encoders.StackedLSTMEncoder",
    "nn.recurrent.readers.SummaryGRU": "nn.recurrent.encoders.FinalStateGRU",
    "nn.recurrent.searching.SearchingGRU": "nn.recurrent.bahdanau.BahdanauDecoder",
    "nn.slots.Activate": "nn.elementwise.Activation",
    "nn.slots.Clip": "nn.elementwise.Clamp",
    "nn.slots.Projection": "nn.elementwise.Projection",
    "nn.slots.Shift": "nn.elementwise.FixedBias",
    "nn.slots.SoftCap": "nn.elementwise.SoftCap",
}
"""Old kind to new kind."""

LEGACY_FIELDS: Mapping[str, Mapping[str, str]] = {
    "nn.attention.alignment_score.Additive": {"memory": "encoder_width"},
    "nn.attention.alignment_score.General": {"memory": "encoder_width"},
    "nn.embeddings.TokenTypeEmbedding": {"segments": "token_types"},
    "nn.feedforward.routers.GroupLimited": {"judged_by": "best_per_group"},
    "nn.recurrent.bahdanau.BahdanauDecoder": {"memory": "encoder_width"},
}
"""Of a kind, as it is called now: old name of a field to new name."""


def _read_by_an_encoder(old: Mapping[str, Any]) -> Mapping[str, Any]:
    """Put the embedding and the stack that read into an encoder."""
    if "encoder" not in old:
        return old
    named = {"width": "width", "context": "context", "embed": "embed", "encoder": "stack"}
    reader = {"kind": "models.encoder.Encoder", "heads": {}, **{named[key]: old[key] for key in named if key in old}}
    return {**_without(old, "embed", "encoder"), "reader": reader}


def _read_by_a_recurrence(old: Mapping[str, Any]) -> Mapping[str, Any]:
    """Put the embedding and the recurrence that read into one part."""
    named = {"width": "width", "embed": "embed", "enter": "enter", "reader": "recurrence"}
    parts = {named[key]: old[key] for key in named if key in old}
    reader = {"kind": "models.recurrent_encoder.RecurrentEncoder", **parts}
    return {**_without(old, "embed", "enter"), "kind": "models.encoder_decoder.EncoderDecoder", "reader": reader}


def _read_from_images(old: Mapping[str, Any]) -> Mapping[str, Any]:
    """Call the encoder of images the reader."""
    named = {"eyes": "reader", "bridge": "projection"}
    fields = {named.get(key, key): value for key, value in old.items()}
    return {**fields, "kind": "models.encoder_decoder.EncoderDecoder"}


def _on_a_grid(old: Mapping[str, Any]) -> Mapping[str, Any]:
    """Put the positions of an encoder's patches on their grid."""
    embed, stack = old.get("embed", {}), old.get("stack", {})
    learned = stack.get("positions", {}).get("learned", {})
    if (
        embed.get("kind") != "nn.patches.PatchEmbedding"
        or learned.get("kind") != "nn.positions.learned.LearnedPositions"
    ):
        return old
    rows, columns = (whole // side for whole, side in zip(embed["image"], embed["patch"], strict=True))
    grid = {"kind": "nn.positions.grid.PatchGrid", "rows": rows, "columns": columns}
    positions = {"learned": {"kind": "nn.positions.grid.GridPositions", "grid": grid}}
    return {**old, "stack": {**stack, "positions": positions}}


def _with_projections(old: Mapping[str, Any]) -> Mapping[str, Any]:
    """Put the biases of Mamba-2's matrices and the number in its norm's root where they stand now."""
    if not old.keys() & {"bias", "eps"}:
        return old
    bias, eps = old.get("bias", False), old.get("eps", 1e-5)
    projections = {"kind": "nn.linear.mamba2.Projections", "bias": bias, "out_bias": bias}
    gating = {"kind": "nn.linear.gating.GateThenNorm", "eps": eps}
    return {**_without(old, "bias", "eps"), "projections": projections, "gating": gating}


def _without(old: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in old.items() if key not in keys}


LEGACY_FORMS: Mapping[str, Callable[[Mapping[str, Any]], Mapping[str, Any]]] = {
    "models.encoder.Encoder": _on_a_grid,
    "models.encoder_decoder.EncoderDecoder": _read_by_an_encoder,
    "models.sequence_to_sequence.SequenceToSequence": _read_by_a_recurrence,
    "models.vision.Captioner": _read_from_images,
    "nn.linear.mamba2.Mamba2": _with_projections,
}
"""By kind, how the JSON of a part of an earlier version becomes that of today."""

LEGACY_PARTS: Mapping[str, Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]]] = {
    "nn.residual.Residual": {"skip": ({"kind": "nn.residual.Scale", "factor": 0.0}, {"kind": "nn.residual.NoSkip"})},
}
"""Of a kind, by field: a whole part as it was once written there, and the part that stands for it now."""
