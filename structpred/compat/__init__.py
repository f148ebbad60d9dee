"""Stand-ins for sklearn_crfsuite: `from structpred.compat import CRF, metrics, scorers`; docs/compat.md has the table."""

from structpred.compat import metrics, scorers
from structpred.compat.crf import CRF

__all__ = ["CRF", "metrics", "scorers"]
