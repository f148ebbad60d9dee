"""Projections, a family a file: simplices, balls, cones, a box with an equality, marginals of trees, the hull of outputs."""

from structpred.runtime.moved import leave_behind

leave_behind(
    __name__,
    {
        __name__: (
            "capped_simplex:simplex", "topk_simplex:simplex", "group_ball:balls", "l1_ball:balls", "l2_ball:balls",
            "monotone_cone:cones", "sign_cone:cones", "chain_marginals:tree_marginals",
        )
    },
)  # fmt: skip
