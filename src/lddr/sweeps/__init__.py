"""Studies: grids of runs, carried out on one machine or a cluster, and the choice among them."""
