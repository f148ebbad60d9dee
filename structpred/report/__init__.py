"""Pictures of training and of results, saved as PNG or SVG (matplotlib is loaded when one is drawn), and the report pages."""

from structpred.report.arcs import draw_marginals, draw_tree
from structpred.report.contents import Contents, Example, Stage, Weights
from structpred.report.curves import data_curve, gap_curve, halving_curves
from structpred.report.matrices import confusion, transitions
from structpred.report.page import write_page
from structpred.report.parsing_sections import ParsingContents, parsing_report
from structpred.report.spans import draw_spans

__all__ = [
    "Contents", "Example", "ParsingContents", "Stage", "Weights", "confusion", "data_curve", "draw_marginals",
    "draw_spans", "draw_tree", "gap_curve", "halving_curves", "parsing_report", "transitions", "write_page",
]  # fmt: skip
