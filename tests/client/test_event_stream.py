from __future__ import annotations

from collections import deque

import pytest

from mcp_client_app.client.event_stream import EventStreamParser, ServerEvent
from mcp_client_app.exceptions import ResultTooLargeError

LIMIT = 1000


def parse(*chunks: bytes) -> list[ServerEvent]:
    parser = EventStreamParser(LIMIT)
    return [event for chunk in chunks for event in parser.feed(chunk)]


@pytest.mark.parametrize("ending", [b"\n", b"\r", b"\r\n"])
def test_every_kind_of_line_ending_ends_a_line(ending: bytes) -> None:
    stream = ending.join([b"data: one", b"", b"data: two", b"", b"data: three"])

    assert [event.data for event in parse(stream)] == [b"one", b"two"]


@pytest.mark.parametrize("ending", [b"\n", b"\r", b"\r\n"])
def test_the_events_do_not_depend_on_how_the_stream_is_cut(ending: bytes) -> None:
    lines = [
        b"\xef\xbb\xbfid: 7",
        b"event: note",
        b"data: a",
        b"data:  b",
        b": comment",
        b"",
        b"data: c",
        b"",
        b"",
    ]
    stream = ending.join(lines)
    whole = [ServerEvent(b"a\n b", "note", "7"), ServerEvent(b"c", "message", "7")]

    assert parse(stream) == whole
    assert parse(*(stream[i : i + 1] for i in range(len(stream)))) == whole
    for cut in range(len(stream)):
        assert parse(stream[:cut], stream[cut:]) == whole


def test_a_field_without_a_colon_has_an_empty_value() -> None:
    assert parse(b"data\ndata\n\n") == [ServerEvent(b"\n")]


def test_unknown_fields_and_comments_are_skipped() -> None:
    assert parse(b": hello\nfoo: bar\nDATA: no\ndata: yes\n\n") == [ServerEvent(b"yes")]


def test_an_event_without_data_is_none_but_moves_the_position() -> None:
    parser = EventStreamParser(LIMIT)

    assert parser.feed(b"id: 4\nretry: 250\n\n") == []
    assert (parser.last_event_id, parser.retry) == ("4", 250)


def test_an_event_that_was_cut_off_moves_nothing() -> None:
    parser = EventStreamParser(LIMIT)

    assert parser.feed(b"id: 1\ndata: a\n\nid: 2\ndata: b\n") == [ServerEvent(b"a", "message", "1")]
    assert parser.last_event_id == "1"


def test_an_id_with_nul_is_ignored_and_an_empty_one_clears_the_position() -> None:
    parser = EventStreamParser(LIMIT)

    parser.feed(b"id: 1\n\nid: 2\0\n\n")
    assert parser.last_event_id == "1"

    parser.feed(b"id:\n\n")
    assert parser.last_event_id is None


@pytest.mark.parametrize("value", [b"soon", b"-5", b"1.5", b""])
def test_a_retry_that_is_no_number_is_ignored(value: bytes) -> None:
    parser = EventStreamParser(LIMIT)

    parser.feed(b"retry: " + value + b"\n\n")

    assert parser.retry is None


def test_a_byte_order_mark_is_skipped_only_at_the_start() -> None:
    bom = b"\xef\xbb\xbf"

    assert parse(bom + b"data: a\n\n" + bom + b"data: b\n\n") == [ServerEvent(b"a")]


@pytest.mark.parametrize(
    "chunks",
    [
        pytest.param([b"data: " + b"x" * LIMIT + b"\n\n"], id="in one piece"),
        pytest.param([b"data: ", *[b"x" * 100] * 11], id="without an end"),
        pytest.param([b"data: xxxxxxxxx\n"] * 101, id="in many lines"),
    ],
)
def test_an_event_over_the_limit_is_refused(chunks: list[bytes]) -> None:
    parser = EventStreamParser(LIMIT, server="docs")

    with pytest.raises(ResultTooLargeError, match="'docs'") as caught:
        deque(map(parser.feed, chunks))

    assert caught.value.limit == LIMIT
    assert caught.value.size is not None
    assert caught.value.size > LIMIT


def test_the_limit_holds_for_each_event_and_not_for_the_stream() -> None:
    assert len(parse(*[b"data: " + b"x" * 900 + b"\n\n"] * 50)) == 50


def test_a_continued_stream_knows_where_it_was_and_forgets_half_an_event() -> None:
    parser = EventStreamParser(LIMIT)
    parser.feed(b"id: 9\nretry: 10\ndata: a\n\ndata: half")

    parser = parser.continued()

    assert (parser.last_event_id, parser.retry) == ("9", 10)
    assert parser.feed(b"data: b\n\n") == [ServerEvent(b"b", "message", "9")]
