"""`python -m lddr` is `lddr`."""

from lddr.cli import main

if __name__ == "__main__":
    main()
