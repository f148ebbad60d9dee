"""How good predictions are: accuracies, phrase scores as the official scripts count them, and how sure they are."""

from structpred.evaluation.bootstrap import (
    Comparison,
    Interval,
    bootstrap_interval,
    compare_parsers,
    compare_systems,
    parsing_interval,
)
from structpred.evaluation.calibration import Calibration, calibration
from structpred.evaluation.chunks import ChunkCounts, chunk_counts
from structpred.evaluation.curves import LearningCurve, learning_curve
from structpred.evaluation.model_selection import cross_val_predict, get_scorer, make_sequence_scorer, select_sequences
from structpred.evaluation.multilabel import (
    Cooccurrence,
    HierarchyScores,
    LabelPair,
    LabelScore,
    MultiLabelScores,
    cooccurrence,
    evaluate_hierarchy,
    evaluate_multilabel,
)
from structpred.evaluation.parsing import ParsingScores, evaluate_treebanks, evaluate_trees
from structpred.evaluation.ranking import average_precision, break_even_point, roc_area
from structpred.evaluation.regret import evaluate_regret, tie_regrets
from structpred.evaluation.summary import (
    Confusion,
    ConfusionMatrix,
    Evaluation,
    confusion_matrix,
    evaluate_sequences,
    most_confused,
    sequence_accuracy,
    token_accuracy,
)
from structpred.evaluation.trees import CONLL07, CONLL07_WITHOUT_PUNCTUATION, CONLLX, UD, ParsingRules
from structpred.io.validation.columns import Finding, Validation, validate
from structpred.io.validation.treebanks import TreebankValidation, validate_trees

__all__ = [
    "CONLL07", "CONLL07_WITHOUT_PUNCTUATION", "CONLLX", "UD", "Calibration", "ChunkCounts", "Comparison", "Confusion",
    "ConfusionMatrix", "Cooccurrence", "Evaluation", "Finding", "HierarchyScores", "Interval", "LabelPair",
    "LabelScore", "LearningCurve", "MultiLabelScores", "ParsingRules", "ParsingScores", "TreebankValidation",
    "Validation", "average_precision", "bootstrap_interval", "break_even_point", "calibration", "chunk_counts", "compare_parsers",
    "compare_systems", "confusion_matrix", "cooccurrence", "cross_val_predict", "evaluate_hierarchy", "evaluate_multilabel",
    "evaluate_regret", "evaluate_sequences", "evaluate_treebanks", "evaluate_trees", "get_scorer", "learning_curve",
    "make_sequence_scorer", "most_confused", "parsing_interval", "roc_area", "select_sequences", "sequence_accuracy",
    "tie_regrets", "token_accuracy", "validate", "validate_trees",
]  # fmt: skip
