"""`lddr bench`: speed and memory as ratios, ours and the usual way measured side by side in one run."""
