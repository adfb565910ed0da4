"""Every table and figure of Wang and Neal (2012), section 4 and appendix, with one command.

``python -m gplc.paper`` runs the experiments and writes tables, figures and a page that puts our
numbers beside the paper's. `reproduce` is the same as a function.
"""

from gplc.paper.runner import PARTS, reproduce

__all__ = ["PARTS", "reproduce"]
