"""What each scope of the joined cache must have seen."""

from collections.abc import Mapping
from typing import Final

EXPECTS: Final[Mapping[str, tuple[str, ...]]] = {}
