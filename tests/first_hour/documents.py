"""What new users stumbled over in README, site and demo, which nobody types: what was shown, what is, and what holds it."""

from typing import NamedTuple


class Seen(NamedTuple):
    """what: was looked for, or at. before, now: what was there and is. test: what holds it."""

    what: str
    before: str
    now: str
    test: str


_SITE, _DOCS, _NOTEBOOKS = "tests/test_site.py", "tests/test_docs.py", "tests/examples/test_notebooks.py"
_SEARCH = f"{_SITE}::test_what_people_search_for_is_found_first"
_RUNS = f"{_DOCS}::test_pages_show_what_their_code_prints"
_MEASURED = f"{_DOCS}::test_what_the_readme_says_of_its_picture_was_measured"
_HEIGHTS = f"{_SITE}::test_nothing_sticks_out_or_is_cut_or_goes_on_for_ever"
_PHONE = "tests/report/test_page_layout.py::test_a_phone_shows_the_features_of_an_explanation"
_WORDS = f"{_DOCS}::test_the_readme_speaks_the_words_of_the_field"
#: where it was seen -> what was seen
SEEN: dict[str, list[Seen]] = {
    "README": [
        Seen("NER, named entities, CRF, SVM, segmentation", "in no sentence", "in the first, and in the table of tasks", _WORDS),
        Seen("which class, command and page for a task", "17 classes, 2 of them named", "a table, I want to ...", _WORDS),
        Seen("one command that installs", "from a clone, of no named place", "pip install structpred", _WORDS),
        Seen("licence and Python at a glance", "no badges", "two", _WORDS),
        Seen("when not to use it", "nothing", "four cases", _WORDS),
        Seen("UAS 87.3", "not said: with gold tags, lemmas and features", "said, beside 82.7 from words alone", _MEASURED),
        Seen(
            "the picture", "six strings, three without a difference", "phrases and a corrected tree; shares measured", _MEASURED
        ),
        Seen(
            "the first snippet", "a list in a list in a list, two sentences", "names in sentences; runs, shows its output", _RUNS
        ),
        Seen("speed beside CRFsuite", "a hinge by SGD beside a CRF by L-BFGS", "like beside like: ap, L-BFGS", _WORDS),
    ],
    "site": [
        Seen("NER, CRF, BIO, MILP, GraphCRF, PyEPO in the search", "0 hits, or the reference", "the page that answers", _SEARCH),
        Seen(
            "how to tag, label graphs, use a solver, read low scores",
            "no pages",
            "four, before the reference in the search",
            (f"{_SITE}::test_the_search_prefers_how_tos_and_leaves_records_out"),
        ),
        Seen(
            "the reference of models",
            "one page, 72,000 px high",
            "a page for each class",
            (f"{_SITE}::test_each_class_has_a_page_of_its_own"),
        ),
        Seen("benchmarks", "67,000 px, 23,900 words", "6,300 px; the record is apart", _HEIGHTS),
        Seen(
            "the history of changes",
            "12,400 px, on a telephone 24,200",
            "a page for each topic",
            (f"{_SITE}::test_each_topic_of_the_changes_has_a_page"),
        ),
        Seen("pages on a telephone, 375 px", "101,000 px at most", "13,000 at most, none scrolls sideways", _HEIGHTS),
        Seen(
            "an explanation on a telephone",
            "the feature is behind a scroll without a shade",
            "it stands beside its score",
            _PHONE,
        ),
        Seen(
            "the notebooks",
            "raw JSON that nothing links to",
            "six pages with their outputs",
            (f"{_SITE}::test_each_notebook_is_a_page_with_outputs"),
        ),
        Seen("words of all pages", "77,000", "30,000 at most", f"{_DOCS}::test_the_pages_are_not_too_many_words"),
    ],
    "pages": [
        Seen("code of the pages on adding something", "without its imports: NameError", "runs as typed, each block", _RUNS),
        Seen(
            "moving over from GROBID",
            "the sed line breaks tokens such as <",
            "runs",
            ("tests/cli/test_commands_of_pages.py::test_blocks_for_a_shell_run"),
        ),
        Seen(
            "PyEPO's names",
            "one that is not there, signs to be turned by hand",
            "those of its package, costs as they are",
            (f"{_DOCS}::test_what_others_use_has_its_counterpart_here"),
        ),
    ],
    "notebooks": [
        Seen("outputs in the repository", "none", "all, without times", f"{_NOTEBOOKS}::test_notebooks_are_kept_with_outputs"),
        Seen(
            "without data sets",
            "8 sentences and 2, accuracy 100 %, no token is wrong",
            "240 and 60, with mistakes",
            (f"{_NOTEBOOKS}::test_outputs_are_those_of_a_run"),
        ),
    ],
    "make": [
        Seen(
            "make demo, the column of seconds",
            "30.0 beside 0.5: nine tenths are the compiler",
            "compiled before the clock starts",
            ("tests/examples/test_examples.py::test_the_digits_demo_compiles_before_its_clock_starts"),
        ),
        Seen(
            "make docs",
            "not a word for minutes",
            "says what it does and how long",
            (f"{_DOCS}::test_building_the_site_is_not_silent"),
        ),
        Seen(
            "structpred doctor",
            "All that structpred needs works.",
            "Everything that structpred needs is there and works.",
            ("tests/cli/test_doctor.py::test_text_and_json_say_the_same"),
        ),
    ],
}
