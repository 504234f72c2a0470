"""klearbench: evaluate reasoning models and curate their training data (klearrl trains on it)."""

__version__ = "0.1.0"
