"""`python -m tutorsim` is the command line."""

from tutorsim.cli import main

if __name__ == "__main__":
    main()
