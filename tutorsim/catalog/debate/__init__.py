"""Wordings and original tasks of debates."""
