"""Numba loops: arrays in, arrays and counts out; no classes and no validation."""
