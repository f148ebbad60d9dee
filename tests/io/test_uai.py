"""The UAI format: what is read, what pairwise problems come out of it, and where errors are."""

import gzip
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from uai_text import format_uai, model_of

from structpred.core.fixed_scores import FORBIDDEN
from structpred.errors import DataError
from structpred.io.text import HeldBytes
from structpred.io.uai import (
    UaiModel,
    read_uai,
    read_uai_evidence,
)

#: the format's own kind of layout: three variables, unary, pairwise in both orders, twice the same pair, a constant
EXAMPLE = b"""MARKOV
3
2 3 2
6
1 0
2 0 1
2 2 1
2 1 0
0
1 1

2
 0.5 2.0
6
 1 2 3
 4 5 6
6
 1 1 0 2 2 2
6
 1 10 1 10 1 10
1
 7
3
 1 1 0.25
"""


def test_tables_are_read_in_their_order() -> None:
    """The last variable of a scope runs fastest; scopes keep the order of the file."""
    model = read_uai(HeldBytes(EXAMPLE, "x"))
    assert (model.kind, model.n_states) == ("MARKOV", (2, 3, 2))
    assert model.scopes == ((0,), (0, 1), (2, 1), (1, 0), (), (1,))
    assert model.tables[1].tolist() == [[1, 2, 3], [4, 5, 6]]
    assert float(model.tables[4]) == 7.0


def test_the_pairwise_problem_scores_as_the_model() -> None:
    """Tables are added up on nodes and edges; every assignment has the score of the model, -1e30 for zero entries."""
    model = read_uai(HeldBytes(EXAMPLE, "x"))
    problem = model.pairwise()
    assert problem.shape == (3, 3, 0, 1, 1, 2)
    assert problem.constant == pytest.approx(np.log(7.0))
    assert problem.scores[[2, 8]].tolist() == [FORBIDDEN, FORBIDDEN]  # states that variables 0 and 2 lack
    for labels in product(range(2), range(3), range(2)):
        score = model.score(labels)
        if score == -np.inf:
            assert problem.score(labels) <= 0.5 * FORBIDDEN
        else:
            assert problem.score(labels) == pytest.approx(score, abs=1e-12)


def test_evidence_takes_variables_out_of_factors() -> None:
    """A known variable keeps one state, its edges go, and the scores of what is left stay."""
    model = read_uai(HeldBytes(EXAMPLE, "x"))
    problem = model.pairwise({1: 1})
    assert problem.shape == (3, 3)
    for labels in product(range(2), (1,), range(2)):
        assert problem.score(labels) == pytest.approx(model.score(labels), abs=1e-12)
    assert problem.score((0, 0, 0)) <= 0.5 * FORBIDDEN


def test_factors_of_known_variables_that_are_zero_leave_nothing() -> None:
    """Evidence that contradicts a factor forbids every output."""
    problem = read_uai(HeldBytes(b"MARKOV 2 2 2 1 2 0 1 4 0 1 1 1", "x")).pairwise({0: 0, 1: 0})
    assert all(problem.score(labels) <= 0.5 * FORBIDDEN for labels in product(range(2), repeat=2))
    assert problem.constant == 0.0


def test_larger_factors_are_refused_or_become_variables() -> None:
    """pairwise() names the factor and its variables; evidence may make it small enough; paired() keeps all scores."""
    rng = np.random.default_rng(0)
    table = rng.random((2, 3, 2)) * (rng.random((2, 3, 2)) < 0.7)
    model = UaiModel("MARKOV", (2, 3, 2), ((2, 1, 0), (0,)), (table, np.array([0.3, 0.4])))
    with pytest.raises(DataError, match=r"factor 0 is a table over 3 variables \(2, 1, 0\)"):
        model.pairwise()
    assert model.pairwise({1: 2}).shape == (3, 3, 0, 2)
    paired = model.paired()
    assert paired.n_states[:3] == (2, 3, 2)
    assert paired.n_states[3] == np.count_nonzero(table)
    problem = paired.pairwise()
    for labels in product(range(2), range(3), range(2)):
        scores = [problem.score((*labels, state)) for state in range(paired.n_states[3])]
        possible = [score for score in scores if score > 0.5 * FORBIDDEN]
        truth = model.score(labels)
        assert len(possible) == (truth > -np.inf)
        assert all(score == pytest.approx(truth, abs=1e-12) for score in possible)


def test_writing_and_reading_gives_the_same_model(tmp_path: Path) -> None:
    """Every number comes back bit for bit; files may be gzip; pairwise problems can be written."""
    rng = np.random.default_rng(1)
    model = UaiModel("BAYES", (2, 1, 4), ((1, 2), (), (0,)), (rng.random((1, 4)), np.array(1e-300), np.array([0.0, 1e300])))
    path = tmp_path / "model.uai.gz"
    path.write_bytes(gzip.compress(format_uai(model).encode()))
    again = read_uai(path)
    assert (again.kind, again.n_states, again.scopes) == (model.kind, model.n_states, model.scopes)
    for a, b in zip(model.tables, again.tables, strict=True):
        np.testing.assert_array_equal(a, b)
    problem = read_uai(HeldBytes(EXAMPLE, "x")).pairwise()
    written = read_uai(HeldBytes(format_uai(model_of(problem.shape, problem.scores)).encode(), "x")).pairwise()
    assert written.shape == problem.shape
    np.testing.assert_allclose(written.scores, problem.scores, atol=1e-12)


def test_evidence_files(tmp_path: Path) -> None:
    """k pairs; with the number of samples in front if that is 1; nothing known is 0."""
    path = tmp_path / "a.evid"
    path.write_text("2 0 1\n5 0\n")
    assert read_uai_evidence(path) == {0: 1, 5: 0}
    assert read_uai_evidence(HeldBytes(b"1\n1 3 2", "x")) == {3: 2}
    assert read_uai_evidence(HeldBytes(b"0", "x")) == {}
    assert read_uai_evidence(HeldBytes(b"1 0", "x")) == {}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", r"x:1: at the end: expected MARKOV or BAYES|x:0: at the end"),
        (b"MARKOVE 1", r"x:1: token 1: expected MARKOV or BAYES.*'MARKOVE'"),
        (b"MARKOV\n2\n2 two", r"x:3: token 2: expected the number of states of a variable.*'two'"),
        (b"MARKOV\n2\n2 0\n", r"x:3: token 2: .*whole number from 1, got '0'"),
        (b"MARKOV\n999999\n2 2", r"x:2: token 1: expected the number of variables; 999999 is too many, only 2 tokens are left"),
        (b"MARKOV 1 2 -1", r"the number of factors, a whole number from 0, got '-1'"),
        (b"MARKOV 1 2 1\n1 1\n2 1 1", r"x:2: token 2: expected a variable of a factor, a whole number from 0 to 0, got '1'"),
        (b"MARKOV 2 2 2 1\n2 1 1\n4 1 1 1 1", r"x:2: token 3: expected different variables in one factor"),
        (b"MARKOV 2 2 2 1\n2 0 1\n3 1 1 1", r"x:3: token 1: expected 2 \* 2 = 4 entries in table 0, got 3"),
        (b"MARKOV 1 2 1 1 0\n2\n1 nan", r"x:3: token 2: expected entry 1 of table 0, a finite number >= 0.*'nan'"),
        (b"MARKOV 1 2 1 1 0\n2\n1 -0.5", r"x:3: token 2: .*'-0.5'"),
        (b"MARKOV 1 2 1 1 0\n2\n1 1e999", r"x:3: token 2: .*'1e999'"),
        (b"MARKOV 1 2 1 1 0\n2\n1_0 1", r"x:3: token 1: .*'1_0'"),
        (b"MARKOV 1 2 1 1 0\n2\n1", r"2 is too many, only 1 tokens are left: is the file cut off\?"),
        (b"MARKOV 1 2 1 1 0\n2\n1 1 1", r"x:3: token 3: expected the end after 1 tables, got '1'"),
        (b"MARKOV 1 2", r"x:1: at the end: expected the number of factors, but here the file ends"),
        ("MARKOV 1 ٣ 0".encode(), r"expected the number of states of a variable"),
        (b"MARKOV 1 " + b"9" * 5000 + b" 0", r"expected the number of states of a variable"),
        (b"\x00\xff\xfe", r"expected MARKOV or BAYES"),
    ],
)
def test_errors_say_where_and_what(data: bytes, words: str) -> None:
    """DataError with the file, the line, the token in it, what was expected and what came."""
    with pytest.raises(DataError, match=words):
        read_uai(HeldBytes(data, "x"))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "number of known variables, but here the file ends"),
        (b"2 0 1 1", "expected the number of samples"),
        (b"1 0 1 1 1", "expected the end after 1 known variables"),
        (b"2 0 1 0 1", r"token 4: expected each variable once, got 0 again"),
        (b"1 0 x", "the state of a variable"),
    ],
)
def test_evidence_errors(data: bytes, words: str) -> None:
    """DataError with the place, for evidence files too."""
    with pytest.raises(DataError, match=words):
        read_uai_evidence(HeldBytes(data, "x"))


@pytest.mark.parametrize(
    ("evidence", "words"), [({9: 0}, "names variable 9"), ({1: 3}, "variable 1 is in state 3"), ({-1: 0}, "-1")]
)
def test_evidence_must_fit_the_model(evidence: dict[int, int], words: str) -> None:
    """Missing variables and states are named."""
    with pytest.raises(DataError, match=words):
        read_uai(HeldBytes(EXAMPLE, "x")).pairwise(evidence)


def test_a_few_bytes_do_not_fill_the_memory() -> None:
    """A variable of 10^14 states costs nothing until it is asked for, and is refused then, with the size."""
    model = read_uai(HeldBytes(b"MARKOV 2 99999999999999 2 0", "x"))
    with pytest.raises(DataError, match="199,999,999,999,998 parts"):
        model.pairwise()
    with pytest.raises(DataError, match="at least one variable"):
        read_uai(HeldBytes(b"MARKOV 0 0", "x")).pairwise()


def test_a_missing_file_and_a_damaged_archive(tmp_path: Path) -> None:
    """DataError names the file."""
    with pytest.raises(DataError, match="no such file"):
        read_uai(tmp_path / "none.uai")
    path = tmp_path / "cut.uai.gz"
    path.write_bytes(gzip.compress(EXAMPLE)[:-9])
    with pytest.raises(DataError, match=r"cut\.uai\.gz: damaged or truncated"):
        read_uai(path)
