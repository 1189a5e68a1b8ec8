"""What people read, as values: tables, verdicts and lists, drawn by terminal, HTML and Markdown."""
