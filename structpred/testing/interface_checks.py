"""Checks of what scikit-learn's tools rely on: parameters, clones, texts, tags, copies."""

import inspect
import pickle
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from structpred.testing.check_cases import DoesNotApplyError, error_of, expect, fitted, fresh, needs_method, numbers, same_model


def check_no_attributes_set_in_init(estimator: Any) -> None:
    """The constructor stores its parameters and nothing else."""
    names = set(estimator.get_params(deep=False))
    extra = set(vars(fresh(estimator))) - names
    expect(not extra, f"after construction there is also {sorted(extra)}")


def check_parameters_default_constructible(estimator: Any) -> None:
    """Every parameter has a default, and the constructor stores defaults as they are."""
    required = [p.name for p in inspect.signature(type(estimator)).parameters.values() if p.default is p.empty]
    if required:
        raise DoesNotApplyError(f"the constructor requires {required}")
    made = type(estimator)()
    for name, parameter in inspect.signature(type(estimator)).parameters.items():
        expect(getattr(made, name) is parameter.default, f"{name} is stored as {getattr(made, name)!r}")


def check_get_params_invariance(estimator: Any) -> None:
    """get_params gives the stored objects themselves, and the shallow ones are among the deep ones."""
    shallow, deep = estimator.get_params(deep=False), estimator.get_params(deep=True)
    expect(set(shallow) <= set(deep), "shallow parameters are missing from the deep ones")
    expect(all(getattr(estimator, name) is value for name, value in shallow.items()), "a parameter is a copy")


def check_set_params(estimator: Any) -> None:
    """set_params changes what it names, returns the estimator, and refuses names that there are not."""
    made = fresh(estimator)
    before = made.get_params(deep=False)
    name = next(iter(before))
    expect(made.set_params(**{name: before[name]}) is made, "set_params returns something else than the estimator")
    expect(made.get_params(deep=False) == before, "setting a parameter to its value changed another")
    error_of(lambda: made.set_params(no_such_parameter=1))


def check_estimator_cloneable(estimator: Any) -> None:
    """clone gives an estimator with equal parameters that is not fitted."""
    from sklearn.base import clone

    copy = clone(fitted(estimator))
    expect(repr(copy) == repr(estimator), "the clone has other parameters")
    expect(not [name for name in vars(copy) if name.endswith("_") and not name.startswith("_")], "the clone is fitted")


def check_estimator_repr(estimator: Any) -> None:
    """repr names the class, before and after fit."""
    for one in (estimator, fitted(estimator)):
        expect(type(estimator).__name__ in repr(one), f"repr is {one!r}")


def check_estimator_html_repr(estimator: Any) -> None:
    """The picture that notebooks show can be drawn, before and after fit."""
    from sklearn.utils import estimator_html_repr

    for one in (estimator, fitted(estimator)):
        expect(type(estimator).__name__ in estimator_html_repr(one), "the HTML does not name the class")


def check_estimator_tags(estimator: Any) -> None:
    """The tags say that X is not a table, that y is required, and that scikit-learn must not validate either."""
    from sklearn.utils import get_tags

    tags = get_tags(estimator)
    expect(not tags.input_tags.two_d_array, "the tags say that X is a 2-d array")
    expect(tags.target_tags.required, "the tags say that y may be left out")
    expect(tags.no_validation, "the tags say that scikit-learn may validate X and y")


def check_estimators_unfitted(estimator: Any) -> None:
    """Before fit, predict and score raise scikit-learn's NotFittedError."""
    from sklearn.exceptions import NotFittedError

    X, y = numbers()
    for call in (lambda: fresh(estimator).predict(X), lambda: fresh(estimator).score(X, y)):
        expect(isinstance(error_of(call), NotFittedError), "the error is no NotFittedError")


def check_fit_returns_self(estimator: Any) -> None:
    """Fit returns the estimator."""
    made = fresh(estimator)
    expect(made.fit(*numbers()) is made, "fit returns something else")


def check_dont_overwrite_attributes(estimator: Any) -> None:
    """Fit leaves the parameters alone, and what it adds ends or begins with an underscore."""
    made = fresh(estimator)
    before = made.get_params(deep=False)
    made.fit(*numbers())
    for name, value in made.get_params(deep=False).items():
        expect(value is before[name], f"fit changed {name} from {before[name]!r} to {value!r}")
    public = [name for name in vars(made) if name not in before and not name.endswith("_") and not name.startswith("_")]
    expect(not public, f"fit added {public}")


def check_dict_unchanged(estimator: Any) -> None:
    """Predict and score change no attribute."""
    X, y = numbers()
    made = fitted(estimator)
    before = {name: pickle.dumps(value) for name, value in vars(made).items()}
    made.predict(X)
    made.score(X, y)
    changed = [name for name, value in vars(made).items() if before.get(name) != pickle.dumps(value)]
    expect(not changed, f"predict or score changed {changed}")


def check_fitted_attributes(estimator: Any) -> None:
    """After fit there are classes_, with every label of y once, and n_features_in_."""
    X, y = numbers()
    made = fitted(estimator, X, y)
    expect(sorted(made.classes_) == sorted({label for labels in y for label in labels}), f"classes_ is {made.classes_}")
    expect(made.n_features_in_ == X[0].shape[1], f"n_features_in_ is {made.n_features_in_}")


def check_estimators_pickle(estimator: Any) -> None:
    """A pickled model is the same model; so is a pickled estimator before fit."""
    made = fitted(estimator)
    expect(same_model(made, pickle.loads(pickle.dumps(made)), numbers(seed=1)[0]), "the copy is another model")
    expect(repr(pickle.loads(pickle.dumps(fresh(estimator)))) == repr(estimator), "the copy has other parameters")


def check_estimators_joblib(estimator: Any) -> None:
    """A model dumped by joblib is the same model, read into memory and memory-mapped."""
    import joblib

    made = fitted(estimator)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.joblib"
        joblib.dump(made, path)
        for mode in (None, "r"):
            copy = joblib.load(path, mmap_mode=mode)
            expect(same_model(made, copy, numbers(seed=1)[0]), f"the copy (mmap_mode={mode!r}) is another model")
            del copy  # else its file cannot be removed everywhere


def check_save_load(estimator: Any) -> None:
    """A saved and loaded model has the same weights and predicts the same."""
    needs_method(estimator, "save")
    made = fitted(estimator)
    with tempfile.TemporaryDirectory() as folder:
        made.save(Path(folder) / "model")
        expect(same_model(made, type(estimator).load(Path(folder) / "model"), numbers(seed=1)[0]), "the copy is another model")


def check_weights_are_finite(estimator: Any) -> None:
    """The weights after fit are finite numbers."""
    made = fitted(estimator)
    needs_method(made, "coef_")
    expect(np.isfinite(made.coef_).all(), "there are weights that are not finite")
