from __future__ import annotations

import random

import pytest

from mcp_client_app.client.framing import LineSplitter, Oversized


def split(chunks: list[bytes], limit: int = 1000) -> list[bytes | Oversized]:
    splitter = LineSplitter(limit)
    found: list[bytes | Oversized] = []
    for chunk in chunks:
        found += splitter.feed(chunk)
    rest = splitter.flush()
    return found if rest is None else [*found, rest]


def test_a_line_is_yielded_as_soon_as_it_is_complete():
    splitter = LineSplitter(100)
    assert list(splitter.feed(b"one")) == []
    assert list(splitter.feed(b" more\ntwo\nthr")) == [b"one more", b"two"]
    assert splitter.flush() == b"thr"
    assert splitter.flush() is None


def test_blank_lines_are_lines():
    assert split([b"\n\na\n\n"]) == [b"", b"", b"a", b""]


@pytest.mark.parametrize("seed", range(50))
def test_lines_come_out_the_same_however_the_stream_is_cut(seed: int):
    chance = random.Random(seed)
    limit = chance.choice([10, 100, 5000])
    lines = [
        bytes(chance.choices(b"abc{}\r\xff", k=chance.choice([0, 1, 9, 10, 11, 99, 100, 101, 6000])))
        for _ in range(30)
    ]
    stream = b"\n".join(lines) + b"\n"
    cuts = sorted(chance.choices(range(len(stream) + 1), k=chance.choice([0, 1, 10, 500])))
    chunks = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    found = split(chunks, limit)
    assert len(found) == len(lines)
    for line, item in zip(lines, found, strict=True):
        if len(line) <= limit:
            assert item == line
        else:
            assert isinstance(item, Oversized)
            assert item.size == len(line)
            head, _, tail = item.edges.partition(b"\n")
            assert line.startswith(head)
            assert line.endswith(tail)
            assert len(tail) == min(4096, len(line))


def test_a_line_over_the_limit_is_skipped_with_its_ends_and_the_next_one_is_whole():
    long = b"<" + b"x" * 20_000 + b">"
    skipped, after = split([long[:5000], long[5000:15_000], long[15_000:] + b"\nafter\n"], limit=100)
    assert isinstance(skipped, Oversized)
    assert skipped.size == len(long)
    assert skipped.edges.startswith(b"<x")
    assert skipped.edges.endswith(b"x>")
    assert after == b"after"


def test_an_unfinished_line_over_the_limit_is_told_at_the_end():
    (skipped,) = split([b"x" * 300], limit=100)
    assert isinstance(skipped, Oversized)
    assert skipped.size == 300


def test_a_line_that_is_being_skipped_takes_no_memory():
    splitter = LineSplitter(1000)
    for _ in range(1000):
        assert list(splitter.feed(b"x" * 10_000)) == []
    assert len(splitter._head) + len(splitter._tail) <= 2 * 4096
    assert splitter._parts == []


def test_a_huge_line_in_small_pieces_is_joined_once():
    # Quadratic joining would take minutes here: the test's own time limit is the measure.
    chunks = [b"x" * 1000] * 50_000
    (line,) = split([*chunks, b"\n"], limit=100_000_000)
    assert line == b"x" * 50_000_000
