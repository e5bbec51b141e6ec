"""The version of relaycast."""

__version__ = "0.1.0"
