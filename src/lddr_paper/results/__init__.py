"""The results page: our runs in tables, the verdicts on the claims, and how to choose a model."""
