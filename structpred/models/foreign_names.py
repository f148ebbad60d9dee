"""Settings and methods by the names that they have in other libraries."""

import inspect
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from structpred.errors import ParameterError
from structpred.text.suggestions import SYNONYMS, synonym


class ForeignNames:
    """A parent of estimators that answers such names with ours."""

    def __new__(cls, *settings: Any, **named: Any) -> Self:
        """An estimator without settings yet. ParameterError for a setting that has its name in another library."""
        for name in SYNONYMS["parameter"].keys() & named.keys() - inspect.signature(cls.__init__).parameters.keys():
            raise ParameterError(f"{cls.__name__} has no setting {name!r}{synonym('parameter', name)}")
        return super().__new__(cls)

    if not TYPE_CHECKING:  # a checker would let any name pass

        def __getattr__(self, name: str) -> Any:
            kind = type(self)
            if name == "predict_proba" and hasattr(kind, name):
                raise AttributeError(
                    "predict_proba needs the log loss: surrogate='logistic', or 'softmax' for three or more classes"
                )
            if name == "predict_proba" and hasattr(kind, "predict_marginals"):
                here = "predict_marginals gives probabilities, after training with the log loss (trainer='lbfgs' or 'oeg')"
                raise AttributeError(f"{kind.__name__} has no predict_proba: {here}")
            return getattr(super(), "__getattr__", partial(object.__getattribute__, self))(name)
