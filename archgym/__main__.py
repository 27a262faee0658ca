"""``python -m archgym`` is the ``archgym`` command."""

from archgym.cli import main

if __name__ == "__main__":
    main()
