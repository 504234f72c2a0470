"""Bridges to other harnesses. Each loads its library only when it is used."""

TASK_RULE = "lm-eval"
"""The rule of an Answer that only says where the document of an lm-eval task stands; see `lm_eval`."""
