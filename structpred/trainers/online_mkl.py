"""Online multiple kernel learning (Martins et al. 2011, algorithm 3): which groups of features matter, learnt while training."""

from structpred.objectives.regularisers.mkl import MKL
from structpred.trainers.proximal import OnlineProximal


class OnlineMKL(OnlineProximal):
    """Online proximal descent on  lam/2 (sum_k |w_k|)^2 + sum_i p_i H_i(w): groups of features that do not help become zero.

    Parameters and errors are those of `OnlineProximal`; its algorithm 1 with this regulariser is algorithm 3, whose line 7 as
    printed lacks the factor 1/2 that equation (7) has. The weight of kernel k is beta_k = |w_k| / sum_k |w_k|.

    References
    ----------
    Martins et al. (2011), Online Multiple Kernel Learning for Structured Prediction, algorithm 3.

    Examples
    --------
    >>> from structpred.models import ChainLabeler
    >>> model = ChainLabeler(trainer=OnlineMKL(), C=10.0, max_iter=5).fit([[{"x": 1.0}, {"y": 1.0}]] * 2, [["a", "b"]] * 2)
    >>> beta = dict(zip(model.group_names_, model.report_["group_weights"][-1].tolist(), strict=True))
    >>> beta["features"] > beta["transitions"]
    True
    """

    name = "online_mkl"
    default_regulariser = MKL
