"""The figures of one model, one file each."""
