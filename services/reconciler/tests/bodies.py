"""Generates bodies that webhooks may answer: nearly valid, invalid in one place, or garbage. A seed repeats them."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Final

KEYS: Final = (
    *('"status"', '"children"', '"resyncAfterSeconds"', '"finalized"'),
    *('"childern"', '"Status"', '"st\\u0061tus"', '""', '"\\u0000"', '"\\ud83d\\ude00"', '"\\ud800"', '"kind"', '"metadata"'),
)
NUMBERS: Final = (
    *("0", "-0", "1", "-1", "2.0", "2e0", "-0.0", "1.5", "1e5", "1E+2", "1e-7", "0.1", "1e308", "-1e308", "1e309", "1e-999", "01", "+1"),
    *("9007199254740993", "9007199254740993.0", "9223372036854775807", "9223372036854775808", "-9223372036854775809"),
    *(
        "18446744073709551616",
        "1" * 40,
        "9" * 400,
        "9" * 5000,
        "0." + "1" * 5000,
        "NaN",
        "Infinity",
        "-Infinity",
        "0x10",
        "1_000",
        ".5",
        "1.",
    ),
)
TEXTS: Final = (
    *(
        '""',
        '"v1"',
        '"Pod"',
        '"a"',
        '"null"',
        '"true"',
        '"\\""',
        '"\\\\"',
        '"\\u0000"',
        '"\\ud83d\\ude00"',
        '"\\ud800"',
        '"\\udc00\\ud800"',
    ),
    *('"é"', '"日本"', '"\u2028"', '":2.0"', '"{[{["', '"\\x"', '"\\u12"', '"\t"', '"unfinished', "'single'", '"' + "x" * 2000 + '"'),
)
WORDS: Final = ("null", "true", "false", "None", "nul", "undefined", "", "[]", "{}", "[null]", "[{}]")
BLANKS: Final = ("", "", "", "", " ", "\n", "\t", "\r\n", "\x0b", "\u00a0", " " * 50, "//c", "\ufeff")
BYTES: Final = (
    b"\x00",
    b"\xff",
    b"\xed\xa0\x80",
    b"\xc0\x80",
    b"\xef\xbb\xbf",
    b"\xff\xfe{\x00}\x00",
    b"\\",
    b'"',
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
)
DEPTHS: Final = (2, 10, 100, 126, 127, 128, 129, 253, 254, 255, 1000, 1023, 1025, 20_000)


class Bodies:
    """An endless series of bodies."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._kinds: Sequence[tuple[int, Callable[[], bytes]]] = (
            (50, self._answer),
            (30, self._damaged),
            (15, self._any_value),
            (3, self._noise),
            (2, self._deep),
        )

    def next(self) -> bytes:
        """The next body."""
        weights, makers = zip(*self._kinds, strict=True)
        return self._random.choices(makers, weights)[0]()

    def _answer(self) -> bytes:
        """An answer with at most a few oddities."""
        parts = {
            '"status"': self._object,
            '"children"': self._children,
            '"resyncAfterSeconds"': self._number,
            '"finalized"': lambda: self._random.choice(("true", "false", "null")),
        }
        fields = [f"{key}:{make()}" for key, make in parts.items() if self._is(0.5)]
        if self._is(0.2):
            fields.append(f"{self._random.choice(KEYS)}:{self._value(2)}")
        self._random.shuffle(fields)
        return self._padded("{" + ",".join(fields) + "}")

    def _damaged(self) -> bytes:
        """An answer with some bytes removed, repeated, changed or added."""
        body = bytearray(self._answer())
        for _ in range(self._random.randint(1, 3)):
            at = self._random.randrange(len(body) + 1)
            end = min(len(body), at + self._random.choice((1, 1, 1, 5, len(body))))
            match self._random.randrange(5):
                case 0:
                    del body[at:end]
                case 1:
                    body[at:at] = body[at:end]
                case 2:
                    body[at:at] = self._random.choice(BYTES)
                case 3:
                    body[at:end] = self._random.randbytes(end - at)
                case _:
                    body[at:end] = body[at:end].swapcase()
        return bytes(body)

    def _any_value(self) -> bytes:
        return self._padded(self._value(4))

    def _noise(self) -> bytes:
        return self._random.randbytes(self._random.randrange(64))

    def _deep(self) -> bytes:
        """Nested containers, closed or not, somewhere in an answer."""
        depth = self._random.choice(DEPTHS)
        opening, closing = self._random.choice((("[", "]"), ('{"a":', "}"), ('[{"status":', "}]")))
        inner = opening * depth + self._random.choice(("1", "null", "")) + closing * (depth if self._is(0.9) else depth - 1)
        return self._random.choice(('{{"status":{{"a":{}}}}}', '{{"children":[{{"kind":"A","a":{}}}]}}', "{}")).format(inner).encode()

    def _children(self) -> str:
        if self._is(0.1):
            return self._value(2)
        return f"[{','.join(self._child() for _ in range(self._random.randrange(4)))}]"

    def _child(self) -> str:
        if self._is(0.1):
            return self._value(2)
        kind = self._random.choice(('"Pod"', '"Pod"', '"Pod"', '"A"', '""', "null", "1"))
        return f'{{"apiVersion":"v1","kind":{kind},"metadata":{self._object()},"data":{self._value(2)}}}'

    def _value(self, depth: int) -> str:
        match self._random.randrange(6 if depth else 4):
            case 0:
                return self._number()
            case 1 | 2:
                return self._text()
            case 3:
                return self._random.choice(WORDS) if self._is(0.3) else "null"
            case 4:
                return self._object(depth)
            case _:
                return f"[{','.join(self._blank() + self._value(depth - 1) for _ in range(self._random.randrange(4)))}]"

    def _object(self, depth: int = 2) -> str:
        fields = (f"{self._key()}{self._blank()}:{self._value(depth - 1)}" for _ in range(self._random.randrange(4)))
        return "{" + ",".join(fields) + "}"

    def _key(self) -> str:
        return self._random.choice(KEYS) if self._is(0.3) else f'"k{self._random.randrange(9)}"'

    def _number(self) -> str:
        return self._random.choice(NUMBERS) if self._is(0.3) else str(self._random.randrange(100))

    def _text(self) -> str:
        return self._random.choice(TEXTS) if self._is(0.2) else f'"t{self._random.randrange(99)}"'

    def _blank(self) -> str:
        return self._random.choice(BLANKS) if self._is(0.05) else ""

    def _padded(self, text: str) -> bytes:
        return f"{self._blank()}{text}{self._blank()}".encode()

    def _is(self, chance: float) -> bool:
        return self._random.random() < chance
