"""All families of the zoo."""

from __future__ import annotations

from tests.zoo.family import Family
from tests.zoo.senses import AUDIO, SERIES, VISION
from tests.zoo.text import DECODERS, ENCODERS, PAIRS, SCANS

FAMILIES: list[Family] = [*ENCODERS, *DECODERS, *SCANS, *PAIRS, *VISION, *AUDIO, *SERIES]
