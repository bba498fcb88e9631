"""Scores of representations: pure functions of codes and factors."""
