"""Standard input, output and error for a command that was started without some of them."""

import os
import sys

__all__ = ["open_closed_streams"]

_NAMES = ("stdin", "stdout", "stderr")


def open_closed_streams() -> None:
    """Put the null device in the place of closed standard streams.

    Otherwise the next file that is opened would take the number of one, and what is written to
    the stream would go into that file.
    """
    for number, name in enumerate(_NAMES):
        try:
            os.fstat(number)
        except OSError:
            # The lowest free number is this one, as those below it are open by now.
            os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(number, True)
        if getattr(sys, name) is None:
            mode = "w" if number else "r"
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))
