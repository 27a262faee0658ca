"""A seeded generator of mistakes in the eight example files: each is certainly one."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from tests.declared.conftest import EXAMPLES

__all__ = ["Mutation", "mutations"]

FILES: Final = sorted(path.stem for path in EXAMPLES.glob("*.yaml"))


@dataclass(frozen=True)
class Mutation:
    """A file with one mistake.

    Attributes:
        stem: of the file.
        kind: of the mistake.
        what: the mistake itself, for people.
        content: of the file.
        names: what the message must have, in any order.
    """

    stem: str
    kind: str
    what: str
    content: bytes
    names: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.stem}: {self.kind}: {self.what}"


@dataclass(frozen=True)
class Part:
    """A key of the file with its value, and where both stand in the text."""

    path: tuple[str, ...]
    key: yaml.ScalarNode
    value: yaml.Node
    in_braces: bool

    @property
    def kind(self) -> str:
        """The path with the names that users give replaced by ``*``."""
        named = {"parameters", "workloads", "stages", "metrics", "files", "failures", "fidelities"}
        return ".".join(
            "*" if n == 1 and self.path[0] in named else one for n, one in enumerate(self.path)
        )


class Text:
    """A file that mistakes are made in."""

    def __init__(self, stem: str) -> None:
        self.stem = stem
        self.text = (EXAMPLES / f"{stem}.yaml").read_text("utf-8")
        node = yaml.compose(self.text)
        assert isinstance(node, yaml.MappingNode)
        self.parts = list(_parts(node, ()))

    def of(self, *kinds: str) -> list[Part]:
        """The parts at some places."""
        return [part for part in self.parts if part.kind in kinds]

    def replaced(self, node: yaml.Node, new: str) -> str:
        """The text with another value."""
        start = node.start_mark.index
        end = start + len(self.text[start : node.end_mark.index].rstrip())
        return self.text[:start] + new + self.text[end:]

    def without(self, part: Part) -> str:
        """The text without a key and its value."""
        start = part.key.start_mark.index
        end = start + len(self.text[start : part.value.end_mark.index].rstrip())
        if not part.in_braces:
            start = self.text.rfind("\n", 0, start) + 1
            return self.text[:start] + self.text[self.text.find("\n", end) + 1 :]
        rest = self.text[end:]
        if rest.startswith(","):
            return self.text[:start] + rest[1:].lstrip()
        return self.text[:start].rstrip(", ") + rest


def _parts(node: yaml.Node, path: tuple[str, ...]) -> Iterator[Part]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield Part((*path, key.value), key, value, bool(node.flow_style))
            yield from _parts(value, (*path, key.value))
    elif isinstance(node, yaml.SequenceNode):
        for position, one in enumerate(node.value):
            yield from _parts(one, (*path, str(position)))


def misspelt(word: str, rng: random.Random) -> str:
    """A word without one of its letters; a short one with a letter twice."""
    if len(word) < 4:
        return word + word[-1]
    at = rng.randrange(1, len(word) - 1)
    return word[:at] + word[at + 1 :]


Made = Iterator[tuple[str, str, tuple[str, ...]]]
"""What was done, the text with the mistake, and what the message must have."""

_KEYS: Final = re.compile(
    r"parameters\.\*\.(?!when_inactive)\w+|workloads\.\*\.\w+|files\.\*\.\w+|stages\.\*\.\w+|metrics\.\*\.\w+"
    r"|failures\.\*\.\w+|fidelities\.\*\.\w+|noise\.\w+|\w+"
)


def mistyped_key(file: Text, rng: random.Random) -> Made:
    for part in file.parts:
        if _KEYS.fullmatch(part.kind):
            bad = misspelt(part.path[-1], rng)
            yield (
                bad,
                file.replaced(part.key, bad),
                (f"'{bad}'", f"'{part.path[-1]}'", "unknown key"),
            )


def key_twice(file: Text, rng: random.Random) -> Made:
    for part in file.parts:
        if part.in_braces:
            at = part.key.start_mark.index
            text = f"{file.text[:at]}{part.path[-1]}: 1, {file.text[at:]}"
            yield ".".join(part.path), text, (f"'{part.path[-1]}' is there twice",)


def missing_key(file: Text, rng: random.Random) -> Made:
    needed = (
        "parameters", "stages", "metrics", "parameters.*.baseline", "stages.*.run",
        "failures.*.means", "fidelities.*.value", "fidelities.*.cost", "noise.repeats",
    )  # fmt: skip
    for part in file.of(*needed):
        names = (".".join(part.path[:-1]) or part.path[0], "missing|it is empty")
        yield ".".join(part.path), file.without(part), names
    for part in file.of("files.*.text", "metrics.*.key", "metrics.*.regex"):
        yield ".".join(part.path), file.without(part), (".".join(part.path[:2]),)


_WRONG: Final = {
    "parameters.*.integer": ("[1, many]", "'many'"),
    "parameters.*.values": ("{a: 1}", "list"),
    "parameters.*.choices": ("lru", "'lru'"),
    "parameters.*.powers_of_two": ("[1, 8, 64]", "at most 2"),
    "parameters.*.real": ("wide", "'wide'"),
    "parameters.*.boolean": ("false", "allowed is True"),
    "parameters.*.log": ("often", "true or false"),
    "parameters.*.unit": ("5", "'5'"),
    "parameters.*.doc": ("[a]", "a text"),
    "workloads.*.held_out": ("perhaps", "true or false"),
    "workloads.*.values": ("uniform", "a mapping"),
    "stages.*.run": ("run.sh", "a list"),
    "stages.*.uses": ("everything", "a list"),
    "stages.*.time_limit_s": ("soon", "a number"),
    "stages.*.good_exit_codes": ("255", "a list"),
    "metrics.*.regex": ("5", "'5'"),
    "metrics.*.signed": ("7", "true or false"),
    "metrics.*.goal": ("smallest", "'minimize' or 'maximize'"),
    "metrics.*.take": ("middle", "'first'"),
    "metrics.*.over_workloads": ("median", "geometric_mean"),
    "failures.*.means": ("fatal", "'illegal'"),
    "fidelities.*.value": ("small", "a number"),
    "noise.repeats": ("often", "an integer"),
    "parameters": ("[a, b]", "a mapping"),
    "stages": ("run.sh", "a mapping"),
    "metrics": ("5", "a mapping"),
    "failures": ("none", "a list"),
    "files": ("{a: b}", "a list"),
    "objective": ("[time]", "'minimize METRIC'"),
    "version": ("5", "a text, as '5'"),
    "inputs": ("fifo.v", "a list"),
}
_FAR: Final = {
    "parameters.*.integer": ("[9, 1]", "low <= high"),
    "parameters.*.powers_of_two": ("[3, 9]", "3 is no power of two"),
    "parameters.*.real": ("[0.1, .inf]", "finite"),
    "parameters.*.choices": ("[yes, no]", "in quotes"),
    "parameters.*.values": ("[]", "at least 1"),
    "stages.*.time_limit_s": ("-5", "more than 0"),
    "stages.*.good_exit_codes": ("[-1]", "at least 0"),
    "fidelities.*.value": ("2", "2"),
    "fidelities.*.cost": ("-1", "-1"),
    "noise.repeats": ("1e9", "1000"),
    "workloads.*.values": ("{a-b: 2}", "a name is made of letters"),
    "metrics.*.regex": ("'(unclosed'", "no regular expression"),
    "metrics.*.json": ("'a[b'", "no path"),
    "stages.*.run": ("['']", "empty"),
    "files.*.path": ("../out.cfg", "inside the folder"),
    "metrics.*.from": ("../../etc/passwd", "inside the folder"),
    "parameters.*.baseline": ("[1, 2]", "[1, 2]"),
    "version": ("[no-such-program]", "no-such-program"),
    "inputs": ("[/no/such/file]", "/no/such/file"),
}
"""By place: a value that it cannot have, and what the message must have."""


def _values(table: dict[str, tuple[str, str]]) -> Callable[[Text, random.Random], Made]:
    def made(file: Text, rng: random.Random) -> Made:
        for kind, (bad, said) in table.items():
            for part in file.of(kind):
                place = ".".join(part.path)
                names = (".".join(part.path[:2]), said)
                yield f"{place} is {bad}", file.replaced(part.value, bad), names

    return made


def huge_number(file: Text, rng: random.Random) -> Made:
    for part in file.of("parameters.*.integer", "parameters.*.powers_of_two"):
        for bad in (f"[1, {10**400}]", "[1, 1e400]", f"[1, {'9' * 6000}]"):
            yield f"{part.path[1]} up to {bad[:12]}", file.replaced(part.value, bad), ()


def unknown_name(file: Text, rng: random.Random) -> Made:
    """A name in a template or an expression that nothing has."""
    names = [key for part in file.of("parameters", "derived") for key in _names(part.value)]
    for match in re.finditer(
        r"(?<=\{\{ )\w+(?= )|\b\w+\b(?=[^\n{}\[\]'\"]*(?:>=|<=|==|!=))", file.text
    ):
        if match[0] in names:
            bad = misspelt(match[0], rng)
            if bad not in names:
                text = f"{file.text[: match.start()]}{bad}{file.text[match.end() :]}"
                yield bad, text, (f"'{bad}'", match[0])


def wrong_unit(file: Text, rng: random.Random) -> Made:
    for part in file.of("metrics.*.unit"):
        yield (
            f"{part.path[1]} in furlongs",
            file.replaced(part.value, "furlongs"),
            ("furlongs", part.path[1]),
        )
    for part in file.of("metrics.*.read_unit"):
        for bad, said in (("kelvin", "'kelvin'"), ("kB", "a size|convert")):
            yield f"{part.path[1]} from {bad}", file.replaced(part.value, bad), (said,)


def baseline_off(file: Text, rng: random.Random) -> Made:
    for part in file.of("parameters.*.baseline"):
        for bad in ("-12345.5", "nothing_like_this"):
            place = ".".join(part.path)
            yield f"{place} is {bad}", file.replaced(part.value, bad), (place, bad)


def bad_expression(file: Text, rng: random.Random) -> Made:
    """Derived values and rules that cannot be computed."""
    first = _names(file.of("parameters")[0].value)[0]
    cases = {
        "derived: {a_: b_ + 1, b_: a_ + 1}": ("derived.a_", "b_"),
        "derived: {a_: a_ + 1}": ("derived.a_", "a_"),
        f"derived: {{{first}: 3}}": (f"'{first}' is taken",),
        "rules: {r_: open(1)}": ("rules.r_", "'open'"),
        "rules: {r_: 1 +}": ("rules.r_", "is no expression"),
        "rules: {r_: '().__class__ == 1'}": ("rules.r_",),
        "rules: {r_: '9**9**9**9 > 1'}": ("rules.r_",),
        f"rules: {{r_: '{'(' * 3000}1{')' * 3000}'}}": ("rules.r_",),
    }
    for line, names in cases.items():
        key = line.partition(":")[0]
        if not file.of(key):
            yield line[:60], f"{file.text}{line}\n", names


def divides_by_zero(file: Text, rng: random.Random) -> Made:
    for part in file.of("metrics"):
        name = _names(part.value)[0]
        given = "metrics:\n  z_count: {formula: 1 / 0}\n"
        yield "1 / 0", file.text.replace("metrics:\n", given, 1), ("z_count", "zero")
        after = f"  z_count: {{formula: 1 / ({name} - {name})}}\n"
        end = part.value.end_mark.index
        yield (
            f"1 / ({name} - {name})",
            file.text[:end] + after + file.text[end:],
            ("z_count", "zero"),
        )


def not_yaml(file: Text, rng: random.Random) -> Made:
    head, mark, tail = file.text.partition("stages:\n")
    laughs = "\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12))
    cases = {
        "a tab": (f"{head}{mark}\t{tail.lstrip()}", "line"),
        "an open bracket": (f"{head}{mark}  x: [1, 2\n{tail}", "line"),
        "an open quote": (f"{head}{mark}  x: 'abc\n{tail}", "line"),
        "a colon too many": (f"description: a: b\n{head}{mark}{tail}", "line 1"),
        "a list": ("- 1\n- 2\n", "a mapping"),
        "a word": ("champsim\n", "a mapping"),
        "nothing": ("", "a mapping"),
        "two documents": (f"{file.text}---\na: 1\n", "line|document"),
        "a billion laughs": (f"a0: &a0 [1, 1, 1]\n{laughs}\n{file.text}", "aliases counted"),
        "an alias of itself": (f"{file.text}x: &x [*x]\n", "alias of itself"),
        "an unknown alias": (f"{file.text}x: *nothing\n", "nothing"),
        "deep nesting": (f"{file.text}x: {'[' * 20000}\n", "too deeply"),
        "deep mappings": (f"{file.text}x: {'{a: ' * 5000}\n", "too deeply"),
        "an object": (f"{file.text}x: !!python/object/apply:os.system [ls]\n", "line"),
        "a date of no calendar": (f"{file.text}x: 2026-99-99\n", "'x'"),
        "a key that is a number": (f"{file.text}1: 2\n", "in quotes"),
        "a key that is a list": (f"{file.text}? [1, 2]\n: 3\n", "line"),
        "a merged key": (f"{file.text}<<: 5\n", "line"),
        "a character that is none": (f"{file.text}x: \x07\n", "the number 7 must not"),
    }
    for what, (text, said) in cases.items():
        yield what, text, (said,)


KINDS: Final[dict[str, Callable[[Text, random.Random], Made]]] = {
    "mistyped key": mistyped_key,
    "key twice": key_twice,
    "missing key": missing_key,
    "mistyped value": _values(_WRONG),
    "value out of bounds": _values(_FAR),
    "huge number": huge_number,
    "unknown name": unknown_name,
    "wrong unit": wrong_unit,
    "baseline": baseline_off,
    "expression": bad_expression,
    "division by zero": divides_by_zero,
    "YAML": not_yaml,
}


def mutations(number: int, seed: int) -> list[Mutation]:
    """A number of mistakes: as many of each kind as there are, at most its share.

    Args:
        number: of mistakes.
        seed: the same one gives the same mistakes.
    """
    rng = random.Random(seed)
    by_kind: dict[str, list[Mutation]] = {}
    for kind, make in KINDS.items():
        made = [
            Mutation(stem, kind, what, text.encode("utf-8", "surrogatepass"), names)
            for stem in FILES
            for what, text, names in make(Text(stem), rng)
        ]
        rng.shuffle(made)
        by_kind[kind] = made
    by_kind["encoding"] = list(_encodings(rng))
    chosen: list[Mutation] = []
    while len(chosen) < number and any(by_kind.values()):
        for made in by_kind.values():
            if made and len(chosen) < number:
                chosen.append(made.pop())
    return chosen


def _encodings(rng: random.Random) -> Iterator[Mutation]:
    stems = rng.sample(FILES, 5)
    for stem, (what, change) in zip(stems, _BYTES.items(), strict=True):
        content = change((EXAMPLES / f"{stem}.yaml").read_bytes())
        yield Mutation(stem, "encoding", what, content, (f"{stem}.yaml",))


_BYTES: Final[dict[str, Callable[[bytes], bytes]]] = {
    "Latin-1": lambda text: text.replace(b"description: ", b"description: \xe9", 1),
    "UTF-16": lambda text: text.decode().encode("utf-16"),
    "a zero byte": lambda text: text.replace(b"stages:", b"stages:\0", 1),
    "a program": lambda text: b"\x7fELF\x02\x01" + bytes(range(256)),
    "half a character": lambda text: text + b"# \xe2\x82",
}


def _names(node: Any) -> list[str]:
    return [key.value for key, _ in node.value]


def write(folder: Path, mutation: Mutation) -> Path:
    """Writes the file of a mistake into a folder."""
    path = folder / f"{mutation.stem}.yaml"
    path.write_bytes(mutation.content)
    return path
