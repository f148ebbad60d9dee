"""Your own structure: matchings, with an oracle of about twenty lines, trained by every trainer.

The task: n items and n places, one item a place. Each pair (item, place) has a few features; which pairing is right
depends on weights that the learner does not know. The data are made here, with noise.

    python examples/own_oracle.py
    python examples/own_oracle.py --quick
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
from scipy.optimize import linear_sum_assignment

import structpred
from structpred.models import StructuredPredictor


class MatchingOracle(structpred.Oracle):
    """Perfect matchings. shape = (n,); part i * n + j is on when item i is in place j; labels[i] = j."""

    def n_parts(self, shape):
        """One part a pair."""
        return shape[0] ** 2

    def argmax(self, scores, shape):
        """The matching with the largest sum of scores."""
        return linear_sum_assignment(scores.reshape(shape[0], -1), maximize=True)[1].astype(np.int64)

    def parts(self, labels, shape):
        """The pairs that are matched; refuses labels that are not a matching."""
        if not np.array_equal(np.sort(labels), np.arange(shape[0])):
            raise ValueError(f"expected each of the places 0..{shape[0] - 1} once, got {labels}")
        return np.arange(shape[0]) * shape[0] + labels

    @staticmethod
    def example_shapes():
        """Small ones, for the contract checks."""
        return [(1,), (2,), (4,)]


HIDDEN = np.random.default_rng(7).normal(size=8)  # the weights that make the data


def make_data(n_samples, rng, noise=0.7):
    """Features of all pairs, the best matching under hidden weights and noise, and the shapes."""
    X, y, shapes = [], [], []
    for _ in range(n_samples):
        n = int(rng.integers(4, 9))
        x = rng.normal(size=(n * n, len(HIDDEN)))
        X.append(x)
        shapes.append((n,))
        y.append(MatchingOracle().argmax(x @ HIDDEN + noise * rng.normal(size=n * n), (n,)))
    return X, y, shapes


def main():
    """Check the oracle, train it with every trainer, save and load."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer samples")
    quick = parser.parse_args().quick

    oracle = MatchingOracle()
    structpred.check_oracle(oracle)
    print("check_oracle: MatchingOracle keeps the contract")

    rng = np.random.default_rng(0)
    X, y, shapes = make_data(60 if quick else 300, rng)
    X_test, y_test, shapes_test = make_data(60 if quick else 300, rng)
    chance = np.mean([1.0 / n for (n,) in shapes_test])
    best = [oracle.argmax(x @ HIDDEN, shape) for x, shape in zip(X_test, shapes_test, strict=True)]
    reach = np.mean(np.concatenate(best) == np.concatenate(y_test))
    print(f"{len(X)} matchings of 4 to 8 items; right by chance {chance:.1%}, with the hidden weights {reach:.1%}")

    for trainer in ("perceptron", "sgd", "bcfw"):
        model = StructuredPredictor(oracle, trainer=trainer, C=0.1, max_iter=30, random_state=0).fit(X, y, shapes)
        print(f"{trainer:<10} {model.score(X_test, y_test, shapes_test):.1%} right; {model.certificate_}")

    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "matching.spz")
        loaded = StructuredPredictor.load(Path(folder) / "matching.spz", oracle)
    same = all(map(np.array_equal, loaded.predict(X_test, shapes_test), model.predict(X_test, shapes_test)))
    print(f"saved and loaded: predictions are {'the same' if same else 'different'}")


if __name__ == "__main__":
    main()
