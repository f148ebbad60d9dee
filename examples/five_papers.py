"""Slack rescaling, learnt weights of feature groups, known signs and partial labels in one model, under one gap.

Labels that nobody gave are completed in rounds, which no bound covers: the problem is not convex. With the labels that the model
of the rounds predicts in their place it is, and the gap is that of this problem.
"""

from itertools import product

from structpred.models import ChainLabeler
from structpred.trainers.cccp import CCCP
from structpred.trainers.corrective import Corrective

TAGS = {"the": "DET", "a": "DET", "cat": "NOUN", "dog": "NOUN", "sees": "VERB", "likes": "VERB"}
SIGNS = {"word:the -> DET": 1, "transition DET -> VERB": -1}


def main() -> None:
    """Train on sentences of which every other one lacks a tag, and print what was learnt and how near the optimum it is."""
    sentences = [[one, "cat", verb, other, "dog"] for one, verb, other in product(("the", "a"), ("sees", "likes"), ("the", "a"))]
    X = [[{"word": word, "last": word[-1]} for word in words] for words in sentences]
    y: list[list[str | None]] = [[TAGS[word] for word in words] for words in sentences]
    for tags in y[::2]:
        tags[2] = None

    settings = {"surrogate": "slack", "regulariser": "mkl", "signs": SIGNS, "C": 10.0, "max_iter": 200, "tol": 0.01}
    rounds = ChainLabeler(trainer=CCCP(Corrective()), missing="_", **settings).fit(X, y)
    guessed = rounds.predict(X)
    whole = [[tag or guess for tag, guess in zip(*pair, strict=True)] for pair in zip(y, guessed, strict=True)]
    model = ChainLabeler(trainer="corrective", **settings).fit(X, whole)

    print("completed as they were:", whole == [[TAGS[word] for word in words] for words in sentences])
    print("signs kept:", bool((model.signs_ * model.coef_).min() >= 0.0))
    print("gap:", f"{100 * (model.certificate_.relative_gap or 0.0):.3f} %")
    print("groups:", ", ".join(f"{name} {norm:.2f}" for name, norm in zip(model.group_names_, model.group_norms_, strict=True)))


if __name__ == "__main__":
    main()
