"""Datasets drawn here from small tables: nothing to download."""
