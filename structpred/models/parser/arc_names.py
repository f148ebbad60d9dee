"""What the hashed features of an arc are called: the values that its templates look at, read off the sentence itself."""

import numpy as np
import numpy.typing as npt

from structpred.data.arc_templates import ArcTemplate, Atom
from structpred.data.sentences import AttributedSentences
from structpred.io.templates.arc_featurizer import ArcFeaturizer
from structpred.io.treebanks.treebank import Sentence

ROOT = "(root)"
_DISTANCES = ("1", "2", "3", "4", "5-6", "7-10", "11-20", "over 20")
_STARTS = np.array([1, 2, 3, 4, 5, 7, 11, 21])
_COUNTED = ("verbs", "punctuation", "conjunctions")


class ArcNames:
    """Names for one sentence. Two arcs with a feature of the same name share its weight."""

    def __init__(self, featurizer: ArcFeaturizer, sentence: Sentence, data: AttributedSentences) -> None:
        self.values = {name: featurizer.values(name, sentence) for name in featurizer.present}
        self.tags = [ROOT, "(unknown)", *featurizer.tags]
        self.own, self.classes, self.forms = data.tags, data.classes, sentence.forms

    def word(self, p: int) -> str:
        """The form of a word, which counts from 1."""
        return self.forms[p - 1] if p else ROOT

    def arc(self, head: int, modifier: int) -> str:
        """The arc as its two words."""
        return f"{self.word(head)} -> {self.word(modifier)}"

    def template(self, template: ArcTemplate, head: int, modifier: int) -> str:
        """The feature that a template gives the arc, such as "h.upos=VERB m.form=cat | head after, distance 2"."""
        values = [self._atom("h", atom, head) for atom in template.head] + [
            self._atom("m", a, modifier) for a in template.modifier
        ]
        told = self._property(template.arc, head, modifier)
        return " ".join(values) + (f" | {told}" if told else "")

    def between(self, place: int) -> str:
        """The feature with this place in the block of tags between the ends: [direction, tag of m, tag between, tag of h]."""
        n = len(self.tags)
        right, modifier, tag, head = np.unravel_index(place, (2, n, n, n))
        side = "after" if right else "before"
        return f"h.tag={self.tags[head]} m.tag={self.tags[modifier]} | head {side}, {self.tags[tag]} between"

    def _atom(self, end: str, atom: Atom, p: int) -> str:
        q, n = p + atom.offset, len(self.forms)
        if p == 0:  # the root, and what would be beside it
            value = ROOT if atom.offset == 0 else "(beside the root)"
        else:
            value = "(start)" if q < 1 else "(end)" if q > n else self.values[atom.attribute][q - 1]
        return f"{end}.{atom.attribute}{f'{atom.offset:+d}' if atom.offset else ''}={value}"

    def _property(self, arc: str, head: int, modifier: int) -> str:
        if not arc:
            return ""
        side = f"head {'after' if head > modifier else 'before'}"
        if arc == "direction":
            return side
        if arc == "distance":
            return f"{side}, distance {_DISTANCES[int(np.searchsorted(_STARTS, abs(head - modifier), side='right')) - 1]}"
        inside = self.classes[min(head, modifier) : max(head, modifier) - 1]
        counted = [_counted(inside, bit, name) for bit, name in enumerate(_COUNTED)]
        return f"{side}, {', '.join(counted if arc == 'between' else [counted[_COUNTED.index(arc)]])} between"


def _counted(classes: npt.NDArray[np.uint8], bit: int, name: str) -> str:
    """How many words of a class there are, as far as features tell: up to two, of conjunctions up to one."""
    most = 1 if name == "conjunctions" else 2
    n = int(((classes >> bit) & 1).sum())
    return f"{n if n < most else f'{most} or more'} {name}"
