"""``python -m archgym`` is the ``archgym`` command.

Python itself puts the working folder before all other places of modules then, which the command
``archgym`` does not; ``python -P -m archgym`` is the same without.
"""

from archgym.reading.import_path import leave_out_working_folder

if __name__ == "__main__":
    leave_out_working_folder()

    from archgym.cli import main

    main()
