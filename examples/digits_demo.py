"""Strings of handwritten digits, read digit by digit and read as a chain.

The images are real (the 1797 handwritten digits that come with scikit-learn). The strings are synthetic: which digit
follows which is drawn from a Markov rule, and Gaussian noise is laid over the pixels. Both models see the same pixels;
the chain also learns which digit tends to follow which.

    python examples/digits_demo.py             # prints both error rates and writes out/digits_demo.png
    python examples/digits_demo.py --quick     # a smaller run
"""

import argparse
import time
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from structpred.models import ChainLabeler

LENGTH = 8  # digits a string
NOISE = 0.25  # standard deviation of the noise, as a share of the pixel range


def draw_strings(images, digits, n_strings, rng):
    """Strings by the Markov rule: each digit gets a picture of it, noise on top. Returns noisy pixels and digits."""
    follows = 0.9 * successors() + 0.1 / 10
    pictures = [np.flatnonzero(digits == d) for d in range(10)]
    X, y = [], []
    for _ in range(n_strings):
        string = [int(rng.integers(10))]
        while len(string) < LENGTH:
            string.append(int(rng.choice(10, p=follows[string[-1]])))
        pixels = images[[rng.choice(pictures[d]) for d in string]] / 16.0
        X.append(pixels + rng.normal(0.0, NOISE, pixels.shape))
        y.append(np.array(string))
    return X, y


def successors():
    """The rule: after digit d comes 3d + 1, d + 4 or 7d + 2 (modulo 10), each with probability 1/3."""
    table = np.zeros((10, 10))
    for d in range(10):
        for after in (3 * d + 1, d + 4, 7 * d + 2):
            table[d, after % 10] += 1 / 3
    return table


def error_rates(gold, read):
    """(share of wrong digits, share of strings with a wrong digit)."""
    wrong = [np.asarray(a) != np.asarray(b) for a, b in zip(gold, read, strict=True)]
    return np.concatenate(wrong).mean(), np.mean([w.any() for w in wrong])


def main():
    """Run the comparison and print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer strings and passes")
    parser.add_argument("--shown", type=int, default=12, help="how many strings the picture shows")
    parser.add_argument("--out", type=Path, default=Path("out/digits_demo.png"), help="where the picture goes")
    options = parser.parse_args()
    n_train, n_test, passes = (120, 100, 20) if options.quick else (400, 300, 50)

    start = time.perf_counter()
    rng = np.random.default_rng(0)
    digits = load_digits()
    order = rng.permutation(len(digits.target))
    train, test = order[:900], order[900:]  # the images are split before any string is drawn: no image stands on both sides
    X_train, y_train = draw_strings(digits.data[train], digits.target[train], n_train, rng)
    X_test, y_test = draw_strings(digits.data[test], digits.target[test], n_test, rng)
    print(f"{n_train} training and {n_test} test strings of {LENGTH} digits.")
    print("Images: real handwritten digits; none is used for both training and testing.")
    print(f"Strings: synthetic, drawn from a Markov rule; Gaussian noise on the pixels, {NOISE:.0%} of their range.\n")

    clock = time.perf_counter()
    single = LogisticRegression(C=0.1, max_iter=300)
    single.fit(np.vstack(X_train), np.concatenate(y_train))
    alone = [single.predict(x) for x in X_test]
    seconds_alone = time.perf_counter() - clock

    chain = ChainLabeler(trainer="bcfw", C=0.03, max_iter=passes, random_state=0)
    chain.fit(X_train[:20], y_train[:20]).predict(X_test[:20])  # the first run compiles here, and not on the clock
    clock = time.perf_counter()
    chain.fit(X_train, y_train)
    joint = chain.predict(X_test)
    seconds_joint = time.perf_counter() - clock

    print(f"{'':<38}digits wrong   strings wrong   seconds")
    for name, read, seconds in (
        ("each digit alone (logistic regression)", alone, seconds_alone),
        ("the chain (structural SVM)", joint, seconds_joint),
    ):
        digit, string = error_rates(y_test, read)
        print(f"{name:<40}{digit:>10.1%}{string:>16.1%}{seconds:>10.1f}")

    bounds = chain.certificate_
    print(
        f"\nCertificate after {chain.n_iter_} passes: primal {bounds.primal:.5f}, dual {bounds.dual:.5f}, gap {bounds.gap:.5f}:"
    )
    print(f"no other weights have a training objective more than {bounds.relative_gap:.1%} lower.")

    shown = range(options.shown)  # the first ones, not the nicest
    options.out.parent.mkdir(parents=True, exist_ok=True)
    read = {"truth": y_test, "alone": alone, "chain": joint}
    draw_picture([X_test[i] for i in shown], {name: strings[: len(shown)] for name, strings in read.items()}, options.out)
    print(f"\n{options.out}: the first {len(shown)} test strings, with what each model read.")
    print(f"{time.perf_counter() - start:.1f} seconds in all; compiling, twenty seconds the first time, is not in the table.")


def draw_picture(pixels, read, path):
    """Each string as its pictures, and a line of digits for the truth and for each model; wrong ones are red, bold and boxed."""
    figure = Figure(figsize=(5.0, 1.2 * len(pixels)), layout="constrained")
    for i, ax in enumerate(figure.subplots(len(pixels), squeeze=False)[:, 0]):
        strip = np.hstack([picture.reshape(8, 8).clip(0, 1) for picture in pixels[i]])
        ax.imshow(strip, cmap="gray_r", extent=(0, LENGTH, 1, 0), interpolation="nearest")
        ax.axis("off")
        for line, (name, strings) in enumerate(read.items()):
            y = 1.3 + 0.6 * line
            ax.text(-0.3, y, name, ha="right", va="center", color="#777777")
            for k, (digit, true) in enumerate(zip(strings[i], read["truth"][i], strict=True)):
                style = {"color": "#C8102E", "weight": "bold", "bbox": {"facecolor": "none", "edgecolor": "#C8102E"}}
                ax.text(k + 0.5, y, str(digit), ha="center", va="center", **(style if digit != true else {}))
        ax.set_ylim(y + 0.5, 0)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
