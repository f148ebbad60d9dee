"""How good predictions are: accuracies, phrase scores as the official scripts count them, and how sure they are."""

from structpred.evaluation.bootstrap import Comparison, Interval, bootstrap_interval, compare_systems
from structpred.evaluation.chunks import ChunkCounts, chunk_counts
from structpred.evaluation.curves import LearningCurve, learning_curve
from structpred.evaluation.model_selection import cross_val_predict
from structpred.evaluation.scorers import make_sequence_scorer
from structpred.evaluation.selection import select_sequences
from structpred.evaluation.summary import Evaluation, evaluate_sequences
from structpred.evaluation.tokens import confusion_matrix, sequence_accuracy, token_accuracy
from structpred.evaluation.validation import Finding, Validation, validate

__all__ = [
    "ChunkCounts",
    "Comparison",
    "Evaluation",
    "Finding",
    "Interval",
    "LearningCurve",
    "Validation",
    "bootstrap_interval",
    "chunk_counts",
    "compare_systems",
    "confusion_matrix",
    "cross_val_predict",
    "evaluate_sequences",
    "learning_curve",
    "make_sequence_scorer",
    "select_sequences",
    "sequence_accuracy",
    "token_accuracy",
    "validate",
]
