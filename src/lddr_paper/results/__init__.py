"""The results pages: our runs in tables, the verdicts on the claims, and how to choose a model."""
