"""spaCy: Doc to sentences and back, and its tokenizer for raw text. What its pipelines need is in annotator.py."""

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from structpred.bridges.predictions import heads_and_relations, plain_lists
from structpred.data.phrases import PhraseLabels, as_iobes
from structpred.errors import DataError, ParameterError
from structpred.io.treebanks.treebank import Sentence, Tree
from structpred.runtime.dependencies import require_installed

#: spaCy's own, which are not imported here
Doc = Any
Token = Any
Vocab = Any

_BILOU_OF = {(True, True): "U", (True, False): "B", (False, True): "L", (False, False): "I"}


def from_spacy(
    docs: Iterable[Doc], columns: str | Sequence[str] = ("text",), label: str | None = "tag_", scheme: str = "iob2"
) -> tuple[list[list[tuple[str, ...]]], list[list[str]] | None]:
    """The sentences of documents for feature templates: `ChainLabeler(template=...)`.

    Parameters
    ----------
    docs : iterable of Doc
        A document with sentence boundaries gives its sentences, another one is a sentence as a whole. Tokens of white space are
        left out, and so are sentences without other tokens.
    columns : str or list of str
        Attributes of Token that are strings: "text", "tag_", "pos_", "lemma_", "shape_", ... Templates number them from 0.
    label : str, optional
        Such an attribute, or "ents": the entities, as tags in the scheme "iob2" or "bilou". None: no labels.

    Returns
    -------
    X : list of list of tuple of str
        For each sentence a tuple for each token.
    y : list of list of str, or None
        The labels, nested alike.

    Raises
    ------
    DataError
        Naming document and token: an empty attribute, most likely because no component has set it.
    """
    if scheme not in ("iob2", "bilou"):
        raise ParameterError(f"scheme: expected iob2 or bilou, got {scheme!r}")
    names = (columns,) if isinstance(columns, str) else tuple(columns)
    X: list[list[tuple[str, ...]]] = []
    y: list[list[str]] = []
    for place, tokens in each_sentence(docs):
        X.append(rows_of(tokens, names, place))
        if label == "ents":
            # one that reaches over white space or a sentence end continues within its sentence
            begins = [token.ent_iob_ == "B" or (token.ent_iob_ == "I" and k == 0) for k, token in enumerate(tokens)]
            inside = [token.ent_iob_ in ("B", "I") and token.ent_type_ != "" for token in tokens]
            ends = [k + 1 == len(tokens) or begins[k + 1] or not inside[k + 1] for k in range(len(tokens))]
            letters = [
                _BILOU_OF[begins[k], ends[k]] if scheme == "bilou" else "B" if begins[k] else "I" for k in range(len(tokens))
            ]
            y.append([f"{letters[k]}-{token.ent_type_}" if inside[k] else "O" for k, token in enumerate(tokens)])
        elif label is not None:
            y.append([cell for (cell,) in rows_of(tokens, (label,), place)])
    return X, None if label is None else y


def sentences_from_spacy(docs: Iterable[Doc]) -> tuple[list[Sentence], list[Tree] | None]:
    """The sentences of documents, as `from_spacy` finds them, and their trees, for a DependencyParser.

    Lemma, pos_ (upos), tag_ (xpos) and morphology are ``_`` where they are not set. Trees are None unless every document has
    them; the root is the word that is its own head.

    Raises DataError, naming the document, for a tree that leaves its sentence.
    """
    sentences: list[Sentence] = []
    trees: list[Tree | None] = []
    for place, tokens in each_sentence(docs):
        sentences.append(words_of(tokens))
        trees.append(_tree(tokens, place) if tokens[0].doc.has_annotation("DEP") else None)
    known = [tree for tree in trees if tree is not None]
    return sentences, known if known and len(known) == len(trees) else None


def to_spacy(
    sentences: Sequence[Sentence] | Sequence[Sequence[str]],
    trees: Sequence[Tree] | None = None,
    *,
    entities: Sequence[Sequence[str]] | None = None,
    vocab: Vocab | None = None,
) -> list[Doc]:
    """A Doc for each sentence, with what is known of it.

    Parameters
    ----------
    sentences : list of Sentence, or of lists of words
        upos becomes pos_, xpos tag_.
    trees : list of Tree, optional
        Heads and relations. A head that is not known is an error.
    entities : list of list of str, optional
        Tags of phrases, in any scheme that conlleval reads, or BILOU: they become doc.ents.
    vocab : Vocab, optional
        That of the pipeline with which the documents are used; None: a new one.

    Raises
    ------
    DataError
        Naming the sentence, for trees or tags that do not fit it.
    """
    require_installed("spacy", extra="spacy", needed_by="structpred.bridges.spacy")
    from spacy import tokens
    from spacy import vocab as vocabs

    vocab = vocabs.Vocab() if vocab is None else vocab
    docs = [_doc(tokens.Doc, vocab, i, sentence) for i, sentence in enumerate(sentences)]
    words = [list(doc) for doc in docs]
    if trees is not None:
        set_trees(words, trees)
    if entities is not None:
        for doc, found in zip(docs, phrases_of(words, entities), strict=True):
            doc.set_ents(found)
    return docs


def tokenized(text: str, language: str = "en") -> list[list[str]]:
    """The sentences of running text as lists of words: spaCy's tokenizer for the language, and its rules for sentence ends.

    Blank lines separate paragraphs, over which no sentence reaches; other line ends are white space. language: a code that spaCy
    knows, "xx" for none in particular. Raises ParameterError for another one, DependencyError where spaCy is not installed.
    """
    require_installed("spacy", extra="spacy", needed_by="tokenizing text")
    import spacy

    try:
        nlp = spacy.blank(language)
    except ImportError as error:
        raise ParameterError(f"spaCy has no tokenizer for the language {language!r} here: {str(error).splitlines()[0]}") from None
    nlp.add_pipe("sentencizer")
    paragraphs = [" ".join(part.split()) for part in re.split(r"\n[^\S\n]*\n", text.replace("\r\n", "\n"))]
    nlp.max_length = max(map(len, paragraphs), default=0) + 1
    return [[token.text for token in tokens] for _, tokens in each_sentence(nlp.pipe(filter(None, paragraphs)))]


def register(name: str, make: Callable[..., Any], settings: Mapping[str, Any], assigns: Sequence[str]) -> None:
    """Make a component known to spaCy: the function that makes it, the defaults of its settings, what it sets."""
    from spacy.language import Language

    if name in Language._factory_meta or name in _registering:
        return
    _registering.add(name)  # spaCy goes through all entry points while it registers, this one too
    try:
        Language.factory(name, default_config=dict(settings), assigns=assigns, func=make)
    finally:
        _registering.remove(name)


_registering: set[str] = set()


def universal_tags() -> set[str]:
    """What token.pos_ may be."""
    from spacy.parts_of_speech import IDS

    return set(IDS) - {""}


def each_sentence(docs: Iterable[Doc]) -> Iterator[tuple[str, list[Token]]]:
    """The words of each sentence, with a place for messages."""
    for number, doc in enumerate(docs):
        if not hasattr(doc, "has_annotation"):
            raise DataError(f"document {number}: expected a spaCy Doc, got {type(doc).__name__}; nlp(text) makes one")
        for part in doc.sents if doc.has_annotation("SENT_START") else [doc[:]]:
            if words := [token for token in part if not token.is_space]:
                yield f"document {number}", words


def rows_of(tokens: Sequence[Token], columns: Sequence[str], place: str) -> list[tuple[str, ...]]:
    """A tuple of attributes for each token; DataError for an empty one, ParameterError for one that is not a string."""
    for name in columns:
        for token in tokens:
            value = getattr(token, name, None)
            if isinstance(value, str) and value:
                continue
            if value is None or not isinstance(value, str):
                raise ParameterError(f"expected an attribute of Token that is a string, such as text, tag_ or pos_, got {name!r}")
            raise DataError(f"{place}, token {token.i} ({token.text!r}): {name} is empty; has a component set it?")
    return [tuple(getattr(token, name) for name in columns) for token in tokens]


def words_of(tokens: Sequence[Token]) -> Sentence:
    """Tokens as a sentence."""
    cells = [(t.text, t.lemma_ or "_", t.pos_ or "_", t.tag_ or "_", _feats(str(t.morph))) for t in tokens]
    return Sentence(*map(list, zip(*cells, strict=True)))


def _feats(morph: str) -> str:
    """Morphology as CoNLL-U sorts it, names without regard to case; spaCy sorts capitals first."""
    return "|".join(sorted(morph.split("|"), key=lambda pair: pair.partition("=")[0].lower())) or "_"


def _tree(tokens: Sequence[Token], place: str) -> Tree:
    number = {token.i: k for k, token in enumerate(tokens, 1)}
    heads = []
    for token in tokens:
        head = token.head
        while head.is_space and head.i != head.head.i:
            head = head.head
        if head.i not in number:
            raise DataError(f"{place}, token {token.i} ({token.text!r}): its head {head.text!r} is not in the same sentence")
        heads.append(0 if head.i == token.i else number[head.i])
    return Tree(np.array(heads, dtype=np.int64), [token.dep_ or "_" for token in tokens])


def _doc(make: Any, vocab: Any, i: int, sentence: Any) -> Any:
    forms = sentence.forms if isinstance(sentence, Sentence) else list(sentence)
    if not forms:
        raise DataError(f"sentence {i}: expected at least one word, got none")

    def known(name: str) -> list[str] | None:
        cells: list[str] = getattr(sentence, name, [])
        return None if all(cell == "_" for cell in cells) else ["" if cell == "_" else cell for cell in cells]

    starts = [True] + [False] * (len(forms) - 1)
    cells = {"lemmas": known("lemmas"), "pos": known("upos"), "tags": known("xpos"), "morphs": known("feats")}
    return make(vocab, words=forms, sent_starts=starts, **cells)


def set_trees(words: Sequence[Sequence[Token]], trees: Sequence[Tree]) -> None:
    """Heads and relations of the sentences, which are all of their documents; white space depends on the word before it."""
    heads, relations = heads_and_relations(trees, [len(tokens) for tokens in words])
    by_doc = itertools.groupby(zip(words, heads, relations, strict=True), key=lambda found: id(found[0][0].doc))
    for _, group in by_doc:
        found = list(group)
        doc = found[0][0][0].doc
        places = np.maximum(np.cumsum([not token.is_space for token in doc]) - 1, 0)
        order = [token.i for tokens, _, _ in found for token in tokens]
        parents, names = np.array(order)[places], ["dep"] * len(doc)
        for tokens, own, labels in found:
            for token, head, label in zip(tokens, own, labels, strict=True):
                if head < 0:
                    raise DataError(f"the document {shortened(tokens)}: {token.text!r} has no head; spaCy's trees are whole")
                parents[token.i] = token.i if head == 0 else tokens[head - 1].i
                names[token.i] = label if label != "_" else "ROOT" if head == 0 else "dep"
        codes = np.array([doc.vocab.strings.add(name) for name in names], dtype=np.uint64)
        offsets = (parents - np.arange(len(doc))).astype(np.int64).astype(np.uint64)
        doc.from_array(["HEAD", "DEP"], np.column_stack([offsets, codes]))


def phrases_of(words: Sequence[Sequence[Token]], labels: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """The phrases of each sentence as spans of its document, as conlleval reads tags; one without a type is a PHRASE."""
    found = []
    for tokens, row in zip(words, plain_lists(labels, [len(tokens) for tokens in words]), strict=True):
        read = PhraseLabels.of(as_iobes(str(tag)) for tag in row)
        spans = read.spans(np.arange(len(row)), np.array([0, len(row)]), "conlleval")
        names = [read.names[kind] for kind in spans.types.tolist()]
        found.append(spans_of(tokens, zip(spans.starts.tolist(), spans.ends.tolist(), names, strict=True)))
    return found


def spans_of(tokens: Sequence[Token], phrases: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Phrases (first token, token after the last, label, ...) of a sentence as spans of its document."""
    from spacy.tokens import Span

    return [Span(tokens[0].doc, tokens[a].i, tokens[b - 1].i + 1, label=name or "PHRASE") for a, b, name, *_ in phrases]


def shortened(tokens: Sequence[Token]) -> str:
    """The start of the text, for messages."""
    text = tokens[0].doc.text
    return repr(text if len(text) <= 30 else f"{text[:30]}...")
