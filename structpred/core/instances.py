"""An input with the shape of its outputs, and shapes as users give them."""

from collections.abc import Callable, Hashable, Iterable
from typing import Any, NamedTuple, cast

import numpy as np

from structpred.errors import DataError


class Instance(NamedTuple):
    """One input of a StructuredPredictor: its features and the shape of its outputs.

    Parameters
    ----------
    features: a 2-d array or sparse matrix with a row per part, or a list of feature dicts, one per part.
    shape: what the oracle takes as a shape. Any hashable value: numbers, strings, nested tuples, a frozen dataclass. What an
    oracle must know of an instance besides scores (capacities, distances, a graph) travels in it.

    Lists of instances can be split by GridSearchCV, cross_val_score and train_test_split, which know X and y only.

    Examples
    --------
    >>> Instance([[1.0], [2.0]], (2,)).shape
    (2,)
    """

    features: Any
    shape: Hashable


class Shapes(tuple[Hashable, ...]):
    """The shapes of a batch. plans: what oracles worked out of them, by the function that did; it lives as long as the batch."""

    def __init__(self, shapes: Iterable[Hashable]) -> None:
        self.plans: dict[Callable[..., Any], Any] = {}

    def __reduce__(self) -> Any:
        return Shapes, (tuple(self),)


def checked_shape(shape: Any, i: int) -> Any:
    """The shape of sample i with lists as tuples and NumPy numbers as plain ones; DataError for what cannot be a shape.

    >>> checked_shape([np.int64(2), (0.5, "a")], 0)
    (2, (0.5, 'a'))
    """
    plain = _plain(shape)
    try:
        hash(plain)
    except TypeError as error:
        raise DataError(
            f"sample {i}: a shape must be hashable (numbers, strings, tuples, a frozen dataclass of such), got {shape!r}: {error}"
        ) from None
    if plain is None:
        raise DataError(f"sample {i}: expected a shape, got None")
    if cast(Any, type(plain)).__repr__ is object.__repr__:
        raise DataError(
            f"sample {i}: the repr of the shape {plain!r} is a memory address, so a resumed run could not be recognised as the "
            "same; make it a frozen dataclass, or give it a __repr__ that says what it holds"
        )
    return plain


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    return tuple(map(_plain, value)) if type(value) in (tuple, list) else value
