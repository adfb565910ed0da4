"""Numba loops: arrays and NamedTuples of arrays in and out; no methods and no validation."""
