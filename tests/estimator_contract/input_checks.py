"""Checks of the forms that X and y may come in, of bad input, and inside scikit-learn's own tools; what all checks share."""

import copy
import inspect
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Sequences = list[Any]


class DoesNotApplyError(Exception):
    """The estimator does not have what a check is about."""


def expect(condition: Any, message: str) -> None:
    """Raise AssertionError unless the condition holds."""
    if not condition:
        raise AssertionError(message)


def numbers(n: int = 12, seed: int = 0) -> tuple[list[npt.NDArray[np.float64]], list[list[str]]]:
    """Sequences of 1 to 5 tokens as arrays of five columns; the label is the largest of the first three."""
    rng = np.random.default_rng(seed)
    X = [np.round(rng.normal(size=(length, 5)), 3) for length in rng.integers(1, 6, n)]
    return X, [["ABC"[k] for k in x[:, :3].argmax(axis=1)] for x in X]


def words(n: int = 12, seed: int = 0) -> tuple[list[list[dict[str, Any]]], list[list[str]]]:
    """The same as feature dicts."""
    X, y = numbers(n, seed)
    return [[{f"x{j}": float(v) for j, v in enumerate(row)} | {"top": label} for row, label in zip(x, labels, strict=True)]
            for x, labels in zip(X, y, strict=True)], y  # fmt: skip


def fresh(estimator: Any, **settings: Any) -> Any:
    """A clone with some settings changed."""
    from sklearn.base import clone

    return clone(estimator).set_params(**settings)


def fitted(estimator: Any, X: Any, y: Any, **more: Any) -> Any:
    """A fitted clone."""
    return fresh(estimator).fit(X, y, **more)


def same(one: Any, other: Any) -> bool:
    """Whether two ragged lists of labels or arrays are equal, types of labels aside."""
    return len(one) == len(other) and all(list(np.asarray(a)) == list(np.asarray(b)) for a, b in zip(one, other, strict=True))


def same_model(one: Any, other: Any, X: Any) -> bool:
    """Whether two fitted estimators have the same weights, where they show them, and predict the same."""
    if hasattr(one, "coef_") and hasattr(other, "coef_") and not np.array_equal(one.coef_, other.coef_):
        return False
    return same(one.predict(X), other.predict(X))


def needs_fit_argument(estimator: Any, name: str) -> None:
    """Leave a check where fit takes no such argument."""
    if name not in inspect.signature(estimator.fit).parameters:
        raise DoesNotApplyError(f"fit takes no {name}")


def needs_method(estimator: Any, name: str) -> None:
    """Leave a check where there is no such method."""
    if not hasattr(estimator, name):
        raise DoesNotApplyError(f"there is no {name}")


def error_of(call: Callable[[], Any]) -> Exception:
    """The error that a call raises; AssertionError where it raises none, or one that is neither ValueError nor TypeError."""
    try:
        call()
    except (ValueError, TypeError) as error:
        return error
    except Exception as error:
        raise AssertionError(f"expected ValueError or TypeError, got {type(error).__name__}: {error}") from error
    raise AssertionError("expected an error, there was none")


def names_sample(call: Callable[[], Any], number: int) -> None:
    """Expect an error that says "sample <number>"."""
    error = error_of(call)
    expect(f"sample {number}" in str(error), f"the error does not name sample {number}: {error}")


def check_feature_dicts(estimator: Any, X: Any, y: Any) -> None:
    """Lists of feature dicts are taken; features that were not seen in training are left out."""
    X, y = words()
    made = fitted(estimator, X, y)
    new = [[{**token, "never seen": "x"} for token in x] for x in X]
    expect(same(made.predict(new), made.predict(X)), "a feature that was not seen in training changed the labels")


def check_feature_strings(estimator: Any, X: Any, y: Any) -> None:
    """Lists of feature strings are taken."""
    X = [[["the", "dog"], ["a", "cat"]], [["a", "dog"]]]
    found = fitted(estimator, X, [["x", "y"], ["x"]]).predict(X)
    expect([len(labels) for labels in found] == [2, 1], "predictions have other lengths")


def check_estimator_sparse_array(estimator: Any, X: Any, y: Any) -> None:
    """Sparse matrices give the model that dense arrays give."""
    from scipy import sparse

    dense = fitted(estimator, X, y)
    for make in (sparse.csr_array, sparse.csr_matrix, sparse.coo_array, sparse.csc_array):
        expect(same_model(dense, fitted(estimator, [make(x) for x in X], y), X), f"{make.__name__} gave another model")
    expect(same(dense.predict([sparse.csr_array(x) for x in X]), dense.predict(X)), "sparse matrices got other labels")


def check_sparse_unsorted_duplicates(estimator: Any, X: Any, y: Any) -> None:
    """Columns out of order and duplicate entries mean what they mean in SciPy: order is irrelevant, duplicates add up."""
    from scipy import sparse

    X = [np.round(x) for x in X]  # whole numbers: halves add up exactly

    def scrambled(x: Any) -> Any:
        rows, columns = x.shape
        order = np.concatenate([np.r_[columns - 1 : -1 : -1, 0:columns] for _ in range(rows)])
        data = np.concatenate([np.r_[row[::-1] / 2, row / 2] for row in x])
        return sparse.csr_array((data, order, np.arange(rows + 1) * 2 * columns), shape=x.shape)

    odd = [scrambled(x) for x in X]
    dense = fitted(estimator, X, y)
    expect(same(dense.predict(odd), dense.predict(X)), "the same matrices got other labels")
    expect(same(fitted(estimator, odd, y).predict(X), dense.predict(X)), "the same matrices gave another model")


def check_readonly_memmap_input(estimator: Any, X: Any, y: Any) -> None:
    """Read-only memory-mapped arrays are taken and give the same model."""
    with tempfile.TemporaryDirectory() as folder:
        mapped = []
        for i, x in enumerate(X):
            np.save(Path(folder) / f"{i}.npy", x)
            mapped.append(np.load(Path(folder) / f"{i}.npy", mmap_mode="r"))
        made = fitted(estimator, mapped, y)
        expect(same_model(fitted(estimator, X, y), made, X), "memory-mapped arrays gave another model")
        expect(same(made.predict(mapped), made.predict(X)), "memory-mapped arrays got other labels")
        del mapped


def check_dtypes_and_orders(estimator: Any, X: Any, y: Any) -> None:
    """float32, Fortran order, views and whole numbers of equal values give the same model."""
    X = [np.round(x) for x in X]
    plain = fitted(estimator, X, y)
    forms = {
        "float32": [x.astype(np.float32) for x in X],
        "int64": [x.astype(np.int64) for x in X],
        "Fortran order": [np.asfortranarray(x) for x in X],
        "views": [np.repeat(x, 2, axis=1)[:, ::2] for x in X],
    }
    for name, form in forms.items():
        expect(same_model(plain, fitted(estimator, form, y), X), f"{name} gave another model")


def check_input_unchanged(estimator: Any, X: Any, y: Any) -> None:
    """Fit, predict and score change neither X nor y."""
    for X, y in (numbers(), words()):
        before = pickle.dumps((X, y))
        made = fitted(estimator, X, y)
        made.predict(X)
        made.score(X, y)
        expect(pickle.dumps((X, y)) == before, "X or y was changed")


def check_generator_input(estimator: Any, X: Any, y: Any) -> None:
    """Generators are taken in place of lists, by fit and by predict."""
    for X, y in (numbers(), words()):
        listed = fitted(estimator, X, y)
        made = fitted(estimator, (x for x in X), (labels for labels in y))
        expect(same_model(listed, made, X), "a generator gave another model")
        expect(same(made.predict(x for x in X), listed.predict(X)), "a generator got other labels")


def check_containers_of_y(estimator: Any, X: Any, y: Any) -> None:
    """Tuples, arrays and lists of labels give the same model."""
    plain = fitted(estimator, X, y)
    for make in (tuple, np.array):
        expect(same_model(plain, fitted(estimator, tuple(X), [make(labels) for labels in y]), X), f"{make.__name__} differs")


def check_object_array_input(estimator: Any, X: Any, y: Any) -> None:
    """X and y as arrays of objects, as scikit-learn's splitters make them, are taken."""
    boxed = np.empty(len(X), object), np.empty(len(X), object)
    for box, values in zip(boxed, (X, y), strict=True):
        box[:] = copy.copy(values)
    expect(same_model(fitted(estimator, X, y), fitted(estimator, *boxed), X), "an array of objects gave another model")


def _spoilt(value: float) -> tuple[list[Any], list[list[str]]]:
    X, y = numbers()
    X[2][0, 1] = value
    return X, y


def check_empty_sequence(estimator: Any, X: Any, y: Any) -> None:
    """A sequence without tokens is refused by fit; the error names the sample."""
    X[2], y[2] = np.zeros((0, 5)), []
    names_sample(lambda: fitted(estimator, X, y), 2)


def check_estimators_nan(estimator: Any, X: Any, y: Any) -> None:
    """NaN is refused by fit and predict; the error names the sample."""
    spoilt, _ = _spoilt(np.nan)
    names_sample(lambda: fitted(estimator, spoilt, y), 2)
    names_sample(lambda: fitted(estimator, X, y).predict(spoilt), 2)


def check_estimators_inf(estimator: Any, X: Any, y: Any) -> None:
    """Infinite and far too large features are refused; the error names the sample."""
    for value in (np.inf, -np.inf, 1e300):
        X, y = _spoilt(value)
        names_sample(lambda X=X, y=y: fitted(estimator, X, y), 2)  # type: ignore[misc]


def check_number_of_columns(estimator: Any, X: Any, y: Any) -> None:
    """Another number of columns is refused, within X and at predict; the error names the sample."""
    made = fitted(estimator, X, y)
    X[2] = X[2][:, :-1]
    names_sample(lambda: fitted(estimator, X, y), 2)
    names_sample(lambda: made.predict(X), 2)


def check_consistent_length(estimator: Any, X: Any, y: Any) -> None:
    """Another number of label sequences than of sequences is refused."""
    message = str(error_of(lambda: fitted(estimator, X, y[:-1])))
    expect("12" in message and "11" in message, f"the error does not say the two numbers: {message}")


def check_labels_longer_than_sequence(estimator: Any, X: Any, y: Any) -> None:
    """A label too many or too few is refused; the error names the sample."""
    for change in (lambda labels: [*labels, "A"], lambda labels: labels[:-1]):
        X, y = numbers()
        y[2] = change(y[2])
        names_sample(lambda X=X, y=y: fitted(estimator, X, y), 2)  # type: ignore[misc]


def check_one_sequence_in_place_of_a_list(estimator: Any, X: Any, y: Any) -> None:
    """One sequence in place of a list of sequences is refused by fit and predict, and so are flat labels."""
    made = fitted(estimator, X, y)
    error_of(lambda: fitted(estimator, X[0], y[0]))
    error_of(lambda: made.predict(X[0]))
    error_of(lambda: fitted(estimator, X, ["A"] * len(X)))


def check_requires_y_none(estimator: Any, X: Any, y: Any) -> None:
    """Fit without labels is refused."""
    error_of(lambda: fitted(estimator, X, None))


def check_no_samples(estimator: Any, X: Any, y: Any) -> None:
    """Fit to no samples is refused."""
    error_of(lambda: fitted(estimator, [], []))


def check_mixed_labels(estimator: Any, X: Any, y: Any) -> None:
    """Strings mixed with numbers, fractions and bytes are refused as labels; the error names the sample."""
    for odd in (1, 0.5, b"x"):
        X, y = numbers()
        mixed: list[list[Any]] = [list(labels) for labels in y]
        mixed[2][0] = odd
        names_sample(lambda X=X, mixed=mixed: fitted(estimator, X, mixed), 2)  # type: ignore[misc]


def check_unseen_label_at_score(estimator: Any, X: Any, y: Any) -> None:
    """A label that training did not see counts as wrong in score."""
    made = fitted(estimator, X, y)
    expect(made.score(X, [["never seen"] * len(x) for x in X]) == 0.0, "an unseen label is not wrong")


def check_bad_sample_weight(estimator: Any, X: Any, y: Any) -> None:
    """Weights that are negative, not finite or of another number are refused."""
    needs_fit_argument(estimator, "sample_weight")
    for bad in (-np.ones(len(X)), np.full(len(X), np.nan), np.ones(len(X) + 1), np.zeros(len(X))):
        error_of(lambda bad=bad: fitted(estimator, X, y, sample_weight=bad))  # type: ignore[misc]


def check_a_failed_fit_keeps_the_model(estimator: Any, X: Any, y: Any) -> None:
    """After a fit that was refused the earlier model is whole."""
    made = fitted(estimator, X, y)
    before = made.predict(X)
    error_of(lambda: made.fit(*_spoilt(np.nan)))
    expect(same(made.predict(X), before), "the earlier model is lost")


def check_grid_search(estimator: Any, X: Any, y: Any) -> None:
    """GridSearchCV runs and its best estimator predicts."""
    from sklearn.model_selection import GridSearchCV

    counts = [name for name in ("max_iter", "max_iterations", "n_iter") if name in estimator.get_params(deep=False)]
    grid = {counts[0]: [1, 2]} if counts else {}
    for X, y in (numbers(), words()):
        search = GridSearchCV(fresh(estimator), grid, cv=3, error_score="raise").fit(X, y)
        expect([len(labels) for labels in search.predict(X)] == [len(x) for x in X], "predictions have other lengths")


def check_cross_val_score(estimator: Any, X: Any, y: Any) -> None:
    """cross_val_score runs with a number of folds and with KFold."""
    from sklearn.model_selection import KFold, cross_val_score

    for cv in (3, KFold(3, shuffle=True, random_state=0)):
        scores = cross_val_score(fresh(estimator), X, y, cv=cv, error_score="raise")
        expect(scores.shape == (3,) and np.isfinite(scores).all(), f"the scores are {scores}")


def check_train_test_split(estimator: Any, X: Any, y: Any) -> None:
    """What train_test_split gives can be fitted and scored."""
    from sklearn.model_selection import train_test_split

    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    expect(np.isfinite(fresh(estimator).fit(X_train, y_train).score(X_test, y_test)), "the score is not finite")


def check_learning_curve(estimator: Any, X: Any, y: Any) -> None:
    """learning_curve runs."""
    from sklearn.model_selection import learning_curve

    _, train, test = learning_curve(fresh(estimator), X, y, cv=3, train_sizes=[0.5, 1.0], error_score="raise")
    expect(train.shape == test.shape == (2, 3), "the curve has another shape")


def check_metadata_routing(estimator: Any, X: Any, y: Any) -> None:
    """cross_validate routes sample_weight to fit where the estimator asks for it."""
    from sklearn import config_context
    from sklearn.model_selection import cross_validate

    needs_fit_argument(estimator, "sample_weight")
    with config_context(enable_metadata_routing=True):
        asking = fresh(estimator).set_fit_request(sample_weight=True)
        if hasattr(asking, "set_score_request"):
            asking.set_score_request(sample_weight=False)
        weights = {"sample_weight": np.linspace(0.5, 2.0, len(X))}
        found = cross_validate(asking, X, y, cv=3, params=weights, error_score="raise")
    expect(np.isfinite(found["test_score"]).all(), "a score is not finite")
