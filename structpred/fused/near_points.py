"""Proximal Newton steps for all blocks at once, where visits of one block after the other are slow: large C, rows that separate.

The maximum of  D(mu) - sum_i p_i |mu_i - centre_i|^2 / (2 tau_i)  over the blocks has weights w = w(mu), mu_i the nearest point
of its polytope to centre_i + tau_i slopes_i(w). That equation is solved for w by semismooth Newton steps, each a system that
conjugate gradients solve over what is free to move (Rockafellar 1976; Li, Sun and Toh 2018).
"""

from typing import Any

import numpy as np

from structpred.core.products import dot
from structpred.core.types import Floats
from structpred.task.fast.marginal_blocks import MarginalPoint

#: Newton steps, and steps of conjugate gradients in each; what share of the error ends either; shortest step
NEWTON, GRADIENTS, SHARE, SHORT = 10, 25, 0.1, 1e-3


def leap(blocks: Any, point: MarginalPoint, reach: float) -> bool:
    """The point moves to that maximum, or as far towards it as the dual grows; whether it got all the way.

    reach: tau in units of a block's own curvature.
    """
    aims, kernels, sets, shape = blocks.aims, blocks.kernels(), blocks.sets(point), point.table.shape
    curvature = 2.0 * aims.upper * aims.rows[3]
    taus = np.where(curvature > 0.0, reach / np.maximum(curvature, 1e-300), 0.0)
    free, still = aims.goals[:2], (aims.truth, np.zeros_like(aims.costs))
    slopes, changes = np.empty_like(aims.costs), np.empty_like(aims.costs)
    nodes, marks = np.empty_like(point.nodes), np.empty((len(taus), point.nodes.shape[1] + 1), np.int32)

    def views(w: Floats) -> tuple[Floats, Floats]:
        return w[: point.table.size].reshape(shape), w[point.table.size :].reshape(-1, 4)

    def inner(a: Floats, b: Floats) -> float:
        return 2.0 * dot(a[: point.table.size], b[: point.table.size]) + dot(a[point.table.size :], b[point.table.size :])

    def weights_of(masses: Floats) -> tuple[Floats, Floats]:
        found, losses = blocks.summed(point._replace(nodes=masses))
        return np.concatenate((found.table.ravel(), found.pairs.ravel())), losses

    def error_at(w: Floats, step: float) -> Floats:
        kernels.nearest_points(sets, taus, slopes + step * changes, views(w)[1], point.nodes, nodes, marks)
        return w - weights_of(nodes)[0]

    def solved(error: Floats) -> Floats:
        x, rest, way, first = np.zeros_like(error), -error, -error, inner(error, error)
        size = first
        for _ in range(GRADIENTS):
            image = way.copy()
            kernels.follow(aims.rows, still, sets, taus * aims.upper, marks, *views(way), *views(image))
            step = size / inner(way, image)
            x, rest = x + step * way, rest - step * image
            size, before = inner(rest, rest), size
            if size <= SHARE**2 * first:
                break
            way = rest + size / before * way
        return x

    w, losses = weights_of(point.nodes)
    start, done, changes[:] = w, 0, 0.0
    kernels.slopes_at(aims.rows, free, point.table, slopes)
    error = error_at(w, 0.0)
    while done < NEWTON and inner(error, error) > SHARE**2 * inner(w - error - start, w - error - start):
        way, step = solved(error), 1.0
        kernels.slopes_at(aims.rows, still, np.ascontiguousarray(views(way)[0]), changes)
        first, error = inner(error, way), error_at(w + way, 1.0)
        while (last := inner(error, way)) > -0.5 * first and step > SHORT:  # the convex dual of it rises there
            step *= max(0.1, first / (first - last))
            error = error_at(w + step * way, step)
        w, done = w + step * way, done + 1
        slopes += step * changes
    end, found = weights_of(nodes)
    gain, square = dot(aims.upper, found - losses) - inner(start, end - start), inner(end - start, end - start)
    if gain > 0.0:
        step = 1.0 if gain >= square else gain / square
        point.nodes[:] = nodes if step == 1.0 else point.nodes + step * (nodes - point.nodes)
        point.table[:], point.pairs[:] = views(start + step * (end - start))
    return gain >= square
