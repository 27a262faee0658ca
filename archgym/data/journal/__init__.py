"""The append-only journal, to which a row goes before the agent gets its outcome.

Each process appends lines of JSON to a separate file in ``DATASET/journal/`` and holds a lock on
it. A line is handed to the operating system in one write, so a killed process loses no outcome that
an agent has seen. A background thread syncs to disk every second, so a power cut loses at most one
second, and :meth:`Journal.sync` at once, where a row is to be on disk before the agent knows of it.

===================================================  =============================================
line                                                 meaning
===================================================  =============================================
``{"trial": {...}, "n": 0, "crc": ...}``             rows numbered 0 belong to this trial
``[0, step, parent, [codes], [metrics], ..., crc]``  one evaluation, see :data:`ROW_FIELDS`; with an
                                                     executor, :data:`FLIGHT_FIELDS` follow them
``{"end": 0, "state": "finished", "rows": ...}``     the trial is over, after so many rows
===================================================  =============================================

Each line ends with a checksum: the CRC-32 of the line before it, continued from that of the trial's
line before. So a line that is changed, doubled, moved or lost is noticed, unless it is the last.
"""

from archgym.data.journal.ended import ends_oddly, is_locked, is_of_this_machine
from archgym.data.journal.lines import (
    FLIGHT_FIELDS,
    ROW_FIELDS,
    ROW_LENGTHS,
    WRONG_CHECKSUM,
    Checksums,
    checksum_of,
    read_journal,
    row_values,
    with_checksum,
)
from archgym.data.journal.open_journals import (
    begin_trial,
    close_journals,
    journals_kept_open,
    rest,
)
from archgym.data.journal.writing import ClosedJournalError, Journal, Lines, sync_folders

__all__ = [
    "Checksums",
    "ClosedJournalError",
    "FLIGHT_FIELDS",
    "Journal",
    "Lines",
    "ROW_FIELDS",
    "ROW_LENGTHS",
    "WRONG_CHECKSUM",
    "begin_trial",
    "checksum_of",
    "close_journals",
    "ends_oddly",
    "is_locked",
    "is_of_this_machine",
    "journals_kept_open",
    "read_journal",
    "rest",
    "row_values",
    "sync_folders",
    "with_checksum",
]
