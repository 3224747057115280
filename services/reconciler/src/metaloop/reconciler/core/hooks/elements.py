"""Splits a large JSON object at the elements of one of its lists, so that each can be parsed by itself.

The parser holds the interpreter for as long as it runs: for a body of 100 MiB, that is a quarter of a second in which
nothing else happens in this process, whatever thread it runs in.

Rules
    1. Only the elements that are objects are cut out, of the list under one key of the outermost object.
    2. What is left is the *frame*: the body with `{}` in place of each such element. If the frame and all elements are
       JSON, the body is JSON, and the value is the same.
    3. A body that is cut in any other way is malformed, or has the key twice. It is not split.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from metaloop.common.json import JSONDecodeError, JsonValue, is_array, is_object, loads

_TOKEN: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{}]', re.DOTALL)
"""A string, or a bracket outside of strings."""
_QUOTE, _LIST, _OBJECT, _END_OF_OBJECT = b'"[{}'
_DEPTH_OF_ELEMENTS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyParts:
    """A body, and where the elements of its list are."""

    body: bytes
    key: str
    spans: Sequence[slice]

    @property
    def frame(self) -> bytes:
        """The body with `{}` in place of each element."""
        parts, end = list[bytes](), 0
        for span in self.spans:
            parts += (self.body[end : span.start], b"{}")
            end = span.stop
        return b"".join((*parts, self.body[end:]))

    def joined(self) -> JsonValue:
        """The value of the body, each element parsed by itself. Raises JSONDecodeError for a body that is not JSON."""
        try:
            frame = loads(self.frame)
            elements = map(loads, map(self.body.__getitem__, self.spans))
            listed = frame.get(self.key) if is_object(frame) else None
            if is_object(frame) and is_array(listed) and sum(map(is_object, listed)) == len(self.spans):
                return {**frame, self.key: [next(elements) if is_object(each) else each for each in listed]}
        except JSONDecodeError:
            pass  # of the body as a whole, the parser says where it is malformed
        return loads(self.body)


def split_at(body: bytes, key: str) -> BodyParts:
    """`body`, split at the elements of the list under `key`."""
    return BodyParts(body=body, key=key, spans=[*_spans(body, b'"%s"' % key.encode())])


def _spans(body: bytes, quoted_key: bytes) -> Iterator[slice]:
    depth, start, is_in_list, last_string = 0, 0, False, b""
    for token in _TOKEN.finditer(body):
        first = body[token.start()]
        if first == _QUOTE:
            if depth == 1:
                last_string = token[0]
        elif first in {_LIST, _OBJECT}:
            depth += 1
            if depth == _DEPTH_OF_ELEMENTS - 1:
                is_in_list = first == _LIST and last_string == quoted_key
            elif depth == _DEPTH_OF_ELEMENTS and is_in_list:
                start = token.start()
        else:
            if depth == _DEPTH_OF_ELEMENTS and is_in_list and first == _END_OF_OBJECT and body[start] == _OBJECT:
                yield slice(start, token.end())
            depth -= 1
