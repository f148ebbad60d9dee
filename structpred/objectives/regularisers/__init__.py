"""Regularisers, a family a file. A new file here is all that a new one needs."""

from structpred.runtime.moved import leave_behind

leave_behind(
    __name__,
    {
        "structpred.objectives": ("names",),
        __name__: (
            "lasso:l1", "group_ball:group_lasso", "sparse_group_lasso:group_lasso", "elastic_net_mkl:mkl", "lp_mkl:mkl",
            "free_intercept:l2", "sign_constraints:l2", "group_tree:named_groups", "overlapping_groups:named_groups",
        ),
    },
)  # fmt: skip
