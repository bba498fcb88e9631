"""One file for each kind of selector; a new one is a new file."""
