"""Stand-ins for python-crfsuite: `from structpred.compat import pycrfsuite`; models are our files, settings those of CRF.

The weights of a model file: `CRF(model_filename=...)`, by the names of sklearn-crfsuite. `load_crfsuite` reads CRFsuite's.
"""

import math
import os
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, closing
from typing import Any

from structpred.compat.crf import CRF
from structpred.compat.crf_settings import ALIASES, PARAMETERS, TrainingLog
from structpred.errors import MissingModelError, ModelFileError, ParameterError
from structpred.models.chain.labeler import ChainLabeler
from structpred.runtime.dependencies import require_installed

#: algorithm of CRFsuite -> the trainer of ours that learns such weights
_TRAINERS = {"lbfgs": "lbfgs", "l2sgd": "oeg", "ap": "perceptron", "pa": "pa", "arow": "arow"}


class Trainer:
    """Collects sequences and trains a model file, as pycrfsuite.Trainer does; `logparser` has the course of training afterwards.

    >>> import tempfile
    >>> trainer = Trainer("lbfgs", {"c2": 0.01, "feature.possible_transitions": True}, verbose=False)
    >>> trainer.append([{"w": "the"}, {"w": "dog"}], ["DET", "NOUN"])
    >>> trainer.train(tempfile.mkdtemp() + "/tagger.spz")
    """

    def __init__(self, algorithm: str = "lbfgs", params: Mapping[str, Any] | None = None, verbose: bool = True) -> None:
        self.algorithm, self.verbose, self.logparser = algorithm, verbose, TrainingLog([])
        self._settings, self._samples = dict[str, Any](), list[tuple[int, list[Any], list[Any]]]()
        self.set_params(params or {})

    def append(self, xseq: Iterable[Any], yseq: Iterable[Any], group: int = 0) -> None:
        """Add a sequence: for each token a feature dict or a list of strings, and its label."""
        self._samples.append((group, list(xseq), list(yseq)))

    def set_params(self, params: Mapping[str, Any]) -> None:
        """Set parameters by CRFsuite's names; ParameterError where it has no such parameter. `train` judges their values."""
        for name, value in params.items():
            ours = name.replace("feature.possible", "all_possible").replace("calibration.", "calibration_")
            ours = {"type": "pa_type", "feature.minfreq": "min_freq"}.get(name, ours)
            if ours not in CRF().get_params():
                raise ParameterError(f"{name}: CRFsuite has no such parameter")
            self._settings[ours] = value

    def train(self, model: str | os.PathLike[str], holdout: int = -1) -> None:
        """Train on all groups but `holdout`, and write the model. Raises what CRF.fit does."""
        crf = CRF(self.algorithm, verbose=self.verbose, model_filename=model, **self._settings)
        X, y = ([one[k] for one in self._samples if one[0] != holdout] for k in (1, 2))
        X_dev, y_dev = ([one[k] for one in self._samples if one[0] == holdout] or None for k in (1, 2))
        self.logparser = crf.fit(X, y, X_dev, y_dev).training_log_


class Tagger:
    """Labels one sequence after the other with a model file that Trainer, CRF or ChainLabeler wrote."""

    def __init__(self) -> None:
        self._crf, self._xseq = CRF(), list[Any]()

    def open(self, name: str | os.PathLike[str]) -> AbstractContextManager["Tagger"]:
        """Read a model, also as `with tagger.open(name):`; MissingModelError where there is no file."""
        if not os.path.exists(name):
            raise MissingModelError(f"{os.fspath(name)}: there is no such file")
        self._crf = CRF(model_filename=name)
        self._crf.predict([])  # reads it
        return closing(self)

    def close(self) -> None:
        """Forget the model: what is asked next is a NotFittedError."""
        self._crf = CRF()

    def labels(self) -> list[Any]:
        """The labels of the model; NotFittedError before one was opened."""
        return self._crf.predict_single([]) or self._crf.labeler_.classes_.tolist()

    def set(self, xseq: Iterable[Any]) -> None:
        """The sequence that `tag()`, `marginal` and `probability` are about."""
        self._xseq = list(xseq)

    def tag(self, xseq: Iterable[Any] | None = None) -> list[Any]:
        """The best labels of a sequence, or of the one that was set."""
        self._xseq = self._xseq if xseq is None else list(xseq)
        return self._crf.predict_single(self._xseq)

    def marginal(self, y: Any, pos: int) -> float:
        """The probability of a label at a position of the sequence."""
        return self._crf.predict_marginals_single(self._xseq)[pos][y]

    def probability(self, yseq: Iterable[Any]) -> float:
        """The probability of all labels of the sequence together: of each, given those before it."""
        order, labels, n = self.labels(), list(yseq), len(self._xseq)
        given = [labels[:t] + [None] * (n - t) for t in range(n)]
        tables = self._crf.labeler_.predict_marginals([self._xseq] * n, fixed=given) if n else []
        return math.prod(float(table[t, order.index(labels[t])]) for t, table in enumerate(tables))


def load_crfsuite(path: str | os.PathLike[str], algorithm: str = "lbfgs") -> ChainLabeler:
    """The ChainLabeler with the weights of a file that CRFsuite wrote: it takes the same features and predicts the same labels.

    Reads what python-crfsuite tells of the file: weights with six decimals, so labels may differ where two scores are as close.
    algorithm: what it was trained with, which the file does not say; with "lbfgs" and "l2sgd" there are probabilities.

    Raises MissingModelError where there is no file, ModelFileError where it is no model of CRFsuite, DependencyError without
    python-crfsuite.
    """
    algorithm = ALIASES.get(algorithm, algorithm)
    if algorithm not in PARAMETERS:
        raise ParameterError(f"algorithm: expected one of {', '.join(PARAMETERS)}, got {algorithm!r}")
    name = os.fspath(path)
    try:
        with open(name, "rb") as file:
            begins = file.read(4)
    except FileNotFoundError:
        raise MissingModelError(f"{name}: there is no such file") from None
    if begins != b"lCRF":
        raise ModelFileError(f"{name}: expected a model that CRFsuite wrote, which begins with lCRF, got {begins!r}")
    require_installed("python-crfsuite", extra="crfsuite", needed_by="reading a model of CRFsuite")
    import pycrfsuite

    from structpred.models.chain.given_weights import labeler_of_weights

    tagger = pycrfsuite.Tagger()
    try:
        with tagger.open(name):
            found = tagger.info()
    except (ValueError, AttributeError, AssertionError, OSError) as error:  # those of its parser
        raise ModelFileError(
            f"{name}: python-crfsuite cannot tell what it holds ({error!r}); is it damaged, or is there a line break in an "
            "attribute, or an arrow --> in a label?"
        ) from error
    return labeler_of_weights(
        list(found.attributes), list(found.labels), found.state_features, found.transitions, _TRAINERS[algorithm]
    )
