"""Objectives: pure loss terms, the sums of terms that models minimise, supervision and schedules."""
