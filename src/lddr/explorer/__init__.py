"""The web page over run folders: see the runs, turn the latents of a model by hand, compare two, read the scores."""
