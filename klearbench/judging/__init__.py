"""Judging: a completion and its reference answer in, a Verdict out."""
