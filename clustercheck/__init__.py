"""Which nodes of a cluster are fit for work, and what to do about the others."""

__version__ = "0.1.0"
