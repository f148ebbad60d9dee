"""Shards: cuts of files, what they load, and what they say."""

import gzip
import pickle
from pathlib import Path

import pytest

from structpred.distributed import Shards
from structpred.distributed.shards import about_shard
from structpred.errors import DataError, ParameterError, StructpredError
from structpred.io.columns import read_columns
from structpred.io.treebanks.reader import read_treebank


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Seven sentences of one to three tokens, with blank lines of several kinds between them."""
    gaps = ["\n", "\r\n", " \t\n", "\n\n"]
    text = "\n" + "".join("".join(f"w{k}.{j} T{j}\n" for j in range(k % 3 + 1)) + gaps[k % 4] for k in range(7))
    (tmp_path / "train.txt").write_bytes(text.encode())
    return tmp_path / "train.txt"


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_byte_ranges_hold_every_sentence_once_and_in_order(corpus: Path, n: int) -> None:
    """The sentences of all shards, one after the other, are those of the file, and no shard is empty."""
    shards = Shards.of_file(corpus, n)
    parts = [shard.load() for shard in shards]
    assert len(shards) == n
    assert min(len(part.X) for part in parts) > 0
    assert [row for part in parts for row in part.X.sentences()] == read_columns(corpus).sentences()
    assert [labels for part in parts for labels in part.y] == read_columns(corpus).labels()
    assert sum(shard.size for shard in shards) == corpus.stat().st_size


def test_a_shard_pickles_small_and_says_what_it_is(corpus: Path) -> None:
    """A shard is a path and two numbers when it travels, and its fingerprint knows bytes and options, not where they are."""
    shard = Shards.of_file(corpus, 2)[1]
    assert len(pickle.dumps(shard)) < 500
    assert str(shard).startswith(f"{corpus}, bytes ")
    here = shard.load().fingerprint
    elsewhere = corpus.with_name("other.txt")
    elsewhere.write_bytes(corpus.read_bytes())
    assert pickle.loads(pickle.dumps(shard)).load().fingerprint == here == Shards.of_file(elsewhere, 2)[1].load().fingerprint
    assert here != Shards.of_file(corpus, 2, label_column=0)[1].load().fingerprint
    elsewhere.write_bytes(corpus.read_bytes().replace(b"w6.0", b"v6.0"))
    assert here != Shards.of_file(elsewhere, 2)[1].load().fingerprint


def test_what_cannot_be_cut_is_an_error_at_cutting(corpus: Path, tmp_path: Path) -> None:
    """Empty shards, gzip files, encodings whose line ends are no bytes, and missing files are refused before any training."""
    packed, empty, blank = tmp_path / "a.gz", tmp_path / "empty.txt", tmp_path / "blank.txt"
    packed.write_bytes(gzip.compress(corpus.read_bytes()))
    empty.write_bytes(b"")
    blank.write_bytes(b"a DT\n\n" + b"\n" * 100)
    with pytest.raises(ParameterError, match=r"shard \d of 20 would be empty"):
        Shards.of_file(corpus, 20)
    with pytest.raises(ParameterError, match="shard 1 of 2 would be empty"):
        Shards.of_file(blank, 2)
    with pytest.raises(ParameterError, match=r"gzip file cannot be cut.*one file a shard to Shards.of_files"):
        Shards.of_file(packed, 2)
    with pytest.raises(ParameterError, match="utf-16 cannot be cut"):
        Shards.of_file(corpus, 2, encoding="utf-16")
    with pytest.raises(DataError, match="an empty file"):
        Shards.of_files([corpus, empty])
    with pytest.raises(DataError, match="there is no such file"):
        Shards.of_files([tmp_path / "none.txt"])
    with pytest.raises(ParameterError, match="expected a list of files"):
        Shards.of_files(str(corpus))  # type: ignore[arg-type]
    assert Shards.of_files([packed])[0].load().y == Shards.of_file(corpus, 1)[0].load().y


def test_a_bad_line_names_the_file_and_the_place(tmp_path: Path) -> None:
    """Lines are counted from the first byte of the shard, which the error says, with the number of the shard."""
    path = tmp_path / "train.txt"
    path.write_text("a DT\n\n" * 10 + "b NN\nc\n\n" + "d NN\n")
    shards = Shards.of_file(path, 2)
    start = shards[1].start
    with pytest.raises(DataError) as caught, about_shard(1, shards[1]):
        shards[1].load()
    line = path.read_bytes()[start:].split(b"\n").index(b"c") + 1
    assert str(caught.value).startswith(f"shard 1 ({path}, bytes {start:,} to {path.stat().st_size:,}): ")
    assert f"{path}: byte {start:,} + line {line}: expected 2 columns" in str(caught.value)
    with pytest.raises(DataError, match=rf"train.txt: byte {start} \+ line {line}: "):
        read_columns(path, start=start)


def test_functions_and_delayed_objects_are_shards() -> None:
    """A function, or an object that computes, gives (X, y) where it is asked; anything else is refused with its number."""

    class Delayed:
        key = "part-0"

        def __init__(self, value: object) -> None:
            self.value = value

        def compute(self, scheduler: str) -> object:
            assert scheduler == "synchronous"
            return self.value

    def first() -> tuple[list[int], list[int]]:
        return [3], [4]

    pairs = [("a", "A"), ("b", "B"), ("c", "C")]  # a partition of a bag
    shards = [*Shards.of_delayed([Delayed(([1], [2])), Delayed(pairs)]), *Shards.of_functions([first])]
    assert [shard.load()[:2] for shard in shards] == [([1], [2]), (["a", "b", "c"], ["A", "B", "C"]), ([3], [4])]
    assert [str(shard).split(" ")[0] for shard in shards] == ["delayed", "delayed", "function"]
    with pytest.raises(DataError, match=r"sample 1: expected a pair \(x, its y\), .* got int"):
        Shards.of_delayed([Delayed([("a", "A"), 3])])[0].load()
    with pytest.raises(ParameterError, match="got int as number 1"):
        Shards.of_functions([first, 3])  # type: ignore[list-item]
    with pytest.raises(ParameterError, match="expected at least one"):
        Shards.of_functions([])
    with pytest.raises(StructpredError, match=r"expected a pair \(X, y\), .* got list"):
        Shards.of_functions([list])[0].load()


def test_treebanks_are_cut_and_name_the_line(tmp_path: Path) -> None:
    """CoNLL-U is cut between sentences, comments stay with theirs, and a bad line is counted from the shard's first byte."""
    path = tmp_path / "a.conllu"
    word = "{0}\tw{0}\t_\tX\t_\t_\t{1}\tdep\t_\t_\n"
    text = "".join(f"# sent {k}\n" + "".join(word.format(j, j - 1) for j in range(1, k + 2)) + "\n" for k in range(6))
    path.write_text(text)
    parts = [shard.load() for shard in Shards.of_file(path, 3, format="conllu")]
    assert [form for part in parts for form in part.X.forms] == read_treebank(path).forms
    assert parts[1].X.raw.startswith(b"# sent ")
    path.write_text(text.replace("6\tw6\t", "6\t\t"))
    last = Shards.of_file(path, 3, format="conllu")[2]
    line = path.read_bytes()[last.start :].split(b"\n").index(b"6\t\t_\tX\t_\t_\t5\tdep\t_\t_") + 1
    with pytest.raises(DataError, match=rf"a.conllu: byte {last.start} \+ line {line}: "):
        last.load()


def test_label_sets_are_shards_file_by_file(tmp_path: Path) -> None:
    """A list of ARFF files makes a shard of each; what cuts a single one is named."""
    path = tmp_path / "a.arff"
    path.write_text("@relation a\n@attribute x numeric\n@attribute L {0,1}\n@data\n1,0\n2,1\n")
    assert Shards.of_files([path, path], format="arff", labels="1")[1].load().X.Y.tolist() == [[0], [1]]
    with pytest.raises(ParameterError, match=r"arff files hold sets of labels: give this one to Shards\.of_label_sets"):
        Shards.of_file(path, 2, format="arff")


HEADER = "@relation r\n% 0,0,0\n@attribute x numeric\n@attribute a {0,1}\n@attribute b {0,1}\n\n@DATA\n% none yet\n"


@pytest.mark.parametrize("n", range(1, 8))
def test_ranges_of_lines_hold_every_example_once_and_in_order(tmp_path: Path, n: int) -> None:
    """ARFF is cut at its examples, each piece with the header; comments and blank lines make no shard; LIBSVM has no header."""
    arff, svm = tmp_path / "a.arff", tmp_path / "a.svm"
    arff.write_text(HEADER + "".join(f"{k},{k % 2},1\n% comment {k}\n\n" for k in range(7)))
    svm.write_text("# comment\n\n" + "".join(f"{k % 2},2 {1 + k % 3}:{k}\n  # comment\n" for k in range(7)))
    parts = [shard.load().X for shard in Shards.of_label_sets(arff, n, format="arff", labels="2")]
    assert [row for part in parts for row in part.X.toarray().tolist()] == [[float(k)] for k in range(7)]
    assert [row for part in parts for row in part.Y.tolist()] == [[k % 2, 1] for k in range(7)]
    shards = Shards.of_label_sets(svm, n, format="libsvm", label_names=["2", "1", "0"], n_features=3)
    parts = [shard.load().X for shard in shards]
    assert [row.sum() for part in parts for row in part.X.toarray()] == list(range(7))
    assert [row for part in parts for row in part.Y.tolist()] == [[1, k % 2, 1 - k % 2] for k in range(7)]
    assert all(len(part) for part in parts)


def test_what_is_wrong_with_examples_is_said_with_the_place(tmp_path: Path) -> None:
    """Too many shards, no @data, npz; a bad example names file and line, from the shard's first byte, behind the header."""
    path = tmp_path / "a.arff"
    path.write_text(HEADER + "1,0,1\n" * 9 + "2,0\n")
    with pytest.raises(ParameterError, match=r"a\.arff: shard \d+ of 12 would be empty: cut at ends of lines"):
        Shards.of_label_sets(path, 12, format="arff", labels="2")
    shards = Shards.of_label_sets(path, 2, format="arff", labels="2")
    line = path.read_bytes()[shards[1].start :].count(b"\n")
    with (
        pytest.raises(DataError, match=rf"shard 1 .*: .*a\.arff: byte {shards[1].start} \+ line {line}: expected 3 values"),
        about_shard(1, shards[1]),
    ):
        shards[1].load()
    path.write_text(HEADER.replace("numeric", "{1,}") + "1,0,1\n" * 9)
    with pytest.raises(DataError, match=r"a\.arff:3: expected different nominal values"), about_shard(1, shards[1]):
        Shards.of_label_sets(path, 2, format="arff", labels="2")[1].load()
    path.write_text("1,0\n2,1\n")
    with pytest.raises(DataError, match="expected @data in front of the examples, got none"):
        Shards.of_label_sets(path, 2, format="arff", labels="1")
    with pytest.raises(ParameterError, match="npz files cannot be cut: write the examples as ARFF or LIBSVM text"):
        Shards.of_label_sets(path, 2, format="npz")
    with pytest.raises(ParameterError, match="format: expected one of arff, libsvm, npz, clus, clus-dag, got 'columns'"):
        Shards.of_label_sets(path, 2, format="columns")
    with pytest.raises(ParameterError, match=r"format: expected one of columns, .*got 'xml'"):
        Shards.of_file(path, 2, format="xml")


def test_row_groups_of_parquet_are_shards(tmp_path: Path) -> None:
    """A shard has row groups that follow each other; several columns make rows for templates; what is not there is named."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path, words = tmp_path / "a.parquet", [["a"], ["b", "c"], ["d"], ["e", "f", "g"]]
    tags = [[word.upper() for word in row] for row in words]
    parquet.write_table(arrow.table({"tokens": words, "pos": tags, "labels": tags}), path, row_group_size=1)
    parts = [shard.load() for shard in Shards.of_parquet(path, 3, tokens=["tokens", "pos"])]
    assert [row for part in parts for row in part.X] == [list(zip(a, b, strict=True)) for a, b in zip(words, tags, strict=True)]
    shards = Shards.of_parquet(path)
    assert [shard.load()[:2] for shard in shards] == [([x], [y]) for x, y in zip(words, tags, strict=True)]
    assert str(shards[2]) == f"{path}, row groups 2 to 2"
    assert len({shard.load().fingerprint for shard in shards}) == 4
    with pytest.raises(ParameterError, match=r"expected 1 to 4 shards.*got n=5"):
        Shards.of_parquet(path, 5)
    weighted = tmp_path / "b.parquet"
    parquet.write_table(arrow.table({"tokens": words, "labels": tags, "w": [1.0, 2.0, 0.5, 1.0]}), weighted, row_group_size=2)
    assert [shard.load().sample_weight for shard in Shards.of_parquet(weighted, weights="w")] == [[1.0, 2.0], [0.5, 1.0]]
    assert shards[0].load().sample_weight is None
    lists = [[float(k) for k, _ in enumerate(row)] for row in words]
    parquet.write_table(arrow.table({"tokens": words, "labels": tags, "t": lists}), weighted, row_group_size=2)
    assert [shard.load()[3:] for shard in Shards.of_parquet(weighted, token_weights="t")] == [
        (None, lists[:2]),
        (None, lists[2:]),
    ]
    with pytest.raises(ParameterError, match="no column 'ner'; the file has tokens, pos, labels"):
        Shards.of_parquet(path, labels="ner")
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        Shards.of_parquet(__file__)
