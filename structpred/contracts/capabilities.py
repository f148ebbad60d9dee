"""The rules of optional methods: each is compared with all outputs of small shapes, or with those that are known."""

from collections.abc import Callable, Iterator
from contextlib import suppress

import numpy as np

from structpred.contracts.engine import Examiner, Space, brief, place, tolerance
from structpred.contracts.marginals import examine_cliques, examine_marginals
from structpred.contracts.maximum import NEGATIVE, OFFSET, POSITIVE, Answer, ShapeCase
from structpred.core.oracle import Labels, Scores
from structpred.core.types import Floats
from structpred.errors import OracleError

_LOOSE = 1e-6  # for solvers


def examine_capabilities(examiner: Examiner, cases: list[ShapeCase]) -> None:
    """Check each optional method that the oracle has; say which it has not."""
    for name, rule in RULES.items():
        if name not in examiner.has:
            examiner.skip(name, "the oracle does not have it")
            continue
        if name == "project" and examiner.max_calls is not None and not examiner.oracle.exact:
            continue  # it may be built on a heuristic, which proves nothing
        for case in cases:
            for answer in _some(case.answers):
                with suppress(OracleError):
                    rule(examiner, case.space, answer)
    # every relaxed answer must be optimal among all of them: they are points of one and the same polytope
    for case in cases if "argmax_relaxed" in examiner.has else ():
        with suppress(OracleError):
            space, answers = case.space, _some(case.answers)
            points = [examiner.call("argmax_relaxed", _where(space, a), a.theta, space.shape) for a in answers]
            for answer, point in zip(answers, points, strict=True):
                values = np.array(points) @ answer.theta
                own = float(point @ answer.theta)
                cause = "the relaxation depends on the scores, or the solver stops early"
                ok = own >= values.max() - _LOOSE * max(1.0, abs(own))
                where, expected = _where(space, answer), f"the best of its own answers, {values.max():.9g}"
                examiner.expect("argmax_relaxed", ok, where, expected, f"{own:.9g}", cause)


def _some(answers: list[Answer]) -> list[Answer]:
    """Up to three of each kind of scores, save those of one sign."""
    seen: dict[str, int] = {}
    out = []
    for answer in answers:
        kind = answer.kind.split(",")[0]
        seen[kind] = seen.get(kind, 0) + 1
        if seen[kind] <= 3 and kind not in (POSITIVE, NEGATIVE):
            out.append(answer)
    return out


def _where(space: Space, answer: Answer) -> str:
    return f"{place(space.shape)}, {answer.kind}"


def _valid(examiner: Examiner, space: Space, found: object, where: str, method: str) -> tuple[Labels, Floats]:
    """Labels of an output, and its counts; those of an output that enumerate listed are known."""
    labels = examiner.labels(found, where, method)
    if space.complete:
        known = space.index.get(labels.tobytes())
        cause = "a constraint that the search forgets"
        expected = f"{method} to give an output that enumerate lists"
        examiner.insist("infeasible output", known is not None, where, expected, labels, cause)
        return labels, space.counts[known]
    return labels, examiner.parts(labels, space.shape, space.n_parts, given_by=method)


def _bound(examiner: Examiner, space: Space, answer: Answer) -> None:
    where = _where(space, answer)
    found = examiner.pair("argmax_bound", "argmax_bound", where, answer.theta, space.shape, gives="(labels, bound)")
    examiner.finite(float(found[1]), where, "argmax_bound")
    _, mu = _valid(examiner, space, found[0], where, "argmax_bound")
    best = max(float(space.scores(answer.theta).max()), float(mu @ answer.theta))
    cause = "a bound of part of the problem, or the score of the labels instead of a bound"
    ok = found[1] >= best - tolerance(best)
    examiner.expect("argmax_bound", ok, where, f"a bound that no output exceeds: at least {best:.9g}", float(found[1]), cause)


def _constrained(examiner: Examiner, space: Space, answer: Answer) -> None:
    where, rule = _where(space, answer), "argmax_constrained"
    for rows, limits, allowed in _row_cases(examiner, space, answer):
        found = examiner.call(rule, where, answer.theta, space.shape, rows, limits)
        if found is None:
            expected, cause = f"an output: {len(allowed)} known ones satisfy A mu <= b", "a search that gives up too early"
            examiner.expect(rule, not len(allowed), where, expected, "None", cause)
            continue
        score = _kept_score(examiner, space, found, (answer.theta, rows, limits), where, rule)
        best = float(allowed.max(initial=-np.inf))
        cause = "the best output is filtered afterwards instead of searched for among those allowed"
        expected = f"an allowed output with the score {best:.9g}"
        examiner.expect(rule, score >= best - tolerance(score), where, expected, f"{score:.9g}", cause)


def _row_cases(examiner: Examiner, space: Space, answer: Answer) -> Iterator[tuple[Floats, Floats, Floats]]:
    """(A, b, scores of the known outputs with A mu <= b) for one row and two, that rule out none, some and all outputs."""
    values = space.scores(answer.theta)
    for n_rows in (1, 2):
        rows = examiner.rng.integers(-2, 3, (n_rows, space.n_parts)).astype(np.float64)
        sides = rows @ space.counts.T  # (n_rows, outputs)
        steps = [np.unique(side) for side in sides]
        for kind in ("none", "some", "all"):
            # between two attained values, so that rounding decides nothing
            limits = np.array([_limit(examiner, step, kind) for step in steps])
            yield rows, limits, values[(sides <= limits[:, None]).all(axis=0)]


def _limit(examiner: Examiner, steps: Floats, kind: str) -> float:
    if kind == "none":
        return float(steps[0]) - 1.0
    if kind == "all" or len(steps) == 1:
        return float(steps[-1]) + 1.0
    k = int(examiner.rng.integers(len(steps) - 1))
    return float(steps[k] + steps[k + 1]) / 2


def _kept_score(
    examiner: Examiner, space: Space, found: object, given: tuple[Scores, Floats, Floats], where: str, rule: str
) -> float:
    """The score of labels that satisfy the rows; else the case ends."""
    theta, rows, limits = given
    labels, mu = _valid(examiner, space, found, where, rule)
    kept = (rows @ mu <= limits).all()
    cause = "the rows are ignored, or taken as >="
    examiner.insist(
        rule, kept, where, f"A mu <= b with b = {brief(limits)}", f"{brief(labels)} with A mu = {brief(rows @ mu)}", cause
    )
    return float(mu @ theta)


def _constrained_bound(examiner: Examiner, space: Space, answer: Answer) -> None:
    where, rule = _where(space, answer), "argmax_constrained_bound"
    for rows, limits, allowed in _row_cases(examiner, space, answer):
        found = examiner.pair(rule, rule, where, answer.theta, space.shape, rows, limits, gives="(labels | None, bound)")
        bound = float(found[1])
        cause = "exp or log without taking the largest score out first, or inf - inf"
        examiner.insist("NaN", not np.isnan(bound), where, f"{rule} to give a number as the bound", bound, cause)
        best = float(allowed.max(initial=-np.inf))
        if found[0] is not None:
            best = max(best, _kept_score(examiner, space, found[0], (answer.theta, rows, limits), where, rule))
        cause = "the score of the labels instead of a bound, or (None, -inf) given before it is proven"
        expected = f"a bound that no allowed output exceeds: at least {best:.9g}"
        ok = best == -np.inf or bound >= best - tolerance(best)
        examiner.expect(rule, ok, where, expected, bound, cause)


def _relaxed(examiner: Examiner, space: Space, answer: Answer) -> None:
    where = _where(space, answer)
    found = examiner.call("argmax_relaxed", where, answer.theta, space.shape)
    mu, scores = examiner.numbers(found, space.n_parts, where, "argmax_relaxed"), space.scores(answer.theta)
    _as_good(examiner, space, mu, answer, float(scores.max()), where, "argmax_relaxed", "output")


def _as_good(examiner: Examiner, space: Space, mu: Floats, answer: Answer, best: float, where: str, rule: str, what: str) -> None:
    """A relaxed point scores at least as much as the best output, and satisfies the rows of `polytope`, if there are any."""
    value = float(mu @ answer.theta)
    cause = "it minimises, stops early, or the relaxation cuts off an output"
    ok = value >= best - _LOOSE * max(1.0, abs(value))
    examiner.expect(rule, ok, where, f"a value of at least the best {what}'s {best:.9g}", f"{value:.9g}", cause)
    if "polytope" not in examiner.has:
        return
    rows, lower, upper = examiner.call("polytope", where, space.shape)
    values, slack = rows @ mu, _LOOSE * max(1.0, float(np.abs(mu).max(initial=0.0)))
    ok = (values >= np.asarray(lower) - slack).all() and (values <= np.asarray(upper) + slack).all()
    cause = "another polytope than that of `polytope`, or a solver that stops before it is feasible"
    examiner.expect(rule, ok, where, "a point within the rows of polytope(shape)", mu, cause)


def _relaxed_constrained(examiner: Examiner, space: Space, answer: Answer) -> None:
    where, rule = _where(space, answer), "argmax_relaxed_constrained"
    for rows, limits, allowed in _row_cases(examiner, space, answer):
        found = examiner.call(rule, where, answer.theta, space.shape, rows, limits)
        if found is None:
            expected = f"a point: {len(allowed)} known outputs satisfy A mu <= b"
            examiner.expect(rule, not len(allowed), where, expected, "None", "rows taken as >=, or a solver that gives up")
            continue
        mu = examiner.numbers(found, space.n_parts, where, rule)
        excess = float((rows @ mu - limits).max())
        kept = excess <= _LOOSE * max(1.0, float(np.abs(limits).max()), float(np.abs(mu).max(initial=0.0)))
        examiner.expect(rule, kept, where, "A mu <= b", f"A mu above b by {excess:.3g}", "the rows are ignored, or taken as >=")
        _as_good(examiner, space, mu, answer, float(allowed.max(initial=-np.inf)), where, rule, "allowed output")


def _per_loss(examiner: Examiner, space: Space, answer: Answer) -> None:
    where, rule = _where(space, answer), "argmax_per_loss"
    costs = examiner.rng.integers(0, 3, space.n_parts).astype(np.float64)
    found = examiner.call(rule, where, answer.theta, costs, space.shape)
    triple = isinstance(found, tuple) and len(found) == 3 and len({len(x) for x in found}) == 1
    examiner.insist(rule, triple, where, "(values, best, labels), equally many of each", found, "see the signature")
    values, best, outputs = found
    losses, scores = space.counts @ costs, space.scores(answer.theta)
    wanted = {float(v): float(scores[losses == v].max()) for v in np.unique(losses)}
    cause = "a value that no output has, or one forgotten"
    given = [float(v) for v in values]
    ok = given == sorted(set(given)) and (given == list(wanted) or (not space.complete and set(given) >= set(wanted)))
    examiner.insist(rule, ok, where, f"the values {brief(list(wanted))}, ascending", brief(given), cause)
    for v, b, y in zip(given, best, outputs, strict=True):
        labels, mu = _valid(examiner, space, y, where, rule)
        least = wanted.get(v, -np.inf)
        fits = abs(mu @ costs - v) < 1e-9 and abs(mu @ answer.theta - b) <= tolerance(b) and b >= least - tolerance(b)
        expected = f"at loss {v:g} an output with the score {least:.9g}"
        came = f"best {float(b):.9g}; {brief(labels)} has the loss {mu @ costs:g} and the score {mu @ answer.theta:.9g}"
        examiner.expect(rule, fits, where, expected, came, "a table that is traced back wrongly")


def _product(examiner: Examiner, space: Space, answer: Answer) -> None:
    where, rule = _where(space, answer), "argmax_product"
    costs = examiner.rng.integers(0, 3, space.n_parts).astype(np.float64)
    offsets = np.array([float(examiner.rng.normal()) + 1.0, float(examiner.rng.integers(2))])
    found = examiner.call(rule, where, answer.theta, costs, offsets, space.shape)
    labels, mu = _valid(examiner, space, found, where, rule)
    all_counts = np.vstack((space.counts, mu))
    values = np.maximum(0.0, offsets[0] + all_counts @ answer.theta) * (offsets[1] + all_counts @ costs)
    cause = "offsets left out, or both factors negative (their product is positive, but the first must count as 0)"
    ok = values[-1] >= values.max() - tolerance(values)
    examiner.expect(rule, ok, where, f"the product {values.max():.9g}", f"{brief(labels)} with {values[-1]:.9g}", cause)


def _marginals(examiner: Examiner, space: Space, answer: Answer) -> None:
    examine_marginals(examiner, space, answer, _where(space, answer))


def _kbest(examiner: Examiner, space: Space, answer: Answer) -> None:
    where, rule, n = _where(space, answer), "kbest", len(space.labels)
    top = np.sort(space.scores(answer.theta))[::-1]
    for k in (1, 3, n + 2) if space.complete and n <= 300 else (1, 3):
        found = examiner.call(rule, where, answer.theta, space.shape, k)
        examiner.insist(rule, isinstance(found, list), where, "a list of labels", found, "see the signature")
        pairs = [_valid(examiner, space, y, where, rule) for y in found]
        distinct = len({y.tobytes() for y, _ in pairs}) == len(pairs)
        examiner.expect(rule, distinct, where, f"{k} different outputs", "the same one twice", "two derivations of one output")
        wanted = min(k, n) if space.complete else k
        right = len(pairs) == wanted or (not space.complete and len(pairs) < k)
        examiner.insist(rule, right, where, f"{wanted} outputs for k = {k}", len(pairs), "fewer only if there are fewer")
        scores = np.array([float(mu @ answer.theta) for _, mu in pairs])
        ordered = (np.diff(scores) <= tolerance(scores)).all()
        examiner.expect(rule, ordered, where, "the best first", scores, "not sorted by score")
        m = min(len(scores), len(top))
        ok = (scores[:m] >= top[:m] - tolerance(top)).all()
        examiner.expect(rule, ok, where, f"the {m} best scores {brief(top[:m])}", scores, "outputs are pruned too early")


def _project(examiner: Examiner, space: Space, answer: Answer) -> None:
    """mu is the nearest point z of the hull iff <point - mu, v - mu> <= 0 for each vertex v (and mu lies in the hull)."""
    where, rule, point = _where(space, answer), "project", answer.theta
    if answer.kind == OFFSET:
        return  # the nearest point depends on digits that squares of 1e8 do not have
    mu = examiner.numbers(examiner.call(rule, where, point, space.shape), space.n_parts, where, rule)
    violation = float(((space.counts - mu) @ (point - mu)).max())
    tol = 1e-8 * max(1.0, float((space.counts @ np.abs(point - mu)).max()))
    cause = "too few iterations, or the nearest point of a larger or a smaller set"
    examiner.expect(rule, violation <= tol, where, "<point - mu, v - mu> <= 0 for every output v", f"{violation:.3g}", cause)
    for c in (point - mu, examiner.rng.normal(size=space.n_parts)) if examiner.oracle.exact else ():
        best = examiner.parts(
            examiner.labels(examiner.call("argmax", where, c, space.shape), where, "argmax"), space.shape, len(c)
        )
        ok = c @ mu <= c @ best + 1e-6 * (1.0 + np.abs(c) @ np.abs(mu))
        expected = f"a point that no direction leads further to than its best output, {c @ best:.9g}"
        examiner.expect("project: point of the hull", ok, where, expected, f"{c @ mu:.9g}", cause)
    if (residual := space.outside_hull(mu)) is None:
        examiner.skip("project: point of the hull", "too many outputs, or they are not all known")
        return
    examiner.expect(rule, residual <= 1e-7, where, "a point of the convex hull of all outputs", f"distance {residual:.3g}", cause)


def _polytope(examiner: Examiner, space: Space, answer: Answer) -> None:
    where, rule = place(space.shape), "polytope"
    rows, lower, upper = examiner.call(rule, where, space.shape)
    values = rows @ space.counts.T
    ok = (values >= np.asarray(lower)[:, None] - 1e-9).all() and (values <= np.asarray(upper)[:, None] + 1e-9).all()
    cause = "a row that cuts off an output, or lower and upper swapped"
    examiner.expect(rule, ok, where, "lower <= A mu(y) <= upper for every output", "a row that some output breaks", cause)


RULES: dict[str, Callable[[Examiner, Space, Answer], None]] = {
    "argmax_bound": _bound,
    "argmax_constrained": _constrained,
    "argmax_constrained_bound": _constrained_bound,
    "argmax_relaxed": _relaxed,
    "argmax_relaxed_constrained": _relaxed_constrained,
    "argmax_per_loss": _per_loss,
    "argmax_product": _product,
    "marginals": _marginals,
    "kbest": _kbest,
    "project": _project,
    "project_cliques": examine_cliques,
    "polytope": _polytope,
}
