"""Two applications of known signs (Kato, Kobayashi and Sano 2018, section 6.1): ten training samples, and SVM-pairwise."""

import logging
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from structpred.core.types import Flags, Floats, Integers
from structpred.evaluation.ranking import break_even_point, roc_area
from structpred.experiments.experiment import data_file
from structpred.io import read_treebank
from structpred.io.multilabel.mulan import read_mulan
from structpred.models.kernels.functions import RBF
from structpred.models.linear.classifier import LinearClassifier
from structpred.models.linear.similarities import SimilarityFeatures

log = logging.getLogger("structpred.experiments")

#: how many samples to train on, as in the paper
TRAINED = 10
#: lambda = 1/n, as in the paper's section 6.2; its section 6.1 names none
C = 1.0
#: explanatory variable -> the sign of its weight, written down before any result was seen. Diabetes progresses faster in older
#: patients, with overweight (bmi), high blood pressure (bp), cholesterol (s1, s2: the harmful one, s4: its ratio to s3),
#: triglycerides (s5) and blood sugar (s6); s3, high-density lipoproteins, protect
DIABETES = {"age": 1, "bmi": 1, "bp": 1, "s1": 1, "s2": 1, "s3": -1, "s4": 1, "s5": 1, "s6": 1}
#: malignant nuclei are larger, stained less evenly, and less regular, which the last six measure: the larger the less
BREAST_CANCER = {
    f"mean {name}": 1
    for name in (
        "radius", "texture", "perimeter", "area", "smoothness", "compactness", "concavity", "concave points", "symmetry",
        "fractal dimension",
    )
}  # fmt: skip


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


def _compared(found: Any, positive: Flags, signs: dict[str, int], splits: int, data: str, target: str) -> FewSamples:
    names = list(found.feature_names)
    rows = found.data[:, [names.index(name) for name in signs]]
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


#: the C = 1/(lambda n) of which validation chooses, with signs and without; the paper names none, and a larger one trains long
STRENGTHS = (0.01, 0.1, 1.0, 10.0)
#: how many of the most frequent words, and how many of them a part of speech must have to be a category
WORDS, LEAST = 800, 40


@dataclass(frozen=True)
class Category:
    """One category. signs, plain: mean and standard deviation of the ROC area with and without constraints. better: in how many
    repeats it is larger with them.
    """

    name: str
    positive: int
    signs: tuple[float, float]
    plain: tuple[float, float]
    better: int


@dataclass(frozen=True)
class Pairwise:
    """One data set. samples: half of them are trained on in each of the repeats. gain: with minus without signs, the mean over
    categories; low, high: its 95 % interval, for halves that overlap (Nadeau and Bengio 2003). seconds: CPU.
    """

    data: str
    similarity: str
    samples: int
    repeats: int
    categories: Sequence[Category]
    gain: float
    low: float
    high: float
    seconds: float


def pairwise(folder: Path, repeats: int, data: str, most: int = WORDS, n_categories: int | None = None) -> Pairwise:
    """One of SIMILARITIES, at most this many samples and categories of it."""
    log.info("SVM-pairwise: %s", data)
    start, (similarity, read) = time.process_time(), SIMILARITIES[data]
    values, table, names = read(folder, most)
    scores = compared(values, table[:, :n_categories], repeats)
    categories = [_category(name, table[:, j], scores[:, j]) for j, name in enumerate(names[:n_categories])]
    gains = (scores[..., 0] - scores[..., 1]).mean(axis=1)
    spread = 1.96 * float(gains.std() if repeats < 2 else gains.std(ddof=1)) * (1.0 / repeats + 1.0) ** 0.5
    gain, seconds = float(gains.mean()), time.process_time() - start
    return Pairwise(data, similarity, len(table), repeats, categories, gain, gain - spread, gain + spread, seconds)


def words(folder: Path, most: int) -> tuple[Floats, Flags, list[str]]:
    """Frequent word forms of English: local alignment scores of their letters, and the parts of speech that each one has."""
    tags: dict[str, Counter[str]] = defaultdict(Counter)
    for sentence in read_treebank(data_file(folder / "ud_english_ewt", "en_ewt-ud-train.conllu")).sentences():
        for form, tag in zip(sentence.forms, sentence.upos, strict=True):
            if form.isalpha() and len(form) > 1:
                tags[form.lower()][tag] += 1
    forms = sorted(tags, key=lambda form: (-tags[form].total(), form))[:most]
    every = sorted({tag for form in forms for tag in tags[form]})
    table = np.array([[tag in tags[form] for tag in every] for form in forms])
    kept = np.flatnonzero((table.sum(axis=0) >= LEAST) & (table.sum(axis=0) < len(table)))
    return alignments(forms), table[:, kept], [every[k] for k in kept]


def alignments(forms: Sequence[str]) -> Floats:
    """Scores of local alignments with marks at both ends: 2 for a match, -1 for another letter, -2 for the first letter of a gap
    and -.5 for each other one; divided by the mean of those of each string with itself.
    """
    from structpred.experiments._alignment_kernels import align

    marked = [f"^{form}$" for form in forms]
    codes = np.array([ord(letter) for form in marked for letter in form], dtype=np.int64)
    ends = np.cumsum([0, *map(len, marked)])
    out = np.empty((len(forms), len(forms)))
    align(codes, ends, 2.0, 1.0, 2.0, 0.5, out)
    out /= out.diagonal().mean()
    return out


def yeast(folder: Path, most: int) -> tuple[Floats, Flags, list[str]]:
    """Genes: a Gaussian of distances between expression profiles, and the functional categories that each one has."""
    where = folder / "multilabel_yeast"
    parts = [read_mulan(data_file(where, f"yeast-{part}.arff"), data_file(where, "yeast.xml")) for part in ("train", "test")]
    rows = sparse.csr_matrix(np.vstack([part.X.toarray() for part in parts])[:most])
    return RBF().fitted(rows)(rows, rows), np.vstack([part.Y for part in parts])[:most] > 0, list(parts[0].label_names)


#: data -> what their similarities are, and who reads them with the categories
SIMILARITIES = {"words": ("Smith-Waterman", words), "yeast": ("Gaussian", yeast)}


def compared(values: Floats, table: Flags, repeats: int) -> Floats:
    """ROC areas (repeats, categories, 2), with signs and without, of random halves to train and to test on; each C by validation
    on a third of the training half.
    """
    rng, scores = np.random.default_rng(0), []
    for _ in range(repeats):
        train, test = np.split(rng.permutation(len(values)), [len(values) // 2])
        kept, held = np.split(train, [2 * len(train) // 3])
        for positive in table.T:
            tried = np.array([areas(values, positive, kept, held, C) for C in STRENGTHS])
            best = tried.argmax(axis=0).tolist()
            found = {k: areas(values, positive, train, test, STRENGTHS[k]) for k in set(best)}
            scores.append([found[k][column] for column, k in enumerate(best)])
    return np.array(scores).reshape(repeats, table.shape[1], 2)


def _category(name: str, positive: Flags, scores: Floats) -> Category:
    spread = scores.std(axis=0, ddof=1) if len(scores) > 1 else np.zeros(2)
    signs, plain = np.stack([scores.mean(axis=0), spread], axis=-1).tolist()
    return Category(name, int(positive.sum()), tuple(signs), tuple(plain), int((scores[:, 0] > scores[:, 1]).sum()))


def areas(values: Floats, positive: Flags, train: Integers, test: Integers, C: float) -> list[float]:
    """The ROC area with and without signs; 1/2 where one of the parts has one class only."""
    if len({*positive[train]}) < 2 or len({*positive[test]}) < 2:
        return [0.5, 0.5]
    similar = SimilarityFeatures("precomputed").fit(values[np.ix_(train, train)], positive[train])
    rows, tested = values[np.ix_(train, train)], similar.transform(values[np.ix_(test, train)])
    models = (
        LinearClassifier(C=C, signs=signs, tol=1e-2, max_iter=300).fit(rows, positive[train]) for signs in (similar.signs_, None)
    )
    return [roc_area(positive[test], model.decision_function(tested)) for model in models]
