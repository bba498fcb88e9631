"""The reproduction of the paper: its numbers, tables, figures and claims."""
