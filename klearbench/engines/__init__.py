"""Engines turn prompts into completions. `ENGINES` (in `registry.py`) maps each name to how it is built."""
