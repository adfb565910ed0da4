"""What pytest leaves alone: modules whose extra is not installed."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("skpro") else ["src/gplc/skpro.py"]
