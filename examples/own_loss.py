"""Your own loss, in one method: labels that are ordered, where a wrong label costs how far it is from the true one.

python examples/own_loss.py
cd examples && structpred train chain TRAIN --format crfsuite --loss own_loss:Distance -o model.spz
"""

import numpy as np

from structpred import check_loss
from structpred.core.costs import GridCosts
from structpred.models import ChainLabeler
from structpred.oracles.chain import ChainOracle


class Distance:
    """The sum over positions of |label - true label|, in the order of the labels: ratings, sizes, places in a row."""

    def costs(self, labels, shape, oracle):
        """A row for each true label, a column for each label."""
        numbers = np.arange(oracle.label_grid(shape)[1])
        return GridCosts(np.abs(numbers[:, None] - numbers).astype(float))


def make_data(n_samples, rng):
    """Sequences of rows, each with a rating from 0 to 4, told by a noisy sum."""
    X = [rng.normal(size=(int(rng.integers(3, 8)), 4)) for _ in range(n_samples)]
    noise = [rng.normal(size=len(x)) for x in X]
    return X, [np.clip(np.round(2 + x.sum(axis=1) + e), 0, 4).astype(int).tolist() for x, e in zip(X, noise, strict=True)]


def main():
    """Check it, and train with it beside the usual loss."""
    print(str(check_loss(Distance(), ChainOracle())).splitlines()[0])
    X, y = make_data(80, np.random.default_rng(0))
    X_test, y_test = make_data(200, np.random.default_rng(1))
    for loss in ("hamming", Distance()):
        model = ChainLabeler(loss=loss, C=0.1, max_iter=100, tol=0.01).fit(X, y)
        far = np.abs(np.concatenate(model.predict(X_test)) - np.concatenate(y_test))
        print(f"{loss if isinstance(loss, str) else 'distance':<8} {(far == 0).mean():.1%} right, mean distance {far.mean():.3f}")


if __name__ == "__main__":
    main()
