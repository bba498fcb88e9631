"""The choice of a model among runs, mostly without labels, and how well each way to choose does."""
