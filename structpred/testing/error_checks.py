"""Checks that bad input is refused, with an error that names the sample."""

from typing import Any

import numpy as np

from structpred.testing.check_cases import error_of, expect, fitted, names_sample, needs_fit_argument, numbers, same


def _spoilt(value: float) -> tuple[list[Any], list[list[str]]]:
    X, y = numbers()
    X[2][0, 1] = value
    return X, y


def check_empty_sequence(estimator: Any) -> None:
    """A sequence without tokens is refused by fit; the error names the sample."""
    X, y = numbers()
    X[2], y[2] = np.zeros((0, 5)), []
    names_sample(lambda: fitted(estimator, X, y), 2)


def check_estimators_nan(estimator: Any) -> None:
    """NaN is refused by fit and predict; the error names the sample."""
    X, y = _spoilt(np.nan)
    names_sample(lambda: fitted(estimator, X, y), 2)
    names_sample(lambda: fitted(estimator).predict(X), 2)


def check_estimators_inf(estimator: Any) -> None:
    """Infinite and far too large features are refused; the error names the sample."""
    for value in (np.inf, -np.inf, 1e300):
        X, y = _spoilt(value)
        names_sample(lambda X=X, y=y: fitted(estimator, X, y), 2)  # type: ignore[misc]


def check_number_of_columns(estimator: Any) -> None:
    """Another number of columns is refused, within X and at predict; the error names the sample."""
    X, y = numbers()
    made = fitted(estimator, X, y)
    X[2] = X[2][:, :-1]
    names_sample(lambda: fitted(estimator, X, y), 2)
    names_sample(lambda: made.predict(X), 2)


def check_consistent_length(estimator: Any) -> None:
    """Another number of label sequences than of sequences is refused."""
    X, y = numbers()
    message = str(error_of(lambda: fitted(estimator, X, y[:-1])))
    expect("12" in message and "11" in message, f"the error does not say the two numbers: {message}")


def check_labels_longer_than_sequence(estimator: Any) -> None:
    """A label too many or too few is refused; the error names the sample."""
    for change in (lambda labels: [*labels, "A"], lambda labels: labels[:-1]):
        X, y = numbers()
        y[2] = change(y[2])
        names_sample(lambda X=X, y=y: fitted(estimator, X, y), 2)  # type: ignore[misc]


def check_one_sequence_in_place_of_a_list(estimator: Any) -> None:
    """One sequence in place of a list of sequences is refused by fit and predict, and so are flat labels."""
    X, y = numbers()
    made = fitted(estimator, X, y)
    error_of(lambda: fitted(estimator, X[0], y[0]))
    error_of(lambda: made.predict(X[0]))
    error_of(lambda: fitted(estimator, X, ["A"] * len(X)))


def check_requires_y_none(estimator: Any) -> None:
    """Fit without labels is refused."""
    error_of(lambda: fitted(estimator, numbers()[0], None))


def check_no_samples(estimator: Any) -> None:
    """Fit to no samples is refused."""
    error_of(lambda: fitted(estimator, [], []))


def check_mixed_labels(estimator: Any) -> None:
    """Strings mixed with numbers, fractions and bytes are refused as labels; the error names the sample."""
    for odd in (1, 0.5, b"x"):
        X, y = numbers()
        mixed: list[list[Any]] = [list(labels) for labels in y]
        mixed[2][0] = odd
        names_sample(lambda X=X, mixed=mixed: fitted(estimator, X, mixed), 2)  # type: ignore[misc]


def check_unseen_label_at_score(estimator: Any) -> None:
    """A label that training did not see counts as wrong in score."""
    X, y = numbers()
    made = fitted(estimator, X, y)
    expect(made.score(X, [["never seen"] * len(x) for x in X]) == 0.0, "an unseen label is not wrong")


def check_bad_sample_weight(estimator: Any) -> None:
    """Weights that are negative, not finite or of another number are refused."""
    needs_fit_argument(estimator, "sample_weight")
    X, y = numbers()
    for bad in (-np.ones(len(X)), np.full(len(X), np.nan), np.ones(len(X) + 1), np.zeros(len(X))):
        error_of(lambda bad=bad: fitted(estimator, X, y, sample_weight=bad))  # type: ignore[misc]


def check_a_failed_fit_keeps_the_model(estimator: Any) -> None:
    """After a fit that was refused the earlier model is whole."""
    X, y = numbers()
    made = fitted(estimator, X, y)
    before = made.predict(X)
    error_of(lambda: made.fit(*_spoilt(np.nan)))
    expect(same(made.predict(X), before), "the earlier model is lost")
