"""Turns what Valgrind's Lackey prints into a ChampSim trace.

    valgrind --tool=lackey --trace-mem=yes --log-fd=9 PROGRAM 9>&1 >/dev/null \
        | python3 champsim_trace.py SKIP COUNT | xz > NAME.champsim.xz

SKIP instructions are left out, COUNT are written. Lackey names no registers, so no instruction of
the trace waits for another one, and a branch is known as one from the first time that it is taken.
"""

import struct
import sys

FLAGS, POINTER = 25, 26  # the registers by which ChampSim knows a branch


def records(lines, skip, count):
    """Records of 64 bytes: address, branch, registers and memory of an instruction."""
    branches, number, now = set(), -1, None  # now: address, its end, loads, stores
    for line in lines:
        kind, _, rest = line[:3].strip(), line[2:3], line[3:]
        if kind not in ("I", "L", "S", "M") or "," not in rest:
            continue
        address, size = rest.split(",")
        address, size = int(address, 16), int(size)
        if kind != "I":
            if now and kind in "LM":
                now[2].append(address)
            if now and kind in "SM":
                now[3].append(address)
            continue
        if now:
            taken = address != now[1]
            if taken:
                branches.add(now[0])
            if number >= skip:
                yield packed(now, now[0] in branches, taken)
            if number + 1 >= skip + count:
                return
        number, now = number + 1, (address, address + size, [], [])


def packed(instruction, branch, taken):
    """One record: address, branch, taken, 2 + 4 registers, 2 stores, 4 loads."""
    address, _, loads, stores = instruction
    registers = (POINTER, 0, POINTER, FLAGS, 0, 0) if branch else (0,) * 6
    memory = (*(stores + [0] * 2)[:2], *(loads + [0] * 4)[:4])
    return struct.pack("<Q8B6Q", address, branch, taken, *registers, *memory)


if __name__ == "__main__":
    for record in records(sys.stdin, int(sys.argv[1]), int(sys.argv[2])):
        sys.stdout.buffer.write(record)
