"""What parts were called in files of earlier versions, and what they are called now, so that old files load."""

from collections.abc import Mapping
from typing import Any

LEGACY_KINDS: Mapping[str, str] = {
    "nn.attention.multihead.Scoring": "nn.attention.multihead.ScoreSettings",
    "nn.attention.scorings.Additive": "nn.attention.alignment_score.Additive",
    "nn.attention.scorings.Dot": "nn.attention.alignment_score.Dot",
    "nn.attention.scorings.General": "nn.attention.alignment_score.General",
    "nn.attention.sources.Memory": "nn.attention.sources.CrossSource",
    "nn.attention.sources.Self": "nn.attention.sources.SelfSource",
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
    "nn.feedforward.routers.GroupLimited": {"judged_by": "best_per_group"},
}
"""Of a kind, as it is called now: old name of a field to new name."""

LEGACY_PARTS: Mapping[str, Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]]] = {
    "nn.residual.Residual": {"skip": ({"kind": "nn.residual.Scale", "factor": 0.0}, {"kind": "nn.residual.NoSkip"})},
}
"""Of a kind, by field: a whole part as it was once written there, and the part that stands for it now."""
