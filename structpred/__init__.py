"""structpred: structured prediction with pluggable inference oracles."""

__version__ = "0.1.0"
