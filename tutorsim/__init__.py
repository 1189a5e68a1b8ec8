"""Run, record and replay studies of how groups of LLM tutors decide."""

__version__ = "0.1.0"

__all__ = ["__version__"]
