"""``python -m orrery`` is the program ``orrery``."""

from orrery.cli.program import main

if __name__ == "__main__":
    main()
