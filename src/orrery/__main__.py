"""``python -m orrery`` is the program ``orrery``."""

from orrery.cli.start import main

if __name__ == "__main__":
    main()
