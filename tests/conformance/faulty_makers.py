"""Makers that a command line names and that cannot be used."""

import sys
from typing import Any


class Fails:
    """It cannot be built."""

    def __init__(self) -> None:
        msg = "no lane"
        raise RuntimeError(msg)

    def make_device(self, options: Any) -> None:
        """Nobody comes so far."""


def gives_none(options: Any) -> None:
    """Nothing is made."""
    del options


def exits(options: Any) -> None:
    """The process should end."""
    del options
    sys.exit("enough")
