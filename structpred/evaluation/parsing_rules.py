"""Which words of a parse are scored, and how: the rules of the CoNLL shared tasks and of Universal Dependencies."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class ParsingRules:
    """How trees are compared. The constants of this module are the official rules; `dataclasses.replace` makes others.

    name: shown with every score. scores_punctuation: whether punctuation counts in the scores; with and without it are
    shown in any case. punctuation_by_tag: a word is punctuation if its UPOS is PUNCT; otherwise if its form consists of
    characters of the Unicode categories P* only (so `$`, `+`, `=` and `<`, which are symbols, are words).
    ignores_subtypes: relations are compared up to the first colon. single_root: more than one root in a sentence, gold or
    predicted, is an error. trees_only: predictions with a cycle are an error; in gold trees they always are.
    """

    name: str
    scores_punctuation: bool
    punctuation_by_tag: bool
    ignores_subtypes: bool
    single_root: bool
    trees_only: bool

    def punctuation(self, forms: Sequence[str], upos: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Tell which words are punctuation; forms, upos: one string per word. Returns bool (n_words)."""
        if self.punctuation_by_tag:
            return np.fromiter((tag == "PUNCT" for tag in upos), np.bool_, len(upos))
        marks = {form for form in set(forms) if is_punctuation(form)}
        return np.fromiter((form in marks for form in forms), np.bool_, len(forms))

    def relation(self, label: str) -> str:
        """What is compared of a relation.

        >>> UD.relation("nsubj:pass"), CONLLX.relation("nsubj:pass")
        ('nsubj', 'nsubj:pass')
        """
        return label.split(":", 1)[0] if self.ignores_subtypes else label


# eval.pl of CoNLL-X (2006): punctuation is skipped by its form; nothing is asked of the predicted heads.
CONLLX = ParsingRules("CoNLL-X", False, False, False, False, False)
# eval07.pl of CoNLL-2007 scores every word; with its option -p it skips punctuation, found by form as in CoNLL-X.
CONLL07 = ParsingRules("CoNLL-2007", True, False, False, False, False)
CONLL07_WITHOUT_PUNCTUATION = ParsingRules("CoNLL-2007, option -p", False, False, False, False, False)
# The evaluator of CoNLL 2018 and of Universal Dependencies: every word, universal relations, well-formed trees.
UD = ParsingRules("Universal Dependencies", True, True, True, True, True)


def is_punctuation(form: str) -> bool:
    """Tell whether a form is not empty and all its characters are of a Unicode category P*.

    >>> is_punctuation("..."), is_punctuation("$"), is_punctuation("U.S.")
    (True, False, False)
    """
    return bool(form) and all(unicodedata.category(c)[0] == "P" for c in form)
