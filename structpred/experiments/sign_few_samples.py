"""Known signs where there are ten training samples (Kato, Kobayashi and Sano 2018, section 6.1, first application)."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.core.types import Floats
from structpred.evaluation.ranking import break_even_point, roc_area
from structpred.models.linear.classifier import LinearClassifier

Flags = npt.NDArray[np.bool_]

#: so many samples to train on, as in the paper
TRAINED = 10
#: lambda = 1/n, as in the paper's section 6.2; its section 6.1 names none
C = 1.0
#: explanatory variable -> the sign of its weight, and why; all written down before any result was seen
DIABETES = {
    "age": (1, "diabetes progresses faster in older patients"),
    "bmi": (1, "overweight drives insulin resistance"),
    "bp": (1, "high blood pressure goes with complications"),
    "s1": (1, "total cholesterol, a risk factor"),
    "s2": (1, "low-density lipoproteins, the harmful ones"),
    "s3": (-1, "high-density lipoproteins, which protect"),
    "s4": (1, "total cholesterol divided by high-density lipoproteins"),
    "s5": (1, "log of triglycerides, high with insulin resistance"),
    "s6": (1, "blood sugar"),
}
_LARGER = "malignant nuclei are larger"
_IRREGULAR = "defined such that a larger value is a less regular nucleus, as malignant ones are"
BREAST_CANCER = {
    "mean radius": (1, _LARGER),
    "mean texture": (1, "malignant nuclei are stained less evenly"),
    "mean perimeter": (1, _LARGER),
    "mean area": (1, _LARGER),
    "mean smoothness": (1, _IRREGULAR),
    "mean compactness": (1, _IRREGULAR),
    "mean concavity": (1, _IRREGULAR),
    "mean concave points": (1, _IRREGULAR),
    "mean symmetry": (1, _IRREGULAR),
    "mean fractal dimension": (1, _IRREGULAR),
}


@dataclass(frozen=True)
class Difference:
    """One score over all splits. signs, plain: its mean with and without constraints. better, worse: in how many splits it is
    larger, smaller with them. differences: with minus without, of each split.
    """

    signs: float
    plain: float
    better: int
    worse: int
    differences: Sequence[float]

    @classmethod
    def of(cls, signs: Floats, plain: Floats) -> "Difference":
        """From the scores of each split."""
        gain = signs - plain
        return cls(float(signs.mean()), float(plain.mean()), int((gain > 0).sum()), int((gain < 0).sum()), gain.tolist())


@dataclass(frozen=True)
class FewSamples:
    """One data set. target: what the positive samples are. variables: the sign of each. seconds: CPU."""

    data: str
    target: str
    samples: int
    positive: int
    variables: dict[str, int]
    splits: int
    roc: Difference
    break_even: Difference
    seconds: float


def few_samples(splits: int) -> list[FewSamples]:
    """Ten random samples to train on, all others to test on, for two data sets that come with scikit-learn."""
    from sklearn.datasets import load_breast_cancer, load_diabetes

    diabetes, cancer = load_diabetes(), load_breast_cancer()
    fast = diabetes.target > np.median(diabetes.target)
    return [
        _compared(diabetes, fast, DIABETES, splits, "diabetes", "progression above the median"),
        _compared(cancer, cancer.target == 0, BREAST_CANCER, splits, "breast cancer", "malignant"),
    ]


def _compared(
    found: Any, positive: Flags, known: dict[str, tuple[int, str]], splits: int, data: str, target: str
) -> FewSamples:  # fmt: skip
    names = list(found.feature_names)
    rows = found.data[:, [names.index(name) for name in known]]
    signs = {name: sign for name, (sign, _) in known.items()}
    rng, start = np.random.default_rng(0), time.process_time()
    scores = np.array([split(rows, positive, list(signs.values()), rng) for _ in range(splits)])
    roc, even = (Difference.of(scores[:, 0, k], scores[:, 1, k]) for k in range(2))
    seconds = time.process_time() - start
    return FewSamples(data, target, len(rows), int(positive.sum()), signs, splits, roc, even, seconds)


def split(rows: Floats, positive: Flags, signs: Sequence[int], rng: np.random.Generator) -> list[list[float]]:
    """[ROC area, break-even point] with signs, and without, of one random split; the ten have both classes.

    Variables are standardised by the ten.
    """
    while True:
        train, test = np.split(rng.permutation(len(rows)), [TRAINED])
        if 0 < positive[train].sum() < TRAINED:
            break
    spread = rows[train].std(axis=0)
    scaled = (rows - rows[train].mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    found = []
    for known in (signs, None):
        model = LinearClassifier(C=C, signs=known, tol=1e-6, max_iter=2000).fit(scaled[train], positive[train])
        scores = model.decision_function(scaled[test])
        found.append([roc_area(positive[test], scores), break_even_point(positive[test], scores)])
    return found
