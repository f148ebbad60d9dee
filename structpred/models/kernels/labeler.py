"""Maximum-margin sequence labelling with a kernel between positions."""

from dataclasses import dataclass

from structpred.models.chain.labeler import ChainLabeler
from structpred.models.kernels.estimator import Kernelised
from structpred.trainers.problem import Trainer


@dataclass(eq=False, repr=False)
class KernelChainLabeler(Kernelised, ChainLabeler):
    """A label for each position of a sequence: kernelised emissions, linear transitions, start and stop.

    Minimises  1/2 |w|^2 + C sum_i s_i max_y [loss(y_i, y) + <w, phi(x_i, y) - phi(x_i, y_i)>]  for feature maps with

        <phi(x, y), phi(x', y')> = sum_{t, t'} [y_t = y'_t'] k(x_t, x'_t') + transitions of y and y' in common + start + stop,

    a maximum-margin Markov network (Taskar, Guestrin and Koller 2003). Its dual is over the marginals of cliques: with shares
    alpha_i of outputs, w = C sum_i s_i (phi(x_i, y_i) - E_alpha phi(x_i, y)). With the log loss it is a kernel conditional
    random field.

    The Gram matrix of the N distinct training positions is taken apart exactly, K = Phi Phi' (O(N r^2) once, r <= N its rank,
    8 N^2 bytes; DataError before anything is allocated that does not fit). Training is that of ChainLabeler on the rows of Phi:
    every trainer works, and the certificate is that of the problem with the kernel, up to 1e-10 of the largest k(x, x).
    Prediction takes k(x, support): the r training positions that span all others.

    X and y are as for ChainLabeler. For a precomputed kernel each sequence is an array (its length, n) of kernel values with all
    n training positions, in the order of training; at fit its rows together are the Gram matrix.

    Parameters
    ----------
    trainer, C, max_iter, tol, loss, surrogate, check_every, patience, callbacks, checkpoint, resume, random_state
        As for every estimator: see `StructuredEstimator`; the trainer is bcfw, max_iter=50 and tol=0.001 unless given.
    kernel : str, Kernel or callable
        "linear", "polynomial", "rbf" or "precomputed"; an object such as ``RBF(0.1)`` or ``Polynomial(3)`` from
        `structpred.models.kernels.functions`; or a function (A, B) -> array (rows of A, rows of B) of two CSR matrices.
    regulariser : None
        Only 1/2 |w|^2 is a function of the kernel; ParameterError for any other.
    template, min_count, n_bits, dev_metric, constraints, n_jobs, warm_start
        As for ChainLabeler.

    Attributes
    ----------
    support_ : ndarray (r, 2)
        Sample and position of the support in the training set.
    dual_coef_ : ndarray (r, n_classes)
        What each support position adds: the scores of position x are k(x, support) dual_coef_.
    coef_ : ndarray
        The weights in the coordinates of Phi, whose norm is that of the function; then start, stop and transitions.
    classes_, n_features_in_, certificate_, history_, n_iter_, stop_reason_, converged_, probabilistic_
        As for ChainLabeler.

    Raises
    ------
    DataError
        For a kernel that is not symmetric, positive semidefinite and finite, and a Gram matrix that does not fit into memory.

    References
    ----------
    Taskar, Guestrin and Koller (2003), Max-margin Markov networks.

    Examples
    --------
    >>> import numpy as np
    >>> X = [np.array([[0.0], [1.0]]), np.array([[1.1], [0.1]])]
    >>> model = KernelChainLabeler(kernel="rbf").fit(X, [["low", "high"], ["high", "low"]])
    >>> [labels.tolist() for labels in model.predict([np.array([[0.05], [0.9], [1.0]])])]
    [['low', 'high', 'high']]
    """

    trainer: str | Trainer = "bcfw"
    C: float = 1.0
    max_iter: int = 50
    tol: float = 0.001
