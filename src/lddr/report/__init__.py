"""Runs as tables and figures."""
