"""People rate what a run delivered: sheets for them, their answers joined, and what these say."""
