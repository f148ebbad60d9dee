"""Small problems with two kernels, in kernel form and with explicit features, for the tests of trainers."""

from itertools import pairwise

import numpy as np
from scipy import sparse

from structpred.data.sequences import PackedSequences
from structpred.features.positions import PositionFeatures
from structpred.features.sequences import SequenceFeatures, weight_table
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.part_losses import Hamming
from structpred.oracles.chain import ChainOracle
from structpred.task.task import Task
from structpred.trainers.online.grouped_weights import FunctionNorms
from structpred.trainers.problem import Problem

LENGTHS = [3, 1, 4, 2, 3, 2, 4, 1]
N_LABELS = 3


def quadratic_map(x):
    """Features whose inner product is (<x, z> + 1)^2, times two so that they are whole numbers squared or times sqrt(2)."""
    pairs = [np.sqrt(2.0) * x[:, i] * x[:, j] for i in range(x.shape[1]) for j in range(i)]
    return np.column_stack((x**2, *pairs, np.sqrt(2.0) * x, np.ones(len(x))))


def both(regulariser, lam=0.1, *, seed=0, csr=False, compiled=True, surrogate=None, dtype=np.float64):
    """The same problem with explicit features and in kernel form: a linear kernel and a quadratic one; and the features."""
    rng = np.random.default_rng(seed)
    x = rng.integers(-1, 2, (sum(LENGTHS), 2)).astype(float)
    maps = [x, quadratic_map(x)]
    offsets, phi = np.cumsum([0, *LENGTHS]), np.hstack(maps)
    n, d = phi.shape
    ends = np.cumsum([0, *(part.shape[1] for part in maps)])
    names = ("linear", "quadratic")
    packed = PackedSequences(d * np.arange(n + 1), np.tile(np.arange(d), n), phi.ravel(), offsets, d, ends, names)
    grams = [np.asarray(x @ x.T, np.float32), np.asarray((x @ x.T + 1.0) ** 2, np.float32)]
    grams = [sparse.csr_array(gram) for gram in grams] if csr else grams
    labels = [rng.integers(0, N_LABELS, k) for k in LENGTHS]
    surrogate = surrogate or MarginRescaling()

    def problem(features, r):
        task = Task(features, ChainOracle(), labels, [(k, N_LABELS) for k in LENGTHS], Hamming(), compiled=compiled,
                    sample_weight=np.linspace(0.5, 1.5, len(LENGTHS)))  # fmt: skip
        return Problem(task, surrogate, lam, regulariser=r)

    kernel = PositionFeatures(grams, offsets, N_LABELS, names, dtype=dtype)
    explicit = SequenceFeatures(packed, N_LABELS, dtype=dtype)
    return problem(explicit, regulariser), problem(kernel, FunctionNorms(regulariser, kernel.space)), maps


def functions(prob, w, maps):
    """What explicit weights say at each position, kernel by kernel, and the weights of start, stop and transitions."""
    table = weight_table(w, N_LABELS)
    ends = np.cumsum([0, *(part.shape[1] for part in maps)])
    return [part @ table[a:b] for part, (a, b) in zip(maps, pairwise(ends), strict=True)], table[ends[-1] :]
