"""The runs and groups of the tests of reports."""

from tests.report.conftest import compared_runs, groups, hardly_trained, labelled_runs, logged_run, make_run, trained

__all__ = ["compared_runs", "groups", "hardly_trained", "labelled_runs", "logged_run", "make_run", "trained"]
