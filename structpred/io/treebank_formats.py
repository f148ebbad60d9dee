"""Treebank formats: what each tab-separated column of a word line holds, and which rules the lines keep."""

from dataclasses import dataclass

from structpred.errors import ParameterError


@dataclass(frozen=True)
class TreebankFormat:
    """One format of treebank files: a word a line, columns parted by single tabs, a blank line after each sentence.

    columns: their names; column 0 is the ID, which counts the words from 1. form, head, deprel: the numbers of these
    columns, from 0. lemma, upos, xpos, feats: likewise, None where the format has none. open_ended: more columns may
    follow, as many on every line of a sentence. comments: lines that begin with ``#`` are comments. extended_ids: there
    are lines of multiword tokens (ID 3-4) and of empty nodes (ID 5.1), which are no words. single_root: exactly one word
    of a sentence has head 0. spaced: the columns in which a space may stand.

    Raises ParameterError for a column that is not there.

    >>> CONLL_U.columns[CONLL_U.deprel], CONLL_2009.columns[CONLL_2009.deprel]
    ('DEPREL', 'DEPREL')
    """

    name: str
    columns: tuple[str, ...]
    form: int
    head: int
    deprel: int
    lemma: int | None = None
    upos: int | None = None
    xpos: int | None = None
    feats: int | None = None
    open_ended: bool = False
    comments: bool = False
    extended_ids: bool = False
    single_root: bool = False
    spaced: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        used = [self.form, self.head, self.deprel, *self.spaced]
        used += [column for column in (self.lemma, self.upos, self.xpos, self.feats) if column is not None]
        for column in used:
            if not 0 < column < len(self.columns):
                raise ParameterError(
                    f"format {self.name}: expected columns from 1 to {len(self.columns) - 1} (0 is the ID), got {column}"
                )
        if self.head == self.deprel:
            raise ParameterError(f"format {self.name}: head and deprel are the same column {self.head}")

    @property
    def n_columns(self) -> int:
        """The number of columns, or the least number where `open_ended`."""
        return len(self.columns)


CONLL_U = TreebankFormat(
    name="conllu",
    columns=("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC"),
    form=1,
    lemma=2,
    upos=3,
    xpos=4,
    feats=5,
    head=6,
    deprel=7,
    comments=True,
    extended_ids=True,
    single_root=True,
    spaced=(1, 2, 9),
)
CONLL_X = TreebankFormat(
    name="conllx",
    columns=("ID", "FORM", "LEMMA", "CPOSTAG", "POSTAG", "FEATS", "HEAD", "DEPREL", "PHEAD", "PDEPREL"),
    form=1,
    lemma=2,
    upos=3,
    xpos=4,
    feats=5,
    head=6,
    deprel=7,
)
# The tree of CoNLL-2008 is one of the split forms (hyphenated words in parts); FORM is _ for the later parts.
CONLL_2008 = TreebankFormat(
    name="conll2008",
    columns=("ID", "FORM", "LEMMA", "GPOS", "PPOS", "SPLIT_FORM", "SPLIT_LEMMA", "PPOSS", "HEAD", "DEPREL", "PRED"),
    form=5,
    lemma=6,
    upos=3,
    xpos=7,
    head=8,
    deprel=9,
    open_ended=True,
)
CONLL_2009 = TreebankFormat(
    name="conll2009",
    columns=(
        *("ID", "FORM", "LEMMA", "PLEMMA", "POS", "PPOS", "FEAT", "PFEAT"),
        *("HEAD", "PHEAD", "DEPREL", "PDEPREL", "FILLPRED", "PRED"),
    ),
    form=1,
    lemma=2,
    upos=4,
    xpos=5,
    feats=6,
    head=8,
    deprel=10,
    open_ended=True,
)

#: the formats by name
TREEBANK_FORMATS = {one.name: one for one in (CONLL_U, CONLL_X, CONLL_2008, CONLL_2009)}
