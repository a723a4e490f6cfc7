"""The assemblies: everything that a family file may describe, and what loading, looking and the laws can handle."""

from typing import TypeAlias

from orrery.models.decoder import Decoder
from orrery.models.encoder import Encoder
from orrery.models.encoder_decoder import EncoderDecoder

Assembly: TypeAlias = Decoder | Encoder | EncoderDecoder
AssemblySpec: TypeAlias = Decoder.Spec | Encoder.Spec | EncoderDecoder.Spec
