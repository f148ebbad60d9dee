"""Contract checks, for oracles and feature maps: every broken rule is explained, with the likely cause."""

from collections.abc import Iterable, Sequence
from contextlib import suppress

import numpy as np

from structpred.contracts.capabilities import examine_capabilities
from structpred.contracts.engine import Examiner, brief, enumerated, place, pooled
from structpred.contracts.fast_features import FastCalls
from structpred.contracts.marginals import examine_marginals
from structpred.contracts.maximum import examine_maximum
from structpred.contracts.report import OracleReport, Report, reported
from structpred.contracts.rules import (
    examine_batch,
    examine_memory,
    examine_other_batches,
    examine_shape,
)
from structpred.contracts.scores import RANDOM, ZERO, Answer, ShapeCase
from structpred.core.feature_map import FeatureMap
from structpred.core.oracle import Oracle, Shape
from structpred.core.sparse import SparseVector
from structpred.errors import OracleError

#: after this number of calls of the oracle the shapes that are left are tried with few scores
MAX_CALLS = 200_000
#: samples of a feature map that are tried, and their parts in all; the first few are tried whatever their size
MOST_SAMPLES, MOST_PARTS = 1_000, 200_000


def check_oracle(
    oracle: Oracle,
    *,
    shapes: Iterable[Shape] | None = None,
    n_random: int = 20,
    seed: int = 0,
    max_calls: int | None = None,
) -> OracleReport:
    """Check an oracle against its contract on small shapes.

    Where the oracle has `enumerate`, every answer is compared with all outputs (up to 20,000 per shape), else with the outputs
    that it gave for other scores. `parts` is also given labels that are not an output. Optional methods are checked, too. With
    ``exact = False`` a missed maximum is not a fault.

    Parameters
    ----------
    oracle : Oracle
        The oracle to check.
    shapes : iterable, optional
        The shapes to try; None: `oracle.example_shapes()`.
    n_random : int
        How many score vectors of each kind are tried for each shape.
    seed : int
        Seed of the random scores.
    max_calls : int, optional
        As `fit` checks, for slow oracles: after that many calls the rest is not checked, half of them for argmax alone. Shapes
        with more outputs count as without `enumerate`. `parts` gets no labels that are no output.

    Returns
    -------
    OracleReport
        What was checked, how often, and what could not be checked and why.

    Raises
    ------
    OracleError
        If a rule is broken. It lists every broken rule with the shape, what was expected, what came and the likely cause.

    Examples
    --------
    >>> from structpred.oracles.multiclass import MulticlassOracle
    >>> print(check_oracle(MulticlassOracle()).checked["wrong argmax"] > 100)
    True
    """
    examiner = Examiner(oracle, np.random.default_rng(seed), max_calls)
    tried: list[Shape] = []
    cases: list[ShapeCase] = []
    with suppress(OracleError):
        tried = _shapes(examiner, shapes)
        for shape in tried:
            if max_calls is not None and examiner.calls > max_calls // 2:
                examiner.skip(f"{place(shape)}", f"more than {max_calls // 2} calls of the oracle for the shapes before")
                continue
            many = examiner.checked["no exceptions"] > MAX_CALLS
            if many:
                examiner.skip(
                    f"most scores of {place(shape)}", f"more than {MAX_CALLS} calls of the oracle for the shapes before"
                )
            if case := examine_shape(examiner, shape, 1 if many else n_random):
                cases.append(case)
    examine_maximum(examiner, cases)
    examine_memory(examiner, cases)
    examine_batch(examiner, cases)
    examine_other_batches(examiner, cases)
    examine_capabilities(examiner, cases)
    seconds = float(np.median(examiner.cpu_seconds)) if examiner.cpu_seconds else 0.0
    return OracleReport(**vars(reported(examiner, OracleError, tried)), argmax_seconds=seconds)


def check_marginals(oracle: Oracle, shapes: Sequence[Shape], *, seed: int = 0) -> Report:
    """Check `marginals`, and batches of them, on 60 shapes of a training set: in about 230 calls, whatever their size.

    log_z must be at least the score of argmax's output, mu the difference quotient of log_z (on ten); where enumerate lists at
    most 300 outputs both are compared with sums over these. Batches must equal their loops. OracleError has each broken rule.
    """
    rng = np.random.default_rng(seed)
    examiner, cases = Examiner(oracle, rng), []
    tried = [shapes[k] for k in rng.permutation(len(shapes))[:60].tolist()]
    for k, shape in enumerate(tried):
        with suppress(OracleError):
            n_parts = int(examiner.call("n_parts", place(shape), shape))
            thetas = rng.normal(size=(2, n_parts))
            found = [examiner.call("argmax", place(shape), theta, shape).copy() for theta in thetas]
            found = [examiner.labels(labels, place(shape), "argmax") for labels in found]
            own = [(labels, examiner.parts(labels, shape, n_parts, given_by="argmax")) for labels in found]
            kinds = RANDOM if k < 10 else ZERO, ZERO
            answers = [Answer(kind, theta, *one) for kind, theta, one in zip(kinds, thetas, own, strict=True)]
            case = ShapeCase(enumerated(examiner, shape, n_parts, 300) or pooled(shape, n_parts, own), answers)
            for answer in answers:
                examine_marginals(examiner, case.space, answer, f"{place(shape)}, random scores")
            cases.append(case)
    examine_other_batches(examiner, cases)
    return reported(examiner, OracleError, tried)


def _shapes(examiner: Examiner, shapes: Iterable[Shape] | None) -> list[Shape]:
    found = list(examiner.call("example_shapes", "no shape") if shapes is None else shapes)
    examiner.insist("shapes", found, "no shape", "at least one shape", "none", "example_shapes returns an empty list")
    for shape in found:
        cause = "a list, a dict or an array in it: use tuples, or a frozen dataclass"
        examiner.insist("shapes", _hashable(shape), "no shape", "shapes that are hashable values", brief(shape), cause)
    exact = getattr(examiner.oracle, "exact", None)
    examiner.expect("exact", isinstance(exact, bool), "no shape", "exact to be True or False", brief(exact), "another type")
    tolerance = getattr(examiner.oracle, "tolerance", None)
    number = isinstance(tolerance, int | float) and 0.0 <= tolerance < np.inf
    examiner.insist("tolerance", number, "no shape", "tolerance to be a finite number >= 0", brief(tolerance), "another type")
    return found


def _hashable(shape: Shape) -> bool:
    try:
        hash(shape)
    except TypeError:
        return False
    return True


def check_feature_map(features: FeatureMap, *, n_random: int = 20, seed: int = 0) -> Report:
    """Check a feature map against its contract: above all <mu, scores(w, i)> = <w, adjoint(i, mu)>, to 1e-9.

    That is tried for every sample, and each faster call of `core.feature_map.OPTIONAL` beside the plain ones; for 1,000 drawn by
    lot, of 200,000 parts at most, where there are more.

    Parameters
    ----------
    features : FeatureMap
        The map to check.
    n_random : int
        How many samples are tried one by one, each call twice, with random weights of the map's dtype and random sparse counts.
    seed : int
        Seed of these.

    Raises
    ------
    OracleError
        If a rule is broken; it lists every broken rule.

    Examples
    --------
    >>> from structpred.features.label_rows import LabelRows
    >>> report = check_feature_map(LabelRows(np.eye(2), 3))
    """
    rng = np.random.default_rng(seed)
    examiner = Examiner(features, rng)
    groups = features.groups
    ordered = groups[0] == 0 and groups[-1] == features.dim and (np.diff(groups) >= 0).all()
    cause = "group k is groups[k]:groups[k+1] of the flat weights"
    examiner.expect("groups", ordered, "no shape", f"groups from 0 to dim = {features.dim}, ascending", groups, cause)
    names = getattr(features, "group_names", None)
    if names is not None:
        fits = len(names) == len(groups) - 1 and all(isinstance(name, str) for name in names)
        cause = "names of another map: leave group_names out, or give one string per group"
        examiner.expect("groups", fits, "no shape", f"group_names to hold {len(groups) - 1} strings", names, cause)
    tried = rng.permutation(len(features))[:MOST_SAMPLES].tolist()
    for i in tried[:n_random]:
        with suppress(OracleError):
            _check_sample(examiner, features, i)
    if not examiner.broken:  # else fast calls would be blamed for the plain ones
        few = int(np.searchsorted(np.cumsum([features.n_parts(i) for i in tried]), MOST_PARTS))
        with suppress(OracleError):
            FastCalls(examiner, features, sorted(tried[: max(few, 3)])).examine()
    return reported(examiner, OracleError)


def _check_sample(examiner: Examiner, features: FeatureMap, i: int) -> None:
    rng, where = examiner.rng, f"sample {i}"
    n_parts = int(examiner.call("n_parts", where, i))
    w = rng.normal(size=features.dim).astype(features.dtype)
    theta = examiner.numbers(examiner.call("scores", where, w, i), n_parts, where, "scores")
    kept = theta.copy()
    theta += 1.0
    again = examiner.call("scores", where, w, i)
    same = np.array_equal(again, kept)
    examiner.expect("nondeterminism", same, where, "the same scores, in a new array", again, "a shared buffer")
    parts = np.flatnonzero(rng.random(n_parts) < rng.choice([0.1, 0.5, 1.0])).astype(np.int64)
    mu = rng.normal(size=len(parts))
    phi = examiner.call("adjoint", where, i, parts, mu)
    kept_phi = [np.array(own) for own in phi] if isinstance(phi, SparseVector) else []
    again = examiner.call("adjoint", where, i, parts, mu)
    same = all(np.array_equal(a, b) for a, b in zip(again, kept_phi, strict=False))
    cause = "random numbers, such as dropout, or a buffer"
    examiner.expect("nondeterminism", same, where, "twice the same features", again, cause)
    pair = isinstance(phi, SparseVector) and phi.indices.dtype == np.int64 and phi.values.dtype == np.float64
    examiner.insist("wrong dtype", pair, where, "adjoint to give a SparseVector of int64 and float64", phi, "see coalesced()")
    sorted_ = (np.diff(phi.indices) > 0).all() and phi.values.all()
    inside = not len(phi.indices) or (phi.indices[0] >= 0 and phi.indices[-1] < features.dim)
    cause = "pairs that were not put through coalesced(), or a feature number that is off"
    examiner.insist(
        "sparse", sorted_ and inside, where, f"sorted unique indices below {features.dim}, no zeros", phi.indices, cause
    )
