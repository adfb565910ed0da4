"""One self-contained HTML page about a fit, readable on a phone and on paper."""

from gplc.report.page import render_report, write_report

__all__ = ["render_report", "write_report"]
