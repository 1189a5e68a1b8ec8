"""Pages: what a system shows of a run, each table and chart declared once."""
