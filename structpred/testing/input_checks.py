"""Checks of the forms that X and y may come in."""

import copy
import pickle
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from structpred.testing.check_cases import expect, fitted, numbers, same, same_model, words


def check_feature_dicts(estimator: Any) -> None:
    """Lists of feature dicts are taken; features that were not seen in training are left out."""
    X, y = words()
    made = fitted(estimator, X, y)
    new = [[{**token, "never seen": "x"} for token in x] for x in X]
    expect(same(made.predict(new), made.predict(X)), "a feature that was not seen in training changed the labels")


def check_feature_strings(estimator: Any) -> None:
    """Lists of feature strings are taken."""
    X = [[["the", "dog"], ["a", "cat"]], [["a", "dog"]]]
    found = fitted(estimator, X, [["x", "y"], ["x"]]).predict(X)
    expect([len(labels) for labels in found] == [2, 1], "predictions have other lengths")


def check_estimator_sparse_array(estimator: Any) -> None:
    """Sparse matrices give the model that dense arrays give."""
    from scipy import sparse

    X, y = numbers()
    dense = fitted(estimator, X, y)
    for make in (sparse.csr_array, sparse.csr_matrix, sparse.coo_array, sparse.csc_array):
        expect(same_model(dense, fitted(estimator, [make(x) for x in X], y), X), f"{make.__name__} gave another model")
    expect(same(dense.predict([sparse.csr_array(x) for x in X]), dense.predict(X)), "sparse matrices got other labels")


def check_sparse_unsorted_duplicates(estimator: Any) -> None:
    """Columns out of order and duplicate entries mean what they mean in SciPy: order is irrelevant, duplicates add up."""
    from scipy import sparse

    X, y = numbers()
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


def check_readonly_memmap_input(estimator: Any) -> None:
    """Read-only memory-mapped arrays are taken and give the same model."""
    X, y = numbers()
    with tempfile.TemporaryDirectory() as folder:
        mapped = []
        for i, x in enumerate(X):
            np.save(Path(folder) / f"{i}.npy", x)
            mapped.append(np.load(Path(folder) / f"{i}.npy", mmap_mode="r"))
        made = fitted(estimator, mapped, y)
        expect(same_model(fitted(estimator, X, y), made, X), "memory-mapped arrays gave another model")
        expect(same(made.predict(mapped), made.predict(X)), "memory-mapped arrays got other labels")
        del mapped


def check_dtypes_and_orders(estimator: Any) -> None:
    """float32, Fortran order, views and whole numbers of equal values give the same model."""
    X, y = numbers()
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


def check_input_unchanged(estimator: Any) -> None:
    """Fit, predict and score change neither X nor y."""
    for X, y in (numbers(), words()):
        before = pickle.dumps((X, y))
        made = fitted(estimator, X, y)
        made.predict(X)
        made.score(X, y)
        expect(pickle.dumps((X, y)) == before, "X or y was changed")


def check_generator_input(estimator: Any) -> None:
    """Generators are taken in place of lists, by fit and by predict."""
    for X, y in (numbers(), words()):
        listed = fitted(estimator, X, y)
        made = fitted(estimator, (x for x in X), (labels for labels in y))
        expect(same_model(listed, made, X), "a generator gave another model")
        expect(same(made.predict(x for x in X), listed.predict(X)), "a generator got other labels")


def check_containers_of_y(estimator: Any) -> None:
    """Tuples, arrays and lists of labels give the same model."""
    X, y = numbers()
    plain = fitted(estimator, X, y)
    for make in (tuple, np.array):
        expect(same_model(plain, fitted(estimator, tuple(X), [make(labels) for labels in y]), X), f"{make.__name__} differs")


def check_object_array_input(estimator: Any) -> None:
    """X and y as arrays of objects, as scikit-learn's splitters make them, are taken."""
    X, y = numbers()
    boxed = np.empty(len(X), object), np.empty(len(X), object)
    for box, values in zip(boxed, (X, y), strict=True):
        box[:] = copy.copy(values)
    expect(same_model(fitted(estimator, X, y), fitted(estimator, *boxed), X), "an array of objects gave another model")
