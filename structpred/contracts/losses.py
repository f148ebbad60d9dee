"""Contract checks for losses: every broken rule is explained, with the likely cause."""

from collections.abc import Iterable
from contextlib import suppress

import numpy as np

from structpred.contracts.engine import Examiner, Report, Space, brief, enumerated, kind_of, place, pooled, reported
from structpred.core.costs import Cost, GridCosts, PartCosts, missing_method
from structpred.core.oracle import Labels, Oracle, Shape
from structpred.core.types import Floats
from structpred.errors import LossError, OracleError

#: true outputs that are tried for each shape
N_TRUTHS = 30


def check_loss(
    loss: Cost, oracle: Oracle, *, shapes: Iterable[Shape] | None = None, seed: int = 0, max_calls: int | None = None
) -> Report:
    """Check a loss against its contract, with outputs of an oracle as true ones; the report says what was checked.

    Parameters
    ----------
    loss : object
        With ``costs(labels, shape, oracle) -> GridCosts | PartCosts``.
    oracle : Oracle
        One that satisfies its own contract (`check_oracle`). Where it has `enumerate`, the truths are taken from all outputs,
        and each is compared with all; else from the outputs that argmax gives for random scores.
    shapes : iterable, optional
        The shapes to try; None: `oracle.example_shapes()`.
    seed : int
        Seed of the choice of truths.
    max_calls : int, optional
        For slow oracles, as for `check_oracle`.

    Raises
    ------
    LossError
        If a rule is broken. It lists every broken rule with the shape and the truth, what was expected, what came and the
        likely cause.
    OracleError
        If it is the oracle that is broken.

    Examples
    --------
    >>> from structpred.objectives.part_losses import Hamming
    >>> from structpred.oracles.chain import ChainOracle
    >>> check_loss(Hamming(), ChainOracle()).checked["the truth costs 0"] > 10
    True
    """
    if (reason := missing_method(loss)) is not None:
        raise LossError(f"check_loss: {reason}")
    rng = np.random.default_rng(seed)
    of_oracle, examiner = Examiner(oracle, rng, max_calls), Examiner(loss, rng)
    tried = list(oracle.example_shapes() if shapes is None else shapes)
    telling = False
    for shape in tried:
        with suppress(OracleError):
            space = _space(of_oracle, shape)
            telling |= _examine(examiner, of_oracle, space)
    reported(of_oracle, OracleError)  # which refuses the oracle, if that is what is wrong
    if not telling:
        reason = "no output but the truth costs anything on these shapes; training with a margin would change nothing"
        examiner.skip("a wrong output costs more than 0", reason)
    return reported(examiner, LossError, tried)


def _space(examiner: Examiner, shape: Shape) -> Space:
    """All outputs of a shape, or those that argmax gives for random scores."""
    n_parts = int(examiner.call("n_parts", place(shape), shape))
    if (space := enumerated(examiner, shape, n_parts)) is not None:
        return space
    found, where = [], place(shape)
    for _ in range(N_TRUTHS):
        answer = examiner.call("argmax", where, examiner.rng.normal(size=n_parts), shape)
        labels = examiner.labels(answer, where, "argmax").copy()
        found.append((labels, examiner.parts(labels, shape, n_parts, given_by="argmax")))
    return pooled(shape, n_parts, found)


def _examine(examiner: Examiner, of_oracle: Examiner, space: Space) -> bool:
    """Ask for the costs of some truths, twice; whether an output other than the truth ever costs something."""
    if not space.complete:
        reason = "no usable enumerate(shape), so only outputs were compared that argmax gives for random scores"
        examiner.skip("some outputs", reason)
    grid = None
    if "label_grid" in of_oracle.has:
        grid = of_oracle.call("label_grid", place(space.shape), space.shape)
    asked: list[tuple[Labels, str, float, Floats]] = []
    telling = False
    for k in examiner.rng.permutation(len(space.labels))[:N_TRUTHS].tolist():
        truth = space.labels[k]
        where = f"{place(space.shape)}, truth {brief(truth)}"
        with suppress(OracleError):
            answer = examiner.call("costs", where, truth, space.shape, of_oracle.oracle)
            constant, costs = _checked(examiner, space, answer, truth, grid, where)
            asked.append((truth, where, constant, costs))
            _examine_losses(examiner, constant, space.counts * costs, k, where)
            telling |= bool((constant + space.counts @ costs).max() > 0)
    for truth, where, constant, costs in asked[::-1]:
        with suppress(OracleError):
            answer = examiner.call("costs", where, truth, space.shape, of_oracle.oracle)
            again = _checked(examiner, space, answer, truth, grid, where)
            same = again[0] == constant and np.array_equal(again[1], costs)
            cause = "a random number, or state kept between calls: training asks once and keeps the answer"
            expected = f"twice the same costs: {_shown((constant, costs))}"
            examiner.expect("nondeterminism", same, where, expected, _shown(again), cause)
    return telling


def _examine_losses(examiner: Examiner, constant: float, terms: Floats, truth: int, where: str) -> None:
    """The two rules: the truth costs nothing, and no output costs less. terms has one row per output: cost times count."""
    losses = constant + terms.sum(axis=1)
    tol = 1e-9 * (1.0 + abs(constant) + float(np.abs(terms).sum(axis=1).max()))
    own, low, high = float(losses[truth]), float(losses.min()), float(losses.max())
    similar = own >= high - tol and low < high - tol
    if similar:
        cause = "a similarity (larger is better), or a wrong sign: a loss is 0 for the truth and grows with the errors"
    elif own <= low + tol:
        cause = f"a constant that is left out or too large: constant - {own:.6g} would do"
    else:
        cause = "costs at parts that the truth has, or true parts that are counted wrongly (an index that comes twice?)"
    expected = "constant + costs . mu(truth) = 0"
    if not examiner.expect("the truth costs 0", abs(own) <= tol, where, expected, f"{own:.6g}", cause):
        return
    if not similar:
        cause = "parts that lower the loss though the truth does not have them, or a true part that is counted each time it comes"
    examiner.expect("no output costs less than 0", low >= -tol, where, "costs of at least 0", f"{low:.6g}", cause)


def _checked(
    examiner: Examiner, space: Space, answer: object, truth: Labels, grid: tuple[int, int] | None, where: str
) -> tuple[float, Floats]:
    """(constant, one cost per part) of a typed answer; else the case ends."""
    if isinstance(answer, GridCosts):
        return 0.0, _checked_grid(examiner, space, answer, truth, grid, where)
    cause = (
        "a plain pair: return PartCosts(constant, costs)" if isinstance(answer, tuple) else "a missing return, or a bare array"
    )
    typed = isinstance(answer, PartCosts)
    examiner.insist("wrong type", typed, where, "costs to give GridCosts or PartCosts", kind_of(answer), cause)
    assert isinstance(answer, PartCosts)
    constant = float(_numbers(examiner, answer.constant, where, "the constant"))
    costs = _numbers(examiner, answer.costs, where, "part costs")
    cause = "costs of labels or of positions where costs of parts are due: make them with np.zeros(oracle.n_parts(shape))"
    right = costs.shape == (space.n_parts,)
    examiner.insist("wrong length", right, where, f"{space.n_parts} costs, one per part", f"shape {costs.shape}", cause)
    return constant, costs


def _checked_grid(
    examiner: Examiner, space: Space, answer: GridCosts, truth: Labels, grid: tuple[int, int] | None, where: str
) -> Floats:
    """The costs of parts that a grid of label costs stands for."""
    cause = "a loss on positions and labels with an oracle that has none: return PartCosts, or give the oracle label_grid(shape)"
    examiner.insist("label grid", grid is not None, where, "GridCosts only for oracles with a label grid", "no label_grid", cause)
    assert grid is not None
    n_positions, n_labels = grid
    cost = _numbers(examiner, answer.cost, where, "label costs")
    right = cost.shape in ((), (n_labels, n_labels))
    cause = "a matrix of another label set, or one row per position"
    expected = f"a number or a matrix ({n_labels}, {n_labels}) of label costs"
    examiner.insist("wrong length", right, where, expected, f"shape {cost.shape}", cause)
    cause = "a similarity (larger is better), or a wrong sign"
    examiner.insist("no output costs less than 0", (cost >= 0).all(), where, "label costs of at least 0", cost, cause)
    diagonal = np.diag(cost) if cost.ndim else np.zeros(1)
    cause = "a matrix of agreements, or one that was not made with a zero diagonal: the true label costs nothing"
    examiner.insist("the truth costs 0", not diagonal.any(), where, "zeros on the diagonal of the label costs", diagonal, cause)
    table = GridCosts(cost).table(n_labels)
    costs = np.zeros(space.n_parts)
    costs[: n_positions * n_labels] = table[truth].ravel()
    return costs


def _numbers(examiner: Examiner, found: object, where: str, what: str) -> Floats:
    """`found` as a finite float64 array, else the case ends."""
    try:
        values = np.array(found, dtype=np.float64)
    except (TypeError, ValueError):
        values = None
    cause = "strings, None, a sparse matrix, or rows of different lengths: give a NumPy array of numbers"
    examiner.insist("wrong type", values is not None, where, f"{what} that are numbers", kind_of(found), cause)
    assert values is not None
    cause = "a division by zero (an empty output, nothing to average over), or a logarithm of 0"
    examiner.insist("NaN", np.isfinite(values).all(), where, f"{what} that are finite", found, cause)
    return values


def _shown(answer: tuple[float, Floats]) -> str:
    return f"constant {answer[0]:.6g}, costs {brief(answer[1])}"
