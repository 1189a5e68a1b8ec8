"""Scores of students, contrasts between conditions, other thresholds, and runs side by side."""
