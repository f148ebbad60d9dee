"""Real treebanks: byte-identical round trips, agreement with another reader, and streams in bounded memory."""

import gzip
import io
import tracemalloc
from pathlib import Path

import pytest
from treebank_samples import CONLLU

from structpred.io import read_treebank, stream_treebank, validate_treebank, write_treebank

FILES = {  # file -> sentences, words as their publishers count them
    "ud_ancient_greek_perseus/grc_perseus-ud-dev.conllu.gz": (1137, 22135),
    "ud_ancient_greek_perseus/grc_perseus-ud-test.conllu.gz": (1306, 20959),
    "ud_english_ewt/en_ewt-ud-train.conllu.gz": (12544, 204577),
    "ud_english_ewt/en_ewt-ud-dev.conllu.gz": (2001, 25147),
    "ud_english_ewt/en_ewt-ud-test.conllu.gz": (2077, 25094),
    "ud_hungarian_szeged/hu_szeged-ud-train.conllu.gz": (910, 20166),
    "ud_hungarian_szeged/hu_szeged-ud-dev.conllu.gz": (441, 11418),
    "ud_hungarian_szeged/hu_szeged-ud-test.conllu.gz": (449, 10448),
    "ud_latin_perseus/la_perseus-ud-train.conllu.gz": (1334, 18259),
    "ud_latin_perseus/la_perseus-ud-test.conllu.gz": (939, 10964),
}


SMALL = "ud_hungarian_szeged/hu_szeged-ud-test.conllu.gz"


@pytest.mark.parametrize("name", [SMALL, *(pytest.param(name, marks=pytest.mark.slow) for name in FILES if name != SMALL)])
def test_real_files_come_back_byte_for_byte(name: str, data_dir: Path) -> None:
    """Read and written, read and written with its own trees, and streamed: the same bytes; no error is found."""
    raw = gzip.decompress((data_dir / name).read_bytes())
    treebank = read_treebank(data_dir / name)
    assert (len(treebank), treebank.n_words) == FILES[name]
    for trees in (None, treebank.trees()):
        out = io.BytesIO()
        write_treebank(treebank, out, trees)
        assert out.getvalue() == raw
    out = io.BytesIO()
    for batch in stream_treebank(data_dir / name, batch_size=700):
        write_treebank(batch, out, batch.trees())
    assert out.getvalue() == raw
    assert [problem for problem in validate_treebank(data_dir / name) if problem.severity == "error"] == []


def test_a_real_file_with_other_line_ends(data_dir: Path) -> None:
    """The same with CR LF and without the last line ends."""
    raw = gzip.decompress((data_dir / "ud_latin_perseus/la_perseus-ud-test.conllu.gz").read_bytes())
    data = raw.rstrip(b"\n").replace(b"\n", b"\r\n")
    treebank = read_treebank(io.BytesIO(data))
    out = io.BytesIO()
    write_treebank(treebank, out, treebank.trees())
    assert out.getvalue() == data
    assert treebank.forms == read_treebank(io.BytesIO(raw)).forms


@pytest.mark.parametrize("part", [pytest.param("dev", marks=pytest.mark.slow), "test"])
def test_agreement_with_another_reader(part: str, data_dir: Path) -> None:
    """Every attribute of every word is what the library conllu reads."""
    conllu = pytest.importorskip("conllu")
    path = data_dir / f"ud_english_ewt/en_ewt-ud-{part}.conllu.gz"
    treebank = read_treebank(path)
    sentences = conllu.parse(gzip.decompress(path.read_bytes()).decode())
    assert len(sentences) == len(treebank)
    words = [[word for word in sentence if isinstance(word["id"], int)] for sentence in sentences]
    assert [len(sentence) for sentence in words] == treebank.lengths.tolist()
    flat = [word for sentence in words for word in sentence]
    columns = {
        "form": treebank.forms,
        "lemma": treebank.lemmas,
        "upos": treebank.upos,
        "xpos": treebank.xpos,
        "deprel": treebank.labels,
    }
    for column, ours in columns.items():
        assert [word[column] or "_" for word in flat] == ours
    assert [word["head"] for word in flat] == treebank.heads.tolist()
    feats = ["|".join(f"{name}={value}" for name, value in (word["feats"] or {}).items()) or "_" for word in flat]
    assert feats == treebank.feats


class Endless(io.RawIOBase):
    """A long file that nobody has to keep: the same bytes again and again."""

    def __init__(self, data: bytes, times: int) -> None:
        self.data, self.left = data, times

    def read(self, size: int = -1) -> bytes:
        self.left -= 1
        return self.data if self.left >= 0 and size >= len(self.data) else b""


@pytest.mark.slow
def test_a_stream_holds_one_batch() -> None:
    """A stream of 20,000 sentences, 5 MB, never takes more than a fifth of that."""
    block = CONLLU.encode() * 50
    assert sum(map(len, stream_treebank(Endless(block, 1), batch_size=100))) == 100  # what is loaded once is loaded by now
    stream = Endless(block, 200)
    tracemalloc.start()
    n = sum(len(batch) for batch in stream_treebank(stream, batch_size=100))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert n == 20_000
    assert peak < len(block) * 200 / 5
