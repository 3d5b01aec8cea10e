"""Progress and announcements: what is said, to whom, and nothing else."""

import io
import logging
import sys
from contextlib import contextmanager

import pytest

from linkspread.ground.progress import announce, format_bytes, format_seconds, track


@contextmanager
def nobody_listens():
    """Take away every handler, as in a fresh interpreter, and bring them back.

    Not a fixture: pytest adds its own handlers between fixtures and test.
    """
    logger, root = logging.getLogger("linkspread"), logging.getLogger()
    before = [(log, log.handlers[:], log.level) for log in (logger, root)]
    for log in (logger, root):
        log.handlers[:] = []
    try:
        yield logger
    finally:
        for log, handlers, level in before:
            log.handlers[:] = handlers
            log.setLevel(level)


@pytest.mark.parametrize(
    "n_bytes, text",
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (999_960, "1.0 MB"),
        (1.5e6, "1.5 MB"),
        (2e9, "2.0 GB"),
        (3.21e12, "3.2 TB"),
        (5e16, "50000.0 TB"),
    ],
)
def test_sizes_for_people(n_bytes, text):
    assert format_bytes(n_bytes) == text


@pytest.mark.parametrize(
    "seconds, text",
    [
        (0, "0.0 s"),
        (9.94, "9.9 s"),
        (10, "10 s"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (125, "2 min 5 s"),
        (3599.7, "1 h 0 min"),
        (7384, "2 h 3 min"),
    ],
)
def test_durations_for_people(seconds, text):
    assert format_seconds(seconds) == text


@pytest.mark.parametrize("verbose", [False, True])
def test_track_yields_everything_and_says_when_it_is_done(caplog, verbose):
    caplog.set_level(logging.DEBUG, logger="linkspread")
    steps = track(iter("abc"), total=3, label="letters", verbose=verbose)
    assert next(steps) == "a"
    assert not caplog.records  # not before the end
    assert list(steps) == ["b", "c"]
    (record,) = caplog.records
    assert record.getMessage().startswith("letters: done in 0.")
    assert record.levelno == (logging.INFO if verbose else logging.DEBUG)


def test_track_draws_a_bar_on_a_terminal(monkeypatch, caplog):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    steps = track(range(5), total=5, label="neighbours", verbose=True)
    assert list(steps) == [0, 1, 2, 3, 4]
    assert "neighbours" in terminal.getvalue()


def test_track_draws_nothing_unasked(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with nobody_listens():
        assert list(track(range(3), total=3, label="neighbours")) == [0, 1, 2]
    assert capsys.readouterr() == ("", "")


def test_an_announcement_nobody_listens_to_goes_to_standard_error(capsys):
    with nobody_listens() as logger:
        announce("about 3 s and 2 MB", verbose=True)
        assert capsys.readouterr() == ("", "about 3 s and 2 MB\n")
        announce("done", verbose=True)  # on the same handler, not on a second one
        assert capsys.readouterr() == ("", "done\n")
        assert len(logger.handlers) == 1


def test_an_announcement_that_was_not_asked_for_is_silent(capsys):
    with nobody_listens() as logger:
        announce("about 3 s and 2 MB")
        assert logger.handlers == []
    assert capsys.readouterr() == ("", "")


def test_an_announcement_goes_to_the_handler_that_is_there(capsys):
    stream = io.StringIO()
    with nobody_listens() as logger:
        logger.addHandler(logging.StreamHandler(stream))
        logger.setLevel(logging.INFO)
        announce("about 3 s", verbose=True)
        announce("a detail")
        assert len(logger.handlers) == 1
    assert stream.getvalue() == "about 3 s\n"
    assert capsys.readouterr() == ("", "")
