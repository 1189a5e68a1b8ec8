"""Panels of tutors: what is shown of their runs and of ballots from elsewhere."""
