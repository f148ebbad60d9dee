"""Pictures of training and of results, saved as PNG or SVG (matplotlib is loaded when one is drawn), and the report page."""

from structpred.report.curves import gap_curve
from structpred.report.learning import data_curve
from structpred.report.matrices import confusion, transitions
from structpred.report.page import Contents, Example, Weights, write_page
from structpred.report.strips import word_strips

__all__ = [
    "Contents",
    "Example",
    "Weights",
    "confusion",
    "data_curve",
    "gap_curve",
    "transitions",
    "word_strips",
    "write_page",
]
