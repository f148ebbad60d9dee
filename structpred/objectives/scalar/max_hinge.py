"""The multiclass hinge of Crammer and Singer."""

from structpred.core.multiclass_loss import MulticlassLoss


class MaxHinge(MulticlassLoss):
    """phi(z; y) = max_j z_j - z_y + [j != y] (Crammer and Singer 2001; equation 21, where 1 - delta is meant).

    phi*(-alpha) = p_y - 1, p = e_y - alpha, over the simplex. `MarginRescaling` is the same with the costs of the task's loss.

    >>> MaxHinge().value([0.0, 0.5, -3.0], 0), MaxHinge().subgradient([0.0, 0.5, -3.0], 0).tolist()
    (1.5, [-1.0, 1.0, 0.0])
    """

    name = "max_hinge"
    points = 1
