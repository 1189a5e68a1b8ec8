"""Mechanisms: pure generators that decide on one reply to the student."""
