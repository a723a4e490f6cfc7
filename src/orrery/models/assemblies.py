"""The assemblies: everything that a family file may describe, and what loading, looking and the laws can handle."""

from typing import TypeAlias

from orrery.models.decoder import Decoder
from orrery.models.encoder import Encoder
from orrery.models.encoder_decoder import EncoderDecoder
from orrery.models.sequence_to_sequence import SequenceToSequence
from orrery.models.vision import Captioner
from orrery.nn.patches import PatchEmbedding

Assembly: TypeAlias = Decoder | Encoder | EncoderDecoder | SequenceToSequence | Captioner
AssemblySpec: TypeAlias = Decoder.Spec | Encoder.Spec | EncoderDecoder.Spec | SequenceToSequence.Spec | Captioner.Spec


def vocabulary_of(spec: AssemblySpec) -> int | None:
    """Return how many tokens a model tells apart where it reads; nothing for one that reads images."""
    if isinstance(spec, Captioner.Spec) or isinstance(spec.embed, PatchEmbedding.Spec):
        return None
    return spec.embed.vocabulary


def target_vocabulary_of(spec: AssemblySpec) -> int | None:
    """Return how many tokens a model tells apart in the targets that it writes beside its source, if it does so."""
    if isinstance(spec, Decoder.Spec | Encoder.Spec):
        return None
    return vocabulary_of(spec) if spec.target is None else spec.target.vocabulary
