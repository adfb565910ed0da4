"""Numba loops: arrays and NamedTuples of arrays in, arrays and counts out; no validation.

Two rules keep the last bit from depending on anything but the arguments. Both are about functions
that may add in any order (`reassoc`):

- They write nothing into arrays. A loop that writes works on several entries at once only if its
  arrays lie far enough apart, so that the order of its sums would depend on where they lie.
- They, and all that calls them short of what Python calls, are inlined (`forceinline`). A call
  may find another copy of the function, made with other optimisations: which one depends on what
  Numba compiled in this process and what it took from its cache.
"""
