"""Ballots from runs and files, read into one shape and checked."""
