"""Data of the experiments on learning that is not convex: real sets, simulators, and random partitions."""

import zipfile
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np

from structpred.core.types import Flags, Floats, Integers
from structpred.errors import DataError
from structpred.experiments.experiment import data_file
from structpred.io.ocr import read_ocr

#: standard deviation of the noise of two moons, and of the spirals; the turns of a spiral
MOON_NOISE, SPIRAL_NOISE, TURNS = 0.08, 0.1, 1.25


@dataclass(frozen=True)
class Points:
    """X: (n, d) features. y: (n,) classes, numbers from 0 on; states: of groups of hidden classes, how many each has."""

    X: Floats
    y: Integers
    states: tuple[int, ...] = ()

    def some(self, most: int | None) -> "Points":
        """So many at random, or all."""
        if most is None:
            return self
        chosen = np.random.default_rng(0).permutation(len(self.y))[:most]
        return replace(self, X=self.X[chosen], y=self.y[chosen])


@dataclass(frozen=True)
class Partition:
    """Rows to train on, to choose settings by, and to test on; labelled: whether each training row has a label."""

    train: Integers
    validation: Integers
    test: Integers
    labelled: Flags


def partition(y: Integers, per_class: int, seed: int) -> Partition:
    """60 % to train on, 10 % for validation, the rest to test on; of the first, random rows of each class have labels.

    per_class: how many; of a class with few rows a quarter, and at least one.
    """
    rng, n = np.random.default_rng(seed), len(y)
    train, validation, test = np.split(rng.permutation(n), [round(0.6 * n), round(0.7 * n)])
    labelled = np.zeros(len(train), bool)
    for k in np.unique(y):
        own = np.flatnonzero(y[train] == k)
        labelled[rng.choice(own, max(1, min(per_class, len(own) // 4)), replace=False)] = True
    return Partition(train, validation, test, labelled)


def two_moons(n: int, seed: int = 0) -> Points:
    """Two half circles of radius 1 that reach into each other, with normal noise; as many points in each."""
    rng, half = np.random.default_rng(seed), n // 2
    t = rng.uniform(0.0, np.pi, n)
    upper, lower = np.c_[np.cos(t[:half]), np.sin(t[:half])], np.c_[1.0 - np.cos(t[half:]), 0.5 - np.sin(t[half:])]
    return Points(np.vstack([upper, lower]) + MOON_NOISE * rng.normal(size=(n, 2)), np.repeat([0, 1], [half, n - half]))


def two_spirals(n: int, seed: int = 0) -> Points:
    """Two Archimedean spirals, x = r (cos t, sin t) with r = t, one turned by half a turn; even along the curve, normal noise."""
    rng, half = np.random.default_rng(seed), n // 2
    first, last = 0.5 * np.pi, (0.5 + 2.0 * TURNS) * np.pi
    t = np.sqrt(rng.uniform(first**2, last**2, n))
    y = np.repeat([0, 1], [half, n - half])
    turned = t + np.pi * y
    return Points(np.c_[t * np.cos(turned), t * np.sin(turned)] + SPIRAL_NOISE * rng.normal(size=(n, 2)), y.astype(np.int64))


def waveforms(n: int, classes: int = 3, seed: int = 0) -> Points:
    """Breiman's waveforms with 40 features: random mixtures of two triangles, one pair a class, 19 columns of noise.

    Three classes are his: of three triangles, in groups of the first class and the two others. More have nine triangles, and the
    classes are in groups by turns.
    """
    rng = np.random.default_rng(seed)
    centres, at = np.array([7, 15, 11] if classes == 3 else range(3, 20, 2)), np.arange(1, 22)
    triangles = np.maximum(6.0 - np.abs(at - centres[:, None]), 0.0)
    pairs = np.array([*combinations(range(len(centres)), 2)][:classes])
    y = rng.integers(0, classes, n)
    share = rng.uniform(size=(n, 1))
    waves = share * triangles[pairs[y, 0]] + (1.0 - share) * triangles[pairs[y, 1]]
    X = np.hstack([waves, np.zeros((n, 19))]) + rng.normal(size=(n, 40))
    groups = np.minimum(y, 1) if classes == 3 else y % 2
    return Points(scaled(X), groups, (1, 2) if classes == 3 else ((classes + 1) // 2, classes // 2))


def digits(folder: Path, n: int = 0) -> Points:
    """The test part of USPS; groups: even and odd digits."""
    points = first_classes("ssl_lds/uspst.npz", 10, folder)
    return Points(points.X, points.y % 2, (5, 5))


def letters(folder: Path, n: int = 0) -> Points:
    """The first 1,500 images of nine letters, the most frequent of handwritten words; groups: by turns in the alphabet."""
    words, chosen = read_ocr(data_file(folder / "ocr_letters", "letter.data")), sorted("eainortls")
    letters = np.array([letter for word in words.letters for letter in word])
    rows = np.flatnonzero(np.isin(letters, chosen))[:1_500]
    return Points(scaled(words.pixels[rows].astype(np.float64)), np.searchsorted(chosen, letters[rows]) % 2, (5, 4))


def vowel(folder: Path, n: int = 0) -> Points:
    """Vowels, 990 of 11 classes; groups: the classes with odd numbers (6), and those with even ones (5)."""
    where = folder / "multiclass_vowel"
    paths = [data_file(where, f"vowel.{part}") for part in ("train", "test")]
    try:
        table = np.vstack([np.loadtxt(path, skiprows=2) for path in paths])
    except (OSError, ValueError) as error:
        raise DataError(f"{paths[0].parent}: expected lines of ten features and a class: {error}") from error
    return Points(scaled(table[:, :-1]), 1 - table[:, -1].astype(np.int64) % 2, (6, 5))


def first_classes(name: str, n_classes: int, folder: Path, n: int = 0) -> Points:
    """All rows of the first classes of an npz file."""
    path = data_file((folder / name).parent, Path(name).name)
    try:
        with np.load(path, allow_pickle=False) as data:
            X, given = data["X"].astype(np.float64), data["y"]
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise DataError(f"{path}: expected an npz file with arrays X and y: {error}") from error
    y = np.unique(given, return_inverse=True)[1].reshape(-1).astype(np.int64)
    kept = y < n_classes
    return Points(scaled(X[kept]), y[kept])


def scaled(X: Floats) -> Floats:
    """X times the number for which the median of squared distances is 2: widths of kernels then mean the same everywhere."""
    some = X[np.random.default_rng(0).permutation(len(X))[:300]]
    lengths = (some**2).sum(axis=1)
    squares = lengths[:, None] + lengths - 2.0 * some @ some.T
    return np.asarray(X * np.sqrt(2.0 / np.median(squares[~np.eye(len(some), dtype=bool)])))
