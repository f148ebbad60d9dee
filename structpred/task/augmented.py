"""A task whose scores have the costs of its loss added for good: its log loss is the softmax margin, in the same sweeps."""

from weakref import WeakKeyDictionary

from structpred.core.stand_ins import stand_in
from structpred.task.inference import Inference
from structpred.task.task import Task

_kept: "WeakKeyDictionary[Task, dict[float, Task | None]]" = WeakKeyDictionary()


def augmented(task: Task, loss_weight: float) -> Task | None:
    """The task with `loss_weight` times the part costs as fixed scores, made once; None where its features have no `with_scores`.

    With the scores theta_i = Psi_i w it has theta_i + loss_weight ell_i.
    """
    kept = _kept.setdefault(task, {})
    if loss_weight not in kept:
        add = stand_in(task.features, "with_scores", ("scores", "fixed_scores", "n_parts"))
        features = None if add is None else add([loss_weight * task.costs(i)[1] for i in range(len(task))])
        kept[loss_weight] = None if features is None else task.over(Inference(
            features, task.oracle, task.shapes, n_jobs=task.n_jobs, compiled=task.inference.compiled
        ))  # fmt: skip
    return kept[loss_weight]
