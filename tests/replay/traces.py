"""Names and small helpers that the replay tests share."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from click.testing import Result

WriteTrace: TypeAlias = Callable[..., Path]
"""Writes requests `(tokens, output, ids)`, or lines as they stand, as a Mooncake trace."""
Invoke: TypeAlias = Callable[..., Result]
"""Calls `tenure replay` with these arguments; a traceback fails the test."""

GOOD = '{"timestamp": 0, "input_length": 600, "output_length": 3, "hash_ids": [0, 1]}'
