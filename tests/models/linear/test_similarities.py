"""SVM-pairwise features: similarities to the training samples, the signs of their weights, and errors for unusable input."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

from structpred.errors import DataError, ParameterError
from structpred.models import LinearClassifier, SimilarityFeatures
from structpred.models.kernels.functions import RBF

RNG = np.random.default_rng(3)
X = RNG.normal(size=(30, 4))
TWO = np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")
MANY = np.digitize(X[:, 0], [-0.5, 0.5])
GAUSS = np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(axis=2))


def by_hand(A: Any, B: Any) -> Any:
    """A user's similarity of two CSR matrices."""
    return 1.0 / (1.0 + ((A.toarray()[:, None] - B.toarray()) ** 2).sum(axis=2))


def test_features_are_similarities_to_the_training_samples() -> None:
    """By an object, a function, and precomputed: column j is the similarity to training sample j, of new samples, too."""
    similar = SimilarityFeatures(RBF(0.3)).fit(X[:20], TWO[:20])
    np.testing.assert_allclose(similar.transform(X), GAUSS[:, :20], atol=1e-12)
    given = SimilarityFeatures("precomputed").fit(GAUSS[:20, :20], TWO[:20])
    np.testing.assert_array_equal(given.transform(GAUSS[20:, :20]), GAUSS[20:, :20])
    own = SimilarityFeatures(by_hand).fit_transform(X[:20], TWO[:20])
    np.testing.assert_allclose(own, 1.0 / (1.0 + ((X[:20, None] - X[:20]) ** 2).sum(axis=2)))


def test_signs_and_names_follow_the_labels() -> None:
    """Two classes: +1 for the second one's samples, -1 for the others; more: +1 in the sample's own row alone."""
    similar = SimilarityFeatures().fit(X, TWO)
    assert (similar.signs_ == np.where(TWO == "yes", 1, -1)).all()
    assert similar.get_feature_names_out().tolist() == [f"{label}_{j}" for j, label in enumerate(TWO)]
    many = SimilarityFeatures().fit(X, MANY)
    assert (many.signs_ == np.where(np.arange(3)[:, None] == MANY, 1, -1)).all()


def test_sparse_samples_have_sparse_features() -> None:
    """CSR in, CSR out, with the numbers of the dense ones and only the non-zeros stored; precomputed CSR stays as it is."""
    rows = np.where(X > 0.8, X, 0.0)
    thin: Any = SimilarityFeatures("linear").fit(sparse.csr_array(rows), TWO).transform(sparse.csr_array(rows))
    dense = SimilarityFeatures("linear").fit_transform(rows, TWO)
    assert thin.format == "csr"
    assert thin.nnz == np.count_nonzero(dense) < dense.size
    np.testing.assert_allclose(thin.toarray(), dense)
    np.testing.assert_array_equal(SimilarityFeatures("precomputed").fit_transform(thin, TWO).toarray(), thin.toarray())


def test_in_a_pipeline() -> None:
    """Cross-validation of a pipeline works, precomputed similarities being cut on both sides, and one against the rest."""
    line = make_pipeline(SimilarityFeatures(), LinearClassifier())
    assert cross_val_score(line, X, TWO, cv=3).mean() > 0.7
    given = make_pipeline(SimilarityFeatures("precomputed"), LinearClassifier())
    assert cross_val_score(given, GAUSS, TWO, cv=3, error_score="raise").mean() > 0.7
    table = np.column_stack([TWO == "yes", MANY == 1]).astype(int)
    assert OneVsRestClassifier(line).fit(X, table).predict(X).shape == (30, 2)
    frame = SimilarityFeatures().set_output(transform="pandas").fit_transform(X, TWO)
    assert frame.columns[0] == f"{TWO[0]}_0"


def test_the_contract_of_transformers_holds() -> None:
    """The whole of scikit-learn's check_estimator."""
    from sklearn.utils.estimator_checks import check_estimator

    check_estimator(SimilarityFeatures(), on_skip=None)


@pytest.mark.parametrize(
    ("kernel", "rows", "y", "said"),
    [
        ("rbf", X, np.ones(30), "at least two classes"),
        ("rbf", X, TWO[:-1], "inconsistent numbers of samples"),
        ("rbf", X, np.eye(30)[:, :2].astype(int), "one class per sample"),
        ("rbf", X, X[:, 0], "continuous"),
        ("precomputed", X, TWO, "square matrix, got shape"),
        (lambda A, B: np.zeros((2, 2)), X, TWO, "expected numbers of shape"),
        (lambda A, B: by_hand(A, B) * np.nan, X, TWO, "similarity of sample 0 to training sample 0 is nan"),
    ],
)
def test_unusable_input_is_an_error(kernel: Any, rows: Any, y: Any, said: str) -> None:
    """One class, lengths or shapes that do not fit, a table of labels, real numbers, a function with a wrong answer."""
    with pytest.raises(DataError, match=said):
        SimilarityFeatures(kernel).fit_transform(rows, y)


def test_unknown_kernels_and_other_widths_are_errors() -> None:
    """A name that is no kernel's is told with the known ones; new samples need as many columns as in training."""
    with pytest.raises(ParameterError, match="did you mean 'rbf'"):
        SimilarityFeatures("rfb").fit(X, TWO)
    with pytest.raises(DataError, match="expecting 4 features"):
        SimilarityFeatures().fit(X, TWO).transform(X[:, :3])
