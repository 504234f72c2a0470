"""klearrl: train reasoning models on klearbench data, SFT and then GPPO, on DeepSpeed."""

__version__ = "0.1.0"
