"""Makes the golden keys beside it with Python clkhash 0.18.3, the program that they are compared with.

    python -m venv venv && venv/bin/pip install clkhash==0.18.3 && venv/bin/python make.py

Each file holds a linkage schema, a secret, rows, their CLKs as clkhash serialises them, and rows that clkhash refuses, each
on its own. The files `shipped-*.json` have schemas of clkhash's own (its tests and documentation, Apache-2.0): their schemas and
rows stand in them, and only their CLKs are made.
"""

import json
import pathlib
from copy import deepcopy

from clkhash import clk
from clkhash.schema import from_json_dict
from clkhash.serialization import serialize_bitarray

HERE = pathlib.Path(__file__).parent
SALT = "SCbL2zHNnmsckfzchsNkZY9XoHk96P/G5nUBrM7ybymlEFsMV6PAeDZCNp3rfNUPCtLDMOGQHG4pCQpfhiHCyA=="
INFO = "c2NoZW1hX2V4YW1wbGU="
DOUBLE = {"type": "doubleHash"}
SAFE = {"type": "doubleHash", "prevent_singularity": True}
BLAKE = {"type": "blakeHash"}


def schema(features, l=1024, kdf=None, **config):
    kdf = {"type": "HKDF", "hash": "SHA256", "salt": SALT, "info": INFO, "keySize": 64} if kdf is None else kdf
    return {"version": 3, "clkConfig": {"l": l, "kdf": kdf, **config}, "features": features}


def feature(identifier, format, comparison, strategy, hash=None, missing=None):
    hashing = {"comparison": comparison, "strategy": strategy}
    if hash is not None:
        hashing["hash"] = hash
    if missing is not None:
        hashing["missingValue"] = missing
    return {"identifier": identifier, "format": format, "hashing": hashing}


def ngram(n, positional=None):
    return {"type": "ngram", "n": n} | ({} if positional is None else {"positional": positional})


def numeric(distance, resolution, precision=None):
    made = {"type": "numeric", "thresholdDistance": distance, "resolution": resolution}
    return made | ({} if precision is None else {"fractional_precision": precision})


def text(**rules):
    return {"type": "string", **rules}


def token(bits):
    return {"bitsPerToken": bits}


def whole(bits):
    return {"bitsPerFeature": bits}


EXACT = {"type": "exact"}
NA = {"sentinel": "NA"}

# Name -> schema, rows that are encoded, rows that are refused.
CASES = {
    "text": (
        schema([
            feature("given", text(encoding="utf-8"), ngram(2), token(10), BLAKE),
            feature("surname", text(case="lower", minLength=2, maxLength=12), ngram(3, False), whole(200)),
            feature("code", text(pattern=r"[A-Z]{2}\d{3,}"), ngram(1, True), token(40)),
            {"identifier": "id", "ignored": True, "description": "not a key"},
            feature("note", text(case="upper"), EXACT, whole(70)),
        ]),
        [
            ["Anna", "smith", "AB123", "1", "X"],
            ["", "öz", "ZZ٣٤٥", "", ""],
            ["Łukasz", "straße", "QQ000000000", "NA", "STRASSE"],
            ["安倍 晋三", "ος", "AA999", "x", "ΌΣΟΣ"],
            ["हिन्दी 😀", "aa aa", "AA111", "\n", "Ⅳ A"],
            ["a", "aaaaaaaaaaaa", "AB1234567890", "", "𐐀"],
            ["e\u0301", "i̇i", "AB123", "", "½"],
        ],
        [
            ["Anna", "s", "AB123", "1", "X"],
            ["Anna", "Smith", "AB123", "1", "X"],
            ["Anna", "a" * 13, "AB123", "1", "X"],
            ["Anna", "οσ ὈΣ", "AB123", "1", "X"],
            ["Anna", "smith", "AB12", "1", "X"],
            ["Anna", "smith", "AB123\n", "1", "X"],
            ["Anna", "smith", " AB123", "1", "X"],
            ["Anna", "smith", "AB123", "1", "ß"],
            ["Anna", "smith", "AB123", "1", "x"],
        ],
    ),
    "double": (
        schema([
            feature("given", text(), ngram(2), token(15), DOUBLE),
            feature("surname", text(), ngram(2, True), whole(111), SAFE),
            feature("year", {"type": "integer", "minimum": -10, "maximum": 2030}, ngram(1, True), token(30), SAFE),
            feature("sex", {"type": "enum", "values": ["M", "F", ""]}, EXACT, token(60), {**DOUBLE, "prevent_singularity": False}),
            feature("mixed", text(), ngram(1), token(33), BLAKE),
        ], l=512, kdf={"type": "HKDF", "hash": "SHA512", "info": INFO, "keySize": 33}),
        [
            ["Anna", "Smith", "1999", "M", "x"],
            ["", "", " +0_7 ", "", ""],
            ["José", "Ñ", "-10", "F", "€"],
            ["Τάκης", "Παπαδόπουλος-Παπαδοπούλου", "٢٠٢٠", "F", "λλλ"],
        ],
        [
            ["Anna", "Smith", "-11", "M", "x"],
            ["Anna", "Smith", "2031", "M", "x"],
            ["Anna", "Smith", "9" * 50, "M", "x"],
            ["Anna", "Smith", "", "M", "x"],
            ["Anna", "Smith", "19 99", "M", "x"],
            ["Anna", "Smith", "1999.0", "M", "x"],
            ["Anna", "Smith", "1999", "m", "x"],
        ],
    ),
    "numbers": (
        schema([
            feature("age", {"type": "integer"}, numeric(5, 10), token(7)),
            feature("height", text(), numeric(0.25, 4, 3), whole(150)),
            feature("money", text(), numeric(12.5, 3, 0), token(5), DOUBLE),
            feature("tiny", text(), numeric(3, 1, 2), whole(2)),
            feature("half", text(), numeric(1.5, 2), token(11)),
        ], l=2048, kdf={"type": "HKDF"}),
        [
            ["21", "1.75", "1000", "0.005", "2.5"],
            ["-21", "-1.7505", "-999.99", "-0.015", "-2.5"],
            ["0", "0", "1_000", "0", "0"],
            ["+0012", " 1e-3 ", "1e3", "", "3.9"],
            ["123456789012345678901234", "1e20", "123456789012345678901234", "1e25", "٣.٥"],
            ["7", "1.0625", "12.5", "2.675", ".5"],
            ["8", "1.0624999", "13", "1.005", "-.5"],
            ["9", "-0", "-0.0", "-3", "1."],
        ],
        [["7.5", "1", "1", "1", "1"], ["", "1", "1", "1", "1"]],
    ),
    "dates": (
        schema([
            feature("born", {"type": "date", "format": "%Y-%m-%d"}, ngram(1, True), token(12)),
            feature("seen", {"type": "date", "format": "%d %b  %y, %H:%M"}, ngram(2), whole(90), None, {"sentinel": "", "replaceWith": "1/1/1900"}),
            feature("long", {"type": "date", "format": "%A %d. %B %Y %I:%M:%S.%f %p (100%%)"}, EXACT, token(99), DOUBLE, NA),
            feature("day", {"type": "date", "format": "%Y%j"}, numeric(30, 5), token(3), BLAKE, {"sentinel": "?", "replaceWith": ""}),
            feature("short", {"type": "date", "format": "%d%m"}, ngram(1, True), token(4), BLAKE),
        ], l=256, xor_folds=2, kdf={"type": "HKDF", "hash": "SHA256", "salt": "", "keySize": 1}),
        [
            ["1999-12-31", "5 Jan 68, 7:05", "Monday 1. may 2001 12:00:00.5 am (100%)", "2000366", "0101"],
            ["0999-01-02", "05\tMAR \n69, 07:59", "sunday 31. December 1999 01:59:59.123456 PM (100%)", "2001366", "311"],
            ["2024-2-29", "", "NA", "?", "2812"],
            ["٢٠٢٤-2-29", " 9 sep 00, 23:00", "NA", "20011", "112"],
            ["0001-01-01", "31 May 99, 0:0", "NA", "1900060", "111"],
        ],
        [
            ["1999-02-29", "", "NA", "?", "0101"],
            ["1999-13-01", "", "NA", "?", "0101"],
            ["0000-01-01", "", "NA", "?", "0101"],
            ["1999-12-31 ", "", "NA", "?", "0101"],
            ["99-12-31", "", "NA", "?", "0101"],
            ["1999/12/31", "", "NA", "?", "0101"],
            ["", "", "NA", "?", "0101"],
            ["1999-12-31", "5 Jan68, 7:05", "NA", "?", "0101"],
            ["1999-12-31", "5 Jän 68, 7:05", "NA", "?", "0101"],
            ["1999-12-31", "32 Jan 68, 7:05", "NA", "?", "0101"],
            ["1999-12-31", "", "Monday 1. May 2001 12:00:60.5 AM (100%)", "?", "0101"],
            ["1999-12-31", "", "", "?", "0101"],
            ["1999-12-31", "", "NA", "2001367", "0101"],
            ["1999-12-31", "", "NA", "2001000", "0101"],
            ["1999-12-31", "", "NA", "?", "2902"],
        ],
    ),
    "encodings": (
        schema([
            feature("ascii", text(encoding="ascii"), ngram(2), token(10), DOUBLE, {"sentinel": "ä", "replaceWith": "ae"}),
            feature("sixteen", text(encoding="utf-16", pattern=r"(?i)[\w\s.-]*|\x21+"), ngram(2), token(10)),
            feature("thirtytwo", text(encoding="utf-32", maxLength=3), ngram(2, True), whole(321), SAFE),
            feature("gone", text(minLength=5), ngram(4), token(3), BLAKE, {"sentinel": "NA", "replaceWith": "x"}),
            feature("kept", {"type": "integer"}, ngram(1), token(8), BLAKE, {"sentinel": "none"}),
        ], l=128, xor_folds=3, kdf={"type": "HKDF", "hash": "SHA512", "salt": "QR=="}),
        [
            ["Anna", "Grüße 1.5", "😀😀😀", "NA", "none"],
            ["ä", "", "", "abcde", "-5"],
            ["~", "𝒳 ½", "á̂", "ねこねこね", "00"],
            [" ", "!!!", " ", "NA", "7"],
        ],
        [
            ["é", "x", "x", "NA", "none"],
            ["x", "हिन्दी", "x", "NA", "none"],
            ["x", "x!", "x", "NA", "none"],
            ["x", "x", "😀😀😀😀", "NA", "none"],
            ["x", "x", "x", "abcd", "none"],
            ["x", "x", "x", "na", "none"],
            ["x", "x", "x", "NA", "None"],
        ],
    ),
    # A filter whose length is no power of two, for doubleHash only, and a step of zero that is drawn anew.
    "lengths": (
        schema([
            feature("a", text(), ngram(2), token(3), SAFE),
            feature("b", text(), ngram(2), token(3), DOUBLE),
        ], l=192, xor_folds=0, kdf={"type": "HKDF", "keySize": 100}),
        [[f"{number:x}" * 3, f"{number * 7919:o}"] for number in range(40)],
        [],
    ),
    # Filters longer than 16 bits reach: their upper part stays empty. The value sets more bits than one digest has.
    "long": (
        schema([feature("a", text(), ngram(2), whole(5000), BLAKE), feature("b", text(), EXACT, token(700))], l=65536, xor_folds=1),
        [["Anna", "x"], ["", ""]],
        [],
    ),
    "patterns": (
        schema([
            feature("a", text(pattern=r"^(?:[^\W\d_]+|[]a^-]{2}|[[&&~]{,2})$"), EXACT, token(9)),
            feature("b", text(pattern=r"(?P<x>a{2}|a{x}|{|}|\.|\u0041\x42|[+--]){1,2}?"), EXACT, token(9)),
            feature("c", text(pattern=r"\A(a|ab)(c|bcd)*.?\Z"), EXACT, token(9)),
            feature("d", text(pattern=r"[\d\S]\s\D[^\s\d]?"), EXACT, token(9)),
        ], l=64, xor_folds=1),
        [
            ["été", "aa", "abcd", "1 x"],
            ["^-", "a{x}", "ac", "x\x1cy"],
            ["a]", "{", "ab", "x\u2003 z"],
            ["[&", "}+", "abcbcdx", "٣\tab"],
            ["", ",", "a", "½ ½"],
            ["~[", "..", "abbcd", "1\n\n"],
            ["日½", "AB-", "abc", "- -_"],
        ],
        [
            ["a1", "aa", "a", "1 x"],
            ["a_", "aa", "a", "1 x"],
            ["^", "aa", "a", "1 x"],
            ["&&&", "aa", "a", "1 x"],
            ["नि", "aa", "a", "1 x"],
            ["a\n", "aa", "a", "1 x"],
            ["a", "aaaaa", "a", "1 x"],
            ["a", "ab", "a", "1 x"],
            ["a", "", "a", "1 x"],
            ["a", "+,-", "a", "1 x"],
            ["a", "aa", "a\n", "1 x"],
            ["a", "aa", "axx", "1 x"],
            ["a", "aa", "a", "1x"],
            ["a", "aa", "a", "1 1"],
            ["a", "aa", "a", "1 x\n"],
        ],
    ),
}


def encode(dictionary, rows, secret):
    made = from_json_dict(deepcopy(dictionary))
    return [serialize_bitarray(filter) for filter in clk.generate_clks(rows, made, secret, max_workers=1)]


def refused(dictionary, row, secret):
    try:
        encode(dictionary, [row], secret)
    except Exception:
        return True
    return False


def write(path, dictionary, rows, bad, secret):
    for row in bad:
        assert refused(dictionary, row, secret), row
    clks = encode(dictionary, rows, secret) if rows else []
    made = {"schema": dictionary, "secret": secret, "rows": rows, "clks": clks, "refused": bad}
    path.write_text(json.dumps(made, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    print(path.name, len(rows), len(bad))


def main():
    secrets = ["secret", "", "pässwörd", "s" * 200]
    for at, (name, (dictionary, rows, bad)) in enumerate(CASES.items()):
        write(HERE / f"{name}.json", dictionary, rows, bad, secrets[at % len(secrets)])
    for path in sorted(HERE.glob("shipped-*.json")):
        made = json.loads(path.read_text(encoding="utf-8"))
        write(path, made["schema"], made["rows"], made["refused"], made["secret"])


if __name__ == "__main__":
    main()
