"""The report of a run: one page, one text, or one of its charts."""
