"""What a model says of instances given part by part: the best outputs, probabilities, the k best."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.core.features import FeatureMap
from structpred.core.oracle import Labels, Oracle, Scores
from structpred.core.packing import argmax_batch, check_finite
from structpred.core.task_checks import blamed
from structpred.core.weights import Vector
from structpred.errors import DataError, InfeasibleError, OracleError, StructpredError

#: so many instances are scored at a time: memory is bounded, and compiled oracles have enough to do
CHUNK = 256


def check_shapes(features: FeatureMap, oracle: Oracle, shapes: Sequence[Any]) -> None:
    """DataError, naming the sample, where shapes and features do not fit each other."""
    if len(features) != len(shapes):
        raise DataError(f"X has {len(features)} samples but there are {len(shapes)} shapes")
    for i, shape in enumerate(shapes):
        try:
            n_parts = oracle.n_parts(shape)
        except Exception as error:
            raise DataError(f"sample {i}: {type(oracle).__name__}.n_parts refuses the shape {shape!r}: {error!r}") from error
        if n_parts != features.n_parts(i):
            raise DataError(f"sample {i}: shape {shape} has {n_parts} parts, but the features have {features.n_parts(i)} rows")


def best_outputs(features: FeatureMap, oracle: Oracle, shapes: Sequence[Any], w: Vector) -> list[Labels]:
    """The output with the largest score of each instance."""
    found: list[Labels] = []
    for first in range(0, len(shapes), CHUNK):
        chunk = range(first, min(first + CHUNK, len(shapes)))
        thetas = [part_scores(features, w, i) for i in chunk]
        offsets = np.cumsum([0, *map(len, thetas)])
        try:
            labels, ends = argmax_batch(oracle, np.concatenate(thetas), offsets, shapes[first : chunk.stop])
        except Exception:
            for i, theta in zip(chunk, thetas, strict=True):  # one by one, to say which sample it is
                _named(i, oracle, "argmax", argmax_batch, oracle, theta, np.array([0, len(theta)]), [shapes[i]])
            raise
        found += np.split(labels, ends[1:-1])
    return found


def part_scores(features: FeatureMap, w: Vector, i: int) -> Scores:
    """The part scores of instance i, fixed ones included; errors name the sample."""
    theta: Scores = called(i, features, "scores", w, i)
    if np.shape(theta) != (features.n_parts(i),):
        raise OracleError(
            f"sample {i}: {type(features).__name__}.scores must give one number a part, {features.n_parts(i)} in all, "
            f"got an array of shape {np.shape(theta)}"
        )
    if (fixed := features.fixed_scores(i)) is not None:
        theta = theta + fixed
    check_finite(theta, np.array([0, len(theta)]), first=i)
    return theta


def marginals(features: FeatureMap, oracle: Oracle, shapes: Sequence[Any], w: Vector) -> list[npt.NDArray[np.float64]]:
    """The expected count of each part, instance by instance; the oracle must have `marginals`."""
    return [called(i, oracle, "marginals", theta, shape)[1] for i, theta, shape in _scored(features, shapes, w)]


def kbest(features: FeatureMap, oracle: Oracle, shapes: Sequence[Any], w: Vector, k: int) -> list[list[tuple[Labels, float]]]:
    """The k best outputs with their scores, best first; the oracle must have `kbest`."""
    found = []
    for i, theta, shape in _scored(features, shapes, w):
        outputs = called(i, oracle, "kbest", theta, shape, k)
        found.append([(labels, float(theta[called(i, oracle, "parts", labels, shape)].sum())) for labels in outputs])
    return found


def _scored(features: FeatureMap, shapes: Sequence[Any], w: Vector) -> Iterator[tuple[int, Scores, Any]]:
    for i, shape in enumerate(shapes):
        yield i, part_scores(features, w, i), shape


def called(i: int, thing: Any, method: str, *arguments: Any) -> Any:
    """thing.method(*arguments) for sample i; what it raises names the sample."""
    return _named(i, thing, method, getattr(thing, method), *arguments)


def _named(i: int, thing: object, method: str, call: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return call(*arguments)
    except (OracleError, InfeasibleError, DataError) as error:
        text = re.sub(r"^sample \d+: ", "", str(error))  # a batch of one counts from 0
        raise type(error)(f"sample {i}: {text}") from error
    except StructpredError:
        raise
    except Exception as error:
        raise blamed(error, i, thing, method) from error
