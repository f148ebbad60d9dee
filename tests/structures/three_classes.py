"""Three classes by callbacks: a joint feature vector, a loss that is no sum over parts, and an argmax over the classes."""

from typing import Any

import numpy as np

import structpred

N_CLASSES, N_INPUTS = 3, 3


def phi(x: Any, y: int) -> Any:
    """The input in the block of the class."""
    return np.kron(np.eye(N_CLASSES)[y], x)


def loss(y: int, other: int) -> float:
    """Classes are ordered: the distance squared, halved."""
    return 0.5 * float((y - other) ** 2)


def best(w: Any, x: Any, y: int, loss_weight: float) -> int:
    """The class with the largest score plus loss."""
    return max(range(N_CLASSES), key=lambda k: float(w @ phi(x, k)) + loss_weight * loss(y, k))


def classes_task(n: int = 8, seed: int = 0) -> structpred.CallbackTask:
    """Random inputs, classes by a linear model with noise."""
    rng = np.random.default_rng(seed)
    xs, w = rng.normal(size=(n, N_INPUTS)), rng.normal(size=N_CLASSES * N_INPUTS)
    noisy = w + 0.3 * rng.normal(size=(n, len(w)))
    ys = [max(range(N_CLASSES), key=lambda k, x=x, v=v: float(v @ phi(x, k))) for x, v in zip(xs, noisy, strict=True)]
    return structpred.CallbackTask(list(xs), ys, len(w), phi, loss, best)
