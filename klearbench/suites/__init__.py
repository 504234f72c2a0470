"""Benchmarks. One file a family; `SUITES` (in `registry.py`) maps each name to how it is loaded."""
