"""Estimates with their uncertainty, the noise floor of votes, and how alike texts are."""
