"""Pictures of training and of results, saved as PNG or SVG; matplotlib is loaded when one is drawn."""

from structpred.report.curves import gap_curve
from structpred.report.matrices import confusion, transitions
from structpred.report.strips import word_strips

__all__ = ["confusion", "gap_curve", "transitions", "word_strips"]
