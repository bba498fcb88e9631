"""Runs that are there: find them, list, filter, sort, show and compare them."""
