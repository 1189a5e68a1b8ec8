"""Charts: tidy frames in, a figure with its finding, caption and drawing out.

No chart computes a statistic or counts a vote; frames come from the functions of `analysis`.
"""
