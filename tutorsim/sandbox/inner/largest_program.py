"""What both sides of the sandbox have to know of its limits."""

__all__ = ["CODE_CAP"]

CODE_CAP = 64 * 1024
"""Characters of a program."""
