"""Sequence labelling by Gaussian processes (Altun, Hofmann and Smola 2004)."""

from dataclasses import KW_ONLY, dataclass

from structpred.errors import ParameterError
from structpred.models.chain.labeler import ChainLabeler
from structpred.models.kernels.estimator import Kernelised
from structpred.objectives.log_loss import LogLoss
from structpred.trainers.problem import Surrogate, Trainer


@dataclass(eq=False, repr=False)
class GaussianProcessLabeler(Kernelised, ChainLabeler):
    """The most probable scores under a Gaussian process, given label sequences; predictions come with probabilities.

    p(y | x) is proportional to exp f(x, y), and f = <w, phi(x, y)> has a Gaussian prior whose covariance is the kernel of
    KernelChainLabeler. With f = K alpha the mode minimises (times 2C: Altun et al. 2004; C = 1/2 gives their objective)

        1/(2C) alpha' K alpha + sum_i s_i [log sum_y exp f(x_i, y) - f(x_i, y_i)].

    C K is the prior covariance: a larger C expects larger scores. In the coordinates of K = Phi Phi' this is a kernel conditional
    random field, and its gradient there is the direction alpha / C - (gold - E) in terms of alpha, E the expected counts by
    forward-backward: no step is ever multiplied by K, however badly conditioned it is. At the mode alpha = C (gold - E).

    The gap of the certificate is C/2 times the squared norm, in the metric of K, of that direction: how far alpha is
    from C (gold - E). Memory, time, X, y and precomputed kernels are as for KernelChainLabeler.

    Parameters
    ----------
    trainer : str or Trainer
        "lbfgs", or any that minimises the log loss, such as "oeg".
    C : float
        The scale of the prior covariance, C K, > 0.
    kernel : str, Kernel or callable
        As for KernelChainLabeler.
    max_iter, tol, loss, surrogate, check_every, patience, callbacks, checkpoint, resume, random_state
        As for every estimator: see `StructuredEstimator`; max_iter=200, tol=0.001 and surrogate="log" unless given.
    template, min_count, n_bits, dev_metric, constraints, n_jobs, warm_start
        As for ChainLabeler.

    Attributes
    ----------
    support_, dual_coef_, coef_
        As for KernelChainLabeler; dual_coef_ is alpha, summed up for each position and label.
    classes_, n_features_in_, certificate_, history_, n_iter_, stop_reason_, converged_, probabilistic_
        As for ChainLabeler.

    Raises
    ------
    DataError
        For a kernel that is not symmetric, positive semidefinite and finite, and a Gram matrix that does not fit into memory.
    ParameterError
        For a loss other than the log loss.

    References
    ----------
    Altun, Hofmann and Smola (2004), Gaussian process classification for segmenting and annotating sequences.

    Examples
    --------
    >>> import numpy as np
    >>> X = [np.array([[0.0], [1.0]]), np.array([[1.1], [0.1]])]
    >>> model = GaussianProcessLabeler(C=10.0).fit(X, [["low", "high"], ["high", "low"]])
    >>> model.predict_marginals([np.array([[0.05], [0.9]])])[0].round(1).tolist()
    [[0.1, 0.9], [0.9, 0.1]]
    """

    trainer: str | Trainer = "lbfgs"
    C: float = 0.5
    max_iter: int = 200
    tol: float = 0.001
    _: KW_ONLY
    surrogate: str | Surrogate | None = "log"

    def _trainer_and_surrogate(self) -> tuple[Trainer, Surrogate]:
        trainer, surrogate = super()._trainer_and_surrogate()
        if not isinstance(surrogate, LogLoss):
            raise ParameterError(
                f"surrogate: a Gaussian process has the log loss, got {self.surrogate!r}; see KernelChainLabeler"
            )
        return trainer, surrogate
