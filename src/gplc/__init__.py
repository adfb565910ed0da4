"""Gaussian-process regression when the noise depends on the inputs and need not be Gaussian."""

__version__ = "0.1.0.dev0"
