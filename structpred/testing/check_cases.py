"""The data of the checks, and what they have in common."""

import inspect
from collections.abc import Callable
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
