"""The core: the protocols that people extend, and what all share: sparse vectors, weights, packed scores, results."""

from structpred.runtime.moved import leave_behind

leave_behind(
    __name__,
    {
        "structpred.rows": ("linear_task", "multiclass_loss", "scalar_loss"),
        "structpred.runtime": ("discovery",),
        "structpred.task": (
            "added_scores:instance_subset", "callback_task", "function_space", "inference", "partial_task", "process_oracle",
            "regret", "steps", "taken:instance_subset", "task", "task_checks", "terms:steps", "two_ways:score_consistency",
        ),
        "structpred.layers": ("augmented:surrogates",),
        "structpred.task.fast": ("marginal_blocks", "moves:update_rules", "part_steps", "welds"),
        "structpred.trainers.blocks": ("part_identity:corner_spaces",),
        "structpred.text": ("markup", "suggestions", "tables"),
    },
)  # fmt: skip
