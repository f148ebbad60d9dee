# mypy: ignore-errors
"""The updates of online trainers, for compiled calls over many instances: one function whatever the structure is.

rule, limits and state are those of `update_rules.UpdateRule`. The order of operations is that of the trainers' `update`.
"""

import numpy as np

from structpred.core._sparse_kernels import add_into, add_into_both, squared_norm, weighted_square
from structpred.runtime.jit import njit
from structpred.task.fast.update_rules import CONFIDENT, CONSTANT, MARGIN, PASSIVE, PASSIVE_CAPPED
from structpred.task.task_checks import TOLERANCE


@njit(cache=True, nogil=True, borrows=True)
def doubted(margin, product):
    """Whether a step contradicts itself, so that the plain update has to look at it.

    margin: loss_weight * loss. product: <scaled weights, difference>.
    """
    return margin - product < -TOLERANCE * (1.0 + margin)


@njit(cache=True, nogil=True, borrows=True, error_model="numpy")
def coefficient(rule, limit, val, loss, violation):
    """(whether the weights change, what the difference is multiplied by)."""
    formula, _, _, _, roots, _ = rule
    if formula == CONSTANT:
        return val.shape[0] > 0, limit
    square = squared_norm(val)
    if formula == MARGIN:
        return violation > 0.0 and square > 0.0, min(limit, violation / square)
    changed = loss > 0.0 and square > 0.0
    cost = violation + (np.sqrt(loss) if roots else 1.0)
    if formula == PASSIVE:
        return changed, cost / square
    if formula == PASSIVE_CAPPED:
        return changed, min(limit, cost / square)
    return changed, cost / (square + 0.5 / limit) if limit != 0.0 else 0.0


@njit(cache=True, nogil=True, borrows=True, error_model="numpy")
def move_confident(v, variance, limit, softness, idx, val, loss, violation):
    """The step of AROW, of weights and variances; returns whether there is one."""
    if not (loss > 0.0 and limit > 0.0 and val.shape[0] > 0):
        return False
    gamma = softness / limit
    alpha = (violation + np.sqrt(loss)) / (weighted_square(variance, idx, val) + gamma)
    for k in range(idx.shape[0]):
        j = idx[k]
        v[j] += alpha * (variance[j] * val[k])
        variance[j] = 1.0 / (1.0 / variance[j] + val[k] * val[k] / gamma)
    return True


@njit(cache=True, nogil=True, borrows=True)
def apply_update(rule, limit, state, idx, val, loss, loss_weight, product):
    """One update by a step that is not doubted: its sorted difference, its loss and <scaled weights, difference>.

    Returns whether the weights changed.
    """
    formula, lam, constant, slope, _, softness = rule
    v, u, variance, factor, mass, scaled_mass, steps, offsets = state
    violation = loss_weight * loss - product
    if formula == CONFIDENT:
        changed = move_confident(v, variance, limit, softness, idx, val, loss, violation)
    else:
        changed, coef = coefficient(rule, limit, val, loss, violation)
        if changed and u.shape[0] > 0:
            add_into_both(v, u, idx, val, coef, coef * scaled_mass[()])
        elif changed:
            add_into(v, idx, val, coef)
    k = 0
    if lam != 0.0:
        k = steps[()] + 1
        steps[()] = k
        offsets[()] += limit * (loss_weight * loss)
        factor[()] = 1.0 / (lam * k)
    rho = constant + slope * k
    if rho != 0.0:
        scaled_mass[()] += rho * factor[()]
        mass[()] += rho
    return changed
