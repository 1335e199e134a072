from __future__ import annotations

import gc
import json
import math
import random
import subprocess
import sys
from typing import Any

import pytest

from mcp_client_app import json_codec
from tests.stored import ROOT


@pytest.mark.parametrize(
    "number", [2**53 + 1, 2**63, 2**64, 10**18, 10**19, 10**40, -(2**63) - 1, -(10**30), 0.1, 1e300]
)
def test_numbers_come_out_exactly(number: float):
    text = json.dumps({"n": number}).encode()
    value = json_codec.loads(text)["n"]
    assert value == number
    assert type(value) is type(number)


def test_long_numbers_within_strings_and_fractions_do_no_harm():
    assert json_codec.loads(b'{"id":"12345678901234567890","f":0.12345678901234567890}') == {
        "id": "12345678901234567890",
        "f": 0.12345678901234568,
    }


@pytest.mark.parametrize("size", [262_144, 2 * 262_144, 1_048_576])
@pytest.mark.parametrize("shift", range(-40, 20, 3))
def test_a_long_number_is_exact_wherever_it_stands_in_a_large_text(size: int, shift: int):
    """Large texts are looked through in slices; the number may lie across two."""
    text = b'["%s",123456789012345678901]' % (b"x" * (size + shift))

    assert json_codec.loads(text)[1] == 123456789012345678901


@pytest.mark.parametrize("text", [b"[" + b"1," * 700_000 + b"1]", b"[" + b"1," * 700_000])
def test_the_search_for_garbage_goes_on_after_a_large_text(text: bytes):
    try:
        json_codec.loads(text)
    except ValueError:
        assert text.endswith(b",")
    assert gc.isenabled()


def test_a_child_that_is_forked_meanwhile_searches_for_garbage():
    """Another thread gets its turn when the text is decoded, and before the search goes on."""
    code = """
import gc, os, threading, orjson
from mcp_client_app import json_codec

decode, statuses = orjson.loads, []

def fork():
    child = os.fork()
    if child == 0:
        os._exit(0 if gc.isenabled() else 1)
    statuses.append(os.waitpid(child, 0)[1])

def interrupted(data):
    value = decode(data)
    thread = threading.Thread(target=fork)
    thread.start()
    thread.join()
    return value

orjson.loads = interrupted
json_codec.loads(b"[" + b"1," * 700_000 + b"1]")
assert statuses == [0], statuses
assert gc.isenabled()
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, cwd=ROOT)


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_what_is_no_number_becomes_none(constant: str):
    assert json_codec.loads(f'{{"a":[{constant}]}}'.encode()) == {"a": [None]}


@pytest.mark.parametrize("padding", ["", "x" * 262_118, "x" * 262_125, "x" * 262_135])
@pytest.mark.parametrize(
    "number", ["1e999", "-1E+400", "12.5e0309", f"{'9' * 17}.5e+308", "9" * 400 + ".5", "1e999,NaN"]
)
def test_a_number_that_no_float_can_hold_becomes_none(number: str, padding: str):
    """Others would turn it into Infinity, which databases and other parsers refuse."""
    assert json_codec.loads(f'["{padding}",{number}]'.encode())[1] is None
    assert json_codec.loads(number.partition(",")[0].encode()) is None


def test_large_and_small_exponents_come_out_exactly_and_text_like_them_stays():
    text = '{"a":[1e300,-1.5E+300,1e-999,2e+16],"b":"1e999"}'
    assert json_codec.loads(text.encode()) == {"a": [1e300, -1.5e300, 0.0, 2e16], "b": "1e999"}


def test_lone_surrogates_become_the_replacement_character_in_keys_too():
    assert json_codec.loads(rb'{"\ud800":"a\udfffb"}') == {"�": "a�b"}
    assert json_codec.loads(rb'"\ud83d\ude00"') == "😀"


def test_nul_stays_until_it_is_scrubbed():
    value = json_codec.loads(rb'{"a\u0000":["\u0000b"]}')
    assert value == {"a\0": ["\0b"]}
    assert json_codec.scrub(value) == {"a�": ["�b"]}
    assert json_codec.scrub({"x": ("\ud800", 1, None)}) == {"x": ["�", 1, None]}


@pytest.mark.parametrize("text", [b"", b"  ", b"{", b"not json", b'{"a":1}x', b"\xff\xfe", b"[" * 100_000])
def test_what_is_no_json_is_a_value_error(text: bytes):
    with pytest.raises(ValueError):  # noqa: PT011 - the kind is all that is promised
        json_codec.loads(text)


def test_bytes_that_are_no_utf8_within_a_text_and_a_byte_order_mark_are_no_obstacle():
    assert json_codec.loads(b'{"text":"caf\xe9"}') == {"text": "caf�"}
    assert json_codec.loads(b'\xef\xbb\xbf{"a":1}') == {"a": 1}


def test_an_integer_that_is_too_long_to_convert_is_none():
    assert json_codec.loads(b'{"a":%s,"b":-1}' % (b"9" * 100_000)) == {"a": None, "b": -1}


@pytest.mark.parametrize("beside", ["", ",12345678901234567890123", ",NaN"])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_text_is_refused_from_a_depth_on_that_could_break_who_walks_it(
    opening: str, closing: str, beside: str
):
    def nested(depth: int) -> bytes:
        return f"[{opening * (depth - 1)}1{closing * (depth - 1)}{beside}]".encode()

    value = json_codec.loads(nested(json_codec.DEEPEST))
    json_codec.scrub(value)
    json_codec.dumps(value)
    for depth in (json_codec.DEEPEST + 1, 500, 900, 1020, 1100, 100_000):
        with pytest.raises(ValueError, match=r"nested too deeply|[Rr]ecursion|Expecting"):
            json_codec.loads(nested(depth))


def test_many_brackets_side_by_side_are_not_deep():
    assert json_codec.loads(b"[" + b"[1]," * 5000 + b"{}]")[4999:] == [[1], {}]


def test_what_cannot_be_encoded_plainly_is_encoded_all_the_same():
    assert json.loads(json_codec.dumps({"big": 10**30, "odd": "a\ud800"})) == {"big": 10**30, "odd": "a�"}
    assert json_codec.dumps({1: "a"}) == b'{"1":"a"}'


def circular() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize("value", [object(), {"a": {1, 2}}, [b"bytes"], circular(), [10**30, object()]])
def test_what_has_no_json_form_is_a_type_error(value: Any):
    with pytest.raises(TypeError):
        json_codec.dumps(value)


def test_what_is_encoded_never_holds_what_other_parsers_refuse():
    assert json_codec.dumps([math.nan, math.inf]) == b"[null,null]"
    assert b"NaN" not in json_codec.dumps({"n": math.nan, "big": 10**30, "odd": "\ud800"})


def test_equal_values_have_equal_canonical_forms():
    assert json_codec.canonical({"b": 1, "a": {"d": 2, "c": 3}}) == b'{"a":{"c":3,"d":2},"b":1}'
    assert json_codec.canonical({"b": 10**30, "a": 1}) == json_codec.canonical({"a": 1, "b": 10**30})


@pytest.mark.parametrize("seed", range(30))
def test_whatever_is_encoded_is_decoded_to_the_same(seed: int):
    chance = random.Random(seed)

    def value(depth: int) -> Any:
        kinds = "isfbn" if depth == 0 else "isfbndl"
        match chance.choice(kinds):
            case "i":
                return chance.choice([0, -1, 2**53 + 1, 2**64, 10**25, -(10**19)])
            case "s":
                return "".join(chance.choices('aé😀"\\\n\0/', k=chance.randrange(8)))
            case "f":
                return chance.uniform(-1e6, 1e6)
            case "b":
                return chance.random() < 0.5
            case "n":
                return None
            case "d":
                return {f"k{n}": value(depth - 1) for n in range(chance.randrange(4))}
            case _:
                return [value(depth - 1) for _ in range(chance.randrange(4))]

    original = value(5)
    assert json_codec.loads(json_codec.dumps(original)) == original
