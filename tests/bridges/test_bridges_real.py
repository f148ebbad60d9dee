"""Round trips of real treebanks and chunks through the libraries: what comes back is what went in."""

from pathlib import Path
from typing import Any

import pytest

from structpred.bridges import (
    from_datasets,
    from_pandas,
    from_spacy,
    sentences_from_datasets,
    sentences_from_spacy,
    to_datasets,
    to_pandas,
    to_spacy,
    tokens_from_pandas,
    trees_to_datasets,
)
from structpred.io import Treebank, read_columns, read_treebank
from structpred.models import ChainLabeler, DependencyParser

FEW = 300
CHUNKS = "conll2000/test.txt.gz"
EWT = "ud_english_ewt/en_ewt-ud-test.conllu.gz"


def needs(name: str) -> Any:
    """The library, or a skip."""
    return pytest.importorskip(name, reason=f"{name} is not installed: pip install 'structpred[bridges]'")


def chunks_of(data_dir: Path, file: str, n: int | None) -> list[list[tuple[str, ...]]]:
    """Sentences of (word, part of speech, chunk)."""
    return read_columns(data_dir / file).sentences()[:n]


def same_trees(found: Any, treebank: Treebank) -> bool:
    """Whether heads and relations are those of the treebank."""
    return [(t.heads.tolist(), t.labels) for t in found] == [(t.heads.tolist(), t.labels) for t in treebank.trees()]


def chunks_through_pandas(sentences: list[list[tuple[str, ...]]]) -> None:
    """To rows, to sentences, and predictions back to the rows."""
    pd = needs("pandas")
    rows = [(i, *row) for i, sentence in enumerate(sentences) for row in sentence]
    df = pd.DataFrame(rows, columns=["sent_id", "word", "pos", "tag"]).astype({"tag": "category", "pos": "category"})
    X, y = from_pandas(df, columns=["word", "pos"])
    assert [tuple(row[:2] for row in sentence) for sentence in sentences] == [tuple(row) for row in X]
    assert y == [[row[2] for row in sentence] for sentence in sentences]
    out = to_pandas(df, y or [], label="tag")
    assert (out["predicted"] == out["tag"]).all()
    assert out.dtypes["predicted"] == df.dtypes["tag"]


def chunks_through_datasets(sentences: list[list[tuple[str, ...]]]) -> None:
    """To records with classes, to sentences, and predictions back to classes."""
    hf = needs("datasets")
    names = [sorted({row[k] for sentence in sentences for row in sentence}) for k in (1, 2)]
    columns = {"tokens": 0, "pos_tags": 1, "chunk_tags": 2}
    table = {
        name: [[row[k] if k == 0 else names[k - 1].index(row[k]) for row in sentence] for sentence in sentences]
        for name, k in columns.items()
    }
    kinds = [hf.Value("string"), *(hf.ClassLabel(names=one) for one in names)]
    features = {name: hf.Sequence(kinds[k]) for name, k in columns.items()}
    dataset = hf.Dataset.from_dict(table, features=hf.Features(features))
    X, y = from_datasets(dataset, ["tokens", "pos_tags"], "chunk_tags")
    assert [tuple(row[:2] for row in sentence) for sentence in sentences] == [tuple(row) for row in X]
    assert y == [[row[2] for row in sentence] for sentence in sentences]
    assert to_datasets(dataset, y or [], "chunk_tags")["predicted"][:] == table["chunk_tags"]


def chunks_through_spacy(sentences: list[list[tuple[str, ...]]]) -> None:
    """To entities of documents, and back to tags."""
    needs("spacy")
    words = [[row[0] for row in sentence] for sentence in sentences]
    tags = [[row[2] for row in sentence] for sentence in sentences]
    X, y = from_spacy(to_spacy(words, entities=tags), label="ents")
    assert [[word for (word,) in row] for row in X] == words
    assert y == tags


def chunks_through_nltk(sentences: list[list[tuple[str, ...]]]) -> None:
    """To the pairs of NLTK's chunkers: its tagger gives the labeler's labels, and NLTK's accuracy is its score."""
    needs("nltk")
    from structpred.bridges import ChainTagger

    tagged = [[(row[:2], row[2]) for row in sentence] for sentence in sentences]
    X, y = ([[pair[k] for pair in sentence] for sentence in tagged] for k in (0, 1))
    tagger = ChainTagger(ChainLabeler("perceptron", template="chunking", max_iter=1))
    tagger.train(tagged[:FEW])
    found = tagger.tag_sents(X)
    assert [[token for token, _ in sentence] for sentence in found] == X
    assert [[tag for _, tag in sentence] for sentence in found] == [labels.tolist() for labels in tagger.labeler.predict(X)]
    assert tagger.accuracy(tagged) == pytest.approx(tagger.labeler.score(X, y), abs=1e-12)


def trees_through_pandas(treebank: Treebank) -> None:
    """To rows with heads and relations, and back."""
    pd = needs("pandas")
    columns = {"form": treebank.forms, "upos": treebank.upos, "xpos": treebank.xpos, "head": treebank.heads}
    ids = [i for i, n in enumerate(treebank.lengths.tolist()) for _ in range(n)]
    df = pd.DataFrame({"sent_id": ids, **columns, "deprel": treebank.labels})
    X, y = tokens_from_pandas(df, columns=["form", "upos", "xpos"], label=["head", "deprel"])
    assert [token["xpos"] for sentence in X for token in sentence] == treebank.xpos
    assert y is not None
    assert [pair for tree in y for pair in tree] == list(zip(treebank.heads.tolist(), treebank.labels, strict=True))
    out = to_pandas(df, treebank.trees(), column="p")
    assert out["p_head"].tolist() == treebank.heads.tolist()
    assert out["p_deprel"].tolist() == treebank.labels


def trees_through_datasets(treebank: Treebank) -> None:
    """To records as those of universal_dependencies, and back."""
    hf = needs("datasets")
    names = sorted(set(treebank.upos))
    words, trees = treebank.sentences(), treebank.trees()
    table = {
        "tokens": [s.forms for s in words],
        "upos": [[names.index(tag) for tag in s.upos] for s in words],
        "xpos": [s.xpos for s in words],
        "lemmas": [s.lemmas for s in words],
        "feats": [s.feats for s in words],
        "head": [list(map(str, tree.heads.tolist())) for tree in trees],
        "deprel": [tree.labels for tree in trees],
    }
    text = hf.Sequence(hf.Value("string"))
    features = {name: text for name in table} | {"upos": hf.Sequence(hf.ClassLabel(names=names))}
    dataset = hf.Dataset.from_dict(table, features=hf.Features(features))
    sentences, found = sentences_from_datasets(dataset)
    assert sentences == words
    assert same_trees(found, treebank)
    out = trees_to_datasets(dataset, trees)
    assert out["predicted_head"][:] == table["head"]
    assert out["predicted_deprel"][:] == table["deprel"]


def trees_through_spacy(treebank: Treebank) -> None:
    """To documents, one for each sentence, and back."""
    needs("spacy")
    sentences, found = sentences_from_spacy(to_spacy(treebank.sentences(), treebank.trees()))
    assert sentences == treebank.sentences()
    assert same_trees(found, treebank)


CHUNK_TRIPS = [chunks_through_pandas, chunks_through_datasets, chunks_through_spacy, chunks_through_nltk]
TREE_TRIPS = [trees_through_pandas, trees_through_datasets, trees_through_spacy]


@pytest.mark.parametrize("trip", CHUNK_TRIPS)
def test_chunks_survive(trip: Any, data_dir: Path) -> None:
    """A few hundred sentences of CoNLL-2000 come back with the same words, parts of speech and chunks."""
    trip(chunks_of(data_dir, CHUNKS, FEW))


@pytest.mark.parametrize("trip", TREE_TRIPS)
def test_trees_survive(trip: Any, data_dir: Path) -> None:
    """A few hundred sentences of EWT come back with the same words, tags, heads and relations."""
    trip(read_treebank(data_dir / EWT).take(range(FEW)))


@pytest.mark.slow
@pytest.mark.parametrize("trip", CHUNK_TRIPS)
def test_all_chunks_survive(trip: Any, data_dir: Path) -> None:
    """So do the whole training and test sets."""
    for file in (CHUNKS, "conll2000/train.txt.gz"):
        trip(chunks_of(data_dir, file, None))


@pytest.mark.slow
@pytest.mark.parametrize("trip", TREE_TRIPS)
def test_all_trees_survive(trip: Any, data_dir: Path) -> None:
    """So do the whole test sets of EWT and of a treebank with many crossing arcs."""
    for file in (EWT, "ud_latin_perseus/la_perseus-ud-test.conllu.gz"):
        trip(read_treebank(data_dir / file))


@pytest.mark.slow
def test_a_parser_of_real_sentences_parses_in_a_pipeline(data_dir: Path, tmp_path: Path) -> None:
    """The component gives the trees that the parser itself predicts, for all documents of a batch."""
    spacy = needs("spacy")
    from spacy_cases import pipeline

    treebank = read_treebank(data_dir / EWT).take(range(40))
    parser = DependencyParser(max_iter=2, max_bits=12).fit(treebank)
    parser.save(tmp_path / "p.spz")
    nlp = pipeline({"model": tmp_path / "p.spz"})
    nlp.remove_pipe("sentencizer")
    docs = to_spacy(treebank.sentences(), vocab=nlp.vocab)
    assert isinstance(docs[0], spacy.tokens.Doc)
    found = sentences_from_spacy(nlp.pipe(docs))[1] or []
    assert [(t.heads.tolist(), t.labels) for t in found] == [(t.heads.tolist(), t.labels) for t in parser.predict(treebank)]
