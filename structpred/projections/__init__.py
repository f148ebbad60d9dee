"""Projections, a family a file: simplices, balls, cones, a box with an equality, marginals of trees, the hull of outputs."""

from structpred.runtime.moved import leave_merged

leave_merged(
    __name__,
    {
        "simplex": ("capped_simplex", "topk_simplex"),
        "balls": ("group_ball", "l1_ball", "l2_ball"),
        "cones": ("monotone_cone", "sign_cone"),
        "tree_marginals": ("chain_marginals",),
    },
)
