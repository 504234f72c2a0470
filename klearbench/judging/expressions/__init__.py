"""Mathematical expressions: read from LaTeX or plain text, bounded in size, compared exactly or by ball arithmetic."""
