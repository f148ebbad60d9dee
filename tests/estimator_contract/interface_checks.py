"""Checks of what scikit-learn's tools rely on (parameters, clones, texts, tags, copies), and of what estimators learn and say."""

import inspect
import pickle
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from estimator_contract.input_checks import (
    DoesNotApplyError,
    error_of,
    expect,
    fitted,
    fresh,
    needs_fit_argument,
    needs_method,
    numbers,
    same,
    same_model,
)


def check_no_attributes_set_in_init(estimator: Any, X: Any, y: Any) -> None:
    """The constructor stores its parameters and nothing else."""
    names = set(estimator.get_params(deep=False))
    extra = set(vars(fresh(estimator))) - names
    expect(not extra, f"after construction there is also {sorted(extra)}")


def check_parameters_default_constructible(estimator: Any, X: Any, y: Any) -> None:
    """Every parameter has a default, and the constructor stores defaults as they are."""
    required = [p.name for p in inspect.signature(type(estimator)).parameters.values() if p.default is p.empty]
    if required:
        raise DoesNotApplyError(f"the constructor requires {required}")
    made = type(estimator)()
    for name, parameter in inspect.signature(type(estimator)).parameters.items():
        expect(getattr(made, name) is parameter.default, f"{name} is stored as {getattr(made, name)!r}")


def check_get_params_invariance(estimator: Any, X: Any, y: Any) -> None:
    """get_params gives the stored objects themselves, and the shallow ones are among the deep ones."""
    shallow, deep = estimator.get_params(deep=False), estimator.get_params(deep=True)
    expect(set(shallow) <= set(deep), "shallow parameters are missing from the deep ones")
    expect(all(getattr(estimator, name) is value for name, value in shallow.items()), "a parameter is a copy")


def check_set_params(estimator: Any, X: Any, y: Any) -> None:
    """set_params changes what it names, returns the estimator, and refuses names that there are not."""
    made = fresh(estimator)
    before = made.get_params(deep=False)
    name = next(iter(before))
    expect(made.set_params(**{name: before[name]}) is made, "set_params returns something else than the estimator")
    expect(made.get_params(deep=False) == before, "setting a parameter to its value changed another")
    error_of(lambda: made.set_params(no_such_parameter=1))


def check_estimator_cloneable(estimator: Any, X: Any, y: Any) -> None:
    """clone gives an estimator with equal parameters that is not fitted."""
    from sklearn.base import clone

    copy = clone(fitted(estimator, X, y))
    expect(repr(copy) == repr(estimator), "the clone has other parameters")
    expect(not [name for name in vars(copy) if name.endswith("_") and not name.startswith("_")], "the clone is fitted")


def check_estimator_repr(estimator: Any, X: Any, y: Any) -> None:
    """repr names the class, before and after fit."""
    for one in (estimator, fitted(estimator, X, y)):
        expect(type(estimator).__name__ in repr(one), f"repr is {one!r}")


def check_estimator_html_repr(estimator: Any, X: Any, y: Any) -> None:
    """The picture that notebooks show can be drawn, before and after fit."""
    from sklearn.utils import estimator_html_repr

    for one in (estimator, fitted(estimator, X, y)):
        expect(type(estimator).__name__ in estimator_html_repr(one), "the HTML does not name the class")


def check_estimator_tags(estimator: Any, X: Any, y: Any) -> None:
    """The tags say that X is not a table, that y is required, and that scikit-learn must not validate either."""
    from sklearn.utils import get_tags

    tags = get_tags(estimator)
    expect(not tags.input_tags.two_d_array, "the tags say that X is a 2-d array")
    expect(tags.target_tags.required, "the tags say that y may be left out")
    expect(tags.no_validation, "the tags say that scikit-learn may validate X and y")


def check_estimators_unfitted(estimator: Any, X: Any, y: Any) -> None:
    """Before fit, predict and score raise scikit-learn's NotFittedError."""
    from sklearn.exceptions import NotFittedError

    for call in (lambda: fresh(estimator).predict(X), lambda: fresh(estimator).score(X, y)):
        expect(isinstance(error_of(call), NotFittedError), "the error is no NotFittedError")


def check_fit_returns_self(estimator: Any, X: Any, y: Any) -> None:
    """Fit returns the estimator."""
    made = fresh(estimator)
    expect(made.fit(X, y) is made, "fit returns something else")


def check_dont_overwrite_attributes(estimator: Any, X: Any, y: Any) -> None:
    """Fit leaves the parameters alone, and what it adds ends or begins with an underscore."""
    made = fresh(estimator)
    before = made.get_params(deep=False)
    made.fit(X, y)
    for name, value in made.get_params(deep=False).items():
        expect(value is before[name], f"fit changed {name} from {before[name]!r} to {value!r}")
    public = [name for name in vars(made) if name not in before and not name.endswith("_") and not name.startswith("_")]
    expect(not public, f"fit added {public}")


def check_dict_unchanged(estimator: Any, X: Any, y: Any) -> None:
    """Predict and score change no attribute."""
    made = fitted(estimator, X, y)
    before = {name: pickle.dumps(value) for name, value in vars(made).items()}
    made.predict(X)
    made.score(X, y)
    changed = [name for name, value in vars(made).items() if before.get(name) != pickle.dumps(value)]
    expect(not changed, f"predict or score changed {changed}")


def check_fitted_attributes(estimator: Any, X: Any, y: Any) -> None:
    """After fit there are classes_, with every label of y once, and n_features_in_."""
    made = fitted(estimator, X, y)
    expect(sorted(made.classes_) == sorted({label for labels in y for label in labels}), f"classes_ is {made.classes_}")
    expect(made.n_features_in_ == X[0].shape[1], f"n_features_in_ is {made.n_features_in_}")


def check_estimators_pickle(estimator: Any, X: Any, y: Any) -> None:
    """A pickled model is the same model; so is a pickled estimator before fit."""
    made = fitted(estimator, X, y)
    expect(same_model(made, pickle.loads(pickle.dumps(made)), numbers(seed=1)[0]), "the copy is another model")
    expect(repr(pickle.loads(pickle.dumps(fresh(estimator)))) == repr(estimator), "the copy has other parameters")


def check_estimators_joblib(estimator: Any, X: Any, y: Any) -> None:
    """A model dumped by joblib is the same model, read into memory and memory-mapped."""
    import joblib

    made = fitted(estimator, X, y)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.joblib"
        joblib.dump(made, path)
        for mode in (None, "r"):
            copy = joblib.load(path, mmap_mode=mode)
            expect(same_model(made, copy, numbers(seed=1)[0]), f"the copy (mmap_mode={mode!r}) is another model")
            del copy  # else its file cannot be removed everywhere


def check_save_load(estimator: Any, X: Any, y: Any) -> None:
    """A saved and loaded model has the same weights and predicts the same."""
    needs_method(estimator, "save")
    made = fitted(estimator, X, y)
    with tempfile.TemporaryDirectory() as folder:
        made.save(Path(folder) / "model")
        expect(same_model(made, type(estimator).load(Path(folder) / "model"), numbers(seed=1)[0]), "the copy is another model")


def check_weights_are_finite(estimator: Any, X: Any, y: Any) -> None:
    """The weights after fit are finite numbers."""
    made = fitted(estimator, X, y)
    needs_method(made, "coef_")
    expect(np.isfinite(made.coef_).all(), "there are weights that are not finite")


def check_fit_idempotent(estimator: Any, X: Any, y: Any) -> None:
    """A second fit to the same data gives the same model."""
    made = fitted(estimator, X, y)
    expect(same_model(fitted(estimator, X, y), made.fit(X, y), X), "the second fit gave another model")


def check_fit_forgets_earlier_data(estimator: Any, X: Any, y: Any) -> None:
    """A fit after a fit to other data gives what a fit alone gives."""
    other = numbers(seed=3)
    made = fitted(estimator, X, y).fit(*other)
    expect(same_model(fitted(estimator, *other), made, other[0]), "something of the earlier data is left")


def check_determinism(estimator: Any, X: Any, y: Any) -> None:
    """With the same seed the model is the same; a global seed does not matter."""
    settings = {"random_state": 7} if "random_state" in estimator.get_params(deep=False) else {}
    one = fresh(estimator, **settings).fit(X, y)
    # the legacy generator, which is what must not matter
    state = np.random.get_state()  # noqa: NPY002
    np.random.seed(123)  # noqa: NPY002
    try:
        other = fresh(estimator, **settings).fit(X, y)
    finally:
        np.random.set_state(state)  # noqa: NPY002
    expect(same_model(one, other, X), "two fits gave two models")


def check_n_jobs(estimator: Any, X: Any, y: Any) -> None:
    """The model and the predictions do not depend on n_jobs."""
    if "n_jobs" not in estimator.get_params(deep=False):
        raise DoesNotApplyError("there is no parameter n_jobs")
    X, y = numbers(40)
    one, two = (fresh(estimator, n_jobs=n).fit(X, y) for n in (1, 2))
    expect(same_model(one, two, X), "two threads gave another model than one")


def check_score(estimator: Any, X: Any, y: Any) -> None:
    """Score is a float in [0, 1], and it is 1 where the labels are the predicted ones."""
    made = fitted(estimator, X, y)
    expect(isinstance(made.score(X, y), float), "score is not a float")
    expect(0.0 <= made.score(X, y) <= 1.0, f"score is {made.score(X, y)}")
    expect(made.score(X, made.predict(X)) == 1.0, "the score of the predictions themselves is not 1")


def check_learns(estimator: Any, X: Any, y: Any) -> None:
    """On separable data the score on the training data is well above guessing."""
    X, y = numbers(60)
    score = fitted(estimator, X, y).score(X, y)
    expect(score > 0.5, f"the score on the training data is {score:.2f}; guessing gives 0.33")


def check_methods_sample_order_invariance(estimator: Any, X: Any, y: Any) -> None:
    """Predictions do not depend on the order of the samples."""
    made, X = fitted(estimator, X, y), numbers(seed=1)[0]
    expect(same(made.predict(X[::-1])[::-1], made.predict(X)), "another order gave other labels")


def check_methods_subset_invariance(estimator: Any, X: Any, y: Any) -> None:
    """Samples one by one get the labels that they get together."""
    made, X = fitted(estimator, X, y), numbers(seed=1)[0]
    expect(same([made.predict([x])[0] for x in X], made.predict(X)), "alone a sample gets other labels")


def check_predictions_fit_the_input(estimator: Any, X: Any, y: Any) -> None:
    """There is one label per token, each of them a label of the training data; no samples give no predictions."""
    made = fitted(estimator, X, y)
    found = made.predict(X)
    expect([len(labels) for labels in found] == [len(x) for x in X], "the lengths are not those of X")
    expect(
        {label for labels in found for label in labels} <= {label for labels in y for label in labels},
        "there are labels that y does not have",
    )
    expect(len(made.predict([])) == 0, "no samples gave predictions")


def check_classifiers_str_labels(estimator: Any, X: Any, y: Any) -> None:
    """Strings come back as strings, whole and unchanged."""
    names = {"A": "a", "B": "B-LOCATION", "C": "naïve label with spaces"}
    found = fitted(estimator, X, [[names[label] for label in labels] for labels in y]).predict(X)
    expect(all(isinstance(label, str) and label in names.values() for labels in found for label in labels), "labels changed")


def check_classifiers_int_labels(estimator: Any, X: Any, y: Any) -> None:
    """Whole numbers, negative ones too, come back as whole numbers."""
    codes = [np.array([{"A": -1, "B": 0, "C": 7}[label] for label in labels]) for labels in y]
    found = fitted(estimator, X, codes).predict(X)
    expect(all(np.asarray(labels).dtype.kind == "i" for labels in found), "labels are not whole numbers")
    expect({int(label) for labels in found for label in labels} <= {-1, 0, 7}, "labels changed")


def check_classifiers_one_label(estimator: Any, X: Any, y: Any) -> None:
    """Training data with one label only give that label."""
    found = fitted(estimator, X, [["only"] * len(x) for x in X]).predict(X)
    expect(all(label == "only" for labels in found for label in labels), "there is another label")


def check_equal_length_sequences(estimator: Any, X: Any, y: Any) -> None:
    """Sequences that happen to have equal lengths are treated as any others, also as one 3-d array."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10, 3, 4))
    y = X[:, :, :2].argmax(axis=2)
    listed = fitted(estimator, list(X), [labels.tolist() for labels in y])
    expect([len(labels) for labels in listed.predict(list(X))] == [3] * 10, "predictions have other lengths")
    expect(same_model(listed, fitted(estimator, X, y), list(X)), "as one array they gave another model")


def check_single_token_sequences(estimator: Any, X: Any, y: Any) -> None:
    """Sequences of one token are fine."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(1, 4)) for _ in range(10)]
    found = fitted(estimator, X, [[int(x[0, 0] > 0)] for x in X]).predict(X)
    expect([len(labels) for labels in found] == [1] * 10, "predictions have other lengths")


def check_sample_weights_invariance(estimator: Any, X: Any, y: Any) -> None:
    """Weights of 1 are not weights."""
    needs_fit_argument(estimator, "sample_weight")
    expect(same_model(fitted(estimator, X, y), fitted(estimator, X, y, sample_weight=np.ones(len(X))), X), "it is another model")


def check_sample_weight_equivalence(estimator: Any, X: Any, y: Any) -> None:
    """A weight of 2 counts as a sample given twice: the optima agree within their certificates."""
    needs_fit_argument(estimator, "sample_weight")
    twice = [*range(len(X)), 0, 3]
    weights = np.bincount(twice).astype(float)
    found = [
        getattr(made, "certificate_", None)
        for made in (
            fitted(estimator, X, y, sample_weight=weights),
            fitted(estimator, [X[i] for i in twice], [y[i] for i in twice]),
        )
    ]
    bounds = [(c.dual, c.primal) for c in found if c is not None and c.primal is not None and c.dual is not None]
    if len(bounds) < 2:
        raise DoesNotApplyError("training gives no bounds of an optimum to compare")
    lowest, highest = max(low for low, _ in bounds), min(high for _, high in bounds)
    expect(lowest <= highest + 1e-6 * (1 + abs(highest)), f"one optimum is at least {lowest}, the other at most {highest}")


def check_marginals(estimator: Any, X: Any, y: Any) -> None:
    """Probabilities lie in [0, 1] and add up to 1 at each position."""
    needs_method(estimator, "predict_marginals")
    made = fitted(estimator, X, y)
    if not getattr(made, "probabilistic_", getattr(getattr(made, "labeler_", None), "probabilistic_", True)):
        raise DoesNotApplyError("the model is not probabilistic")
    for position in [p for sequence in made.predict_marginals(numbers(seed=1)[0]) for p in sequence]:
        values = np.array(list(position.values()) if isinstance(position, dict) else position)
        expect((values >= 0).all() and abs(values.sum() - 1) < 1e-6, f"the probabilities of a position are {values}")
