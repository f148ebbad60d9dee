"""What a user may have meant by a name that is not known."""

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from structpred.errors import ParameterError

Entry = TypeVar("Entry")

_PASSES = dict.fromkeys(("epochs", "n_epochs", "iterations", "max_iterations", "max_epochs", "n_iter"), "max_iter")
_LOG_LOSS = "'lbfgs' or 'oeg': a conditional random field is the log loss"
#: setting -> a word of the field, or of another library, and what does that here
SYNONYMS: Mapping[str, Mapping[str, str]] = {
    "parameter": {
        **_PASSES, "algorithm": "trainer", "optimizer": "trainer", "solver": "trainer", "c2": "C = 1 / (2 c2)",
        "c1": "regulariser='l1'", "class_weight": "loss=LabelCosts(matrix), what wrong labels cost; or sample_weight in fit",
    },
    "option": {
        **{f"--{name.replace('_', '-')}": "--max-iter" for name in _PASSES}, "--algorithm": "--trainer", "--c2": "-C 1/(2 c2)",
        "--optimizer": "--trainer", "--c1": "--regulariser l1", "--penalty": "--regulariser", "--features": "--template",
    },
    "trainer": {
        "crf": _LOG_LOSS, "l2sgd": "'sgd' with surrogate 'log'", "ap": "'perceptron', which averages",
        "adam": "'sgd' (Adam itself trains decision models)", "svm": "'bcfw'", "ssvm": "'bcfw'", "l-bfgs": "'lbfgs'",
    },
    "surrogate": {"crf": "'log'", "hinge": "'margin'", "svm": "'margin'", "nll": "'log'"},
    "constraints": {"bio": "'iob2'", "iob": "'iob2'", "bioes": "'iobes'", "bilou": "'iobes', with E and S for L and U"},
    "loss": {"mse": "a regressor of the costs, regressor=Ridge(), or LinearRegressor for numbers",
        "blackbox": "structpred.layers.BlackBoxLayer, an object", "log": "surrogate 'log'", "crf": "surrogate 'log'"},
    "attribute": {"predict_proba": "a matter of the log loss: surrogate='logistic', or 'softmax' for three or more classes",
        "predict_marginals": "predict_marginals, after training with the log loss (trainer='lbfgs' or 'oeg')"},
}  # fmt: skip


def synonym(setting: str, name: object) -> str:
    """A closing part for a message about a name that another library has: what does the same here; nothing for other names.

    >>> synonym("option", "--epochs"), synonym("trainer", "sgd")
    ('; here that is --max-iter', '')
    """
    here = SYNONYMS.get(setting, {}).get(str(name).lower())
    return f"; here that is {here}" if here else ""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A closing part for a message about an unknown name: the nearest known names; nothing where none is near.

    >>> did_you_mean("trian", ["train", "predict"]), did_you_mean("x", ["train"])
    ("; did you mean 'train'?", '')
    >>> did_you_mean("conll200", ["conll2000", "columns", "conll2009"])
    "; did you mean 'conll2000' or 'conll2009'?"
    """
    close = difflib.get_close_matches(name[:100], list(known), n=4)
    nearness = [difflib.SequenceMatcher(None, one, name[:100]).ratio() for one in close]
    nearest = sorted(repr(one) for one, near in zip(close, nearness, strict=True) if near == nearness[0])
    return f"; did you mean {' or '.join(nearest)}?" if nearest else ""


def named(setting: str, name: Any, known: Mapping[str, Entry], others: str) -> Entry:
    """The entry of that name; ParameterError, with the nearest names, where there is none. others: what else the setting takes.

    >>> named("loss", "haming", {"hamming": 1}, " or an object")
    Traceback (most recent call last):
    ...
    structpred.errors.ParameterError: loss: expected one of hamming or an object, got 'haming'; did you mean 'hamming'?
    """
    if not isinstance(name, str) or name not in known:
        hint = synonym(setting, name) or did_you_mean(str(name), known)
        raise ParameterError(f"{setting}: expected one of {', '.join(known)}{others}, got {name!r}{hint}")
    return known[name]
