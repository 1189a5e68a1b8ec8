"""What both sides of the sandbox have to know of its limits."""

CODE_CAP = 64 * 1024
"""Characters of a program."""
