"""Fifty dialects of CSV and fifty of ARFF: each is read as stated, or refused with its line and a remedy."""

import numpy as np
import pytest

from orchestrator.datasets import DatasetError, arff_file, csv_file

NAN = None

Q = {"x": [1, 2], "y": ["p", "q"]}
"""What most files hold."""


def read(loader, content, options, folder):
    """Return features and labels as plain lists; missing values are None."""
    file = folder / options.pop("name", "t.csv" if loader is csv_file else "t.arff")
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    X, y = loader(str(file), **{"label": "y", **options})
    plain = X.astype(object).where(X.notna(), None).to_dict("list")
    return {**plain, "y": np.asarray(y).tolist()}


TEXT = "x,y\n1,p\n2,q\n"

CSV = {
    # how lines are divided
    "commas": (TEXT, {}, Q),
    "crlf": (TEXT.replace("\n", "\r\n"), {}, Q),
    "cr": (TEXT.replace("\n", "\r"), {}, Q),
    "no end": (TEXT[:-1], {}, Q),
    "blank lines": ("\nx,y\n\n1,p\n\n2,q\n\n", {}, Q),
    "semicolons": (TEXT.replace(",", ";"), {"sep": ";"}, Q),
    "blank lines alone": ("\n\n", {"sep": "auto"}, ["cannot read"]),
    "semicolons unsaid": (TEXT.replace(",", ";"), {}, ["line 1", 'sep: ";"']),
    "semicolons, decimal commas unsaid": ("x;y\n1,5;p\n2,5;q\n", {}, ["line 1", 'sep: ";"']),
    "decimal commas": (
        "x;y\n1,5;p\n2,5;q\n",
        {"sep": ";", "decimal": ","},
        {"x": [1.5, 2.5], "y": ["p", "q"]},
    ),
    "tabs in tsv": (TEXT.replace(",", "\t"), {"name": "t.tsv"}, Q),
    "tabs unsaid": (TEXT.replace(",", "\t"), {}, ["line 1", r'sep: "\t"']),
    "pipes unsaid": (TEXT.replace(",", "|"), {}, ["line 1", 'sep: "|"']),
    "no names, as a truth value": (TEXT, {"header": False}, ["header is false", "header: null"]),
    "names, as a truth value": (TEXT, {"header": True}, ["header is true", "header: 0"]),
    "a decimal sign, as a truth value": (TEXT, {"decimal": True}, ["decimal is true", "one character"]),
    "no decimal sign": (TEXT, {"decimal": None}, ["decimal is null", "one character"]),
    "two characters between thousands": (TEXT, {"thousands": "''"}, ["thousands", "one character"]),
    "a comment, as a truth value": (TEXT, {"comment": True}, ["comment is true", "one character"]),
    "a separator, as a truth value": (TEXT, {"sep": True}, ["sep is true", "sep: ';'"]),
    "one mark of two meanings": (TEXT, {"decimal": ",", "thousands": ","}, ["decimal and thousands", "','"]),
    "spaces unsaid": (TEXT.replace(",", "  "), {}, ["line 1", r"sep: '\s+'"]),
    "commas where semicolons are said": (TEXT, {"sep": ";"}, ["line 1", 'sep: ","']),
    "spaces": (TEXT.replace(",", "  "), {"sep": r"\s+"}, Q),
    "two characters": (TEXT.replace(",", "::"), {"sep": "::", "engine": "python"}, Q),
    "a footer": (TEXT + "end,\n", {"skipfooter": 1, "engine": "python"}, Q),
    "a separator to be found": (TEXT.replace(",", ";"), {"sep": None, "engine": "python"}, Q),
    "spaces after commas": (TEXT.replace(",", ", "), {}, ["line 1", "' y'"]),
    "spaces after commas said": (TEXT.replace(",", ", "), {"skipinitialspace": True}, Q),
    "comments": ("# note\n" + TEXT, {"comment": "#"}, Q),
    "skipped lines": ("a report\n" + TEXT, {"skiprows": 1}, Q),
    "longer rows": ("x,y\n1,p,5\n2,q,6\n", {}, ["line 2", "more values", "index_col"]),
    "one longer row": ("x,y\n1,p\n2,q,6\n", {}, ["line 3"]),
    "cut last line": ("y,x,z\np,1,2\nq,2", {}, ["line 3", "is incomplete"]),
    "commas at the end": ("x,y,\n1,p,\n2,q,\n", {}, Q),
    # quotes
    "quotes": ('"x","y"\n"1","p"\n"2","q"\n', {}, Q),
    "quoted separator": ('x,y\n1,"p,1"\n2,"q"\n', {}, {"x": [1, 2], "y": ["p,1", "q"]}),
    "quoted line": ('x,y\n1,"p\n1"\n2,\n', {}, ["line 4", "label"]),
    "doubled quotes": ('x,y\n1,"p""1"\n2,q\n', {}, {"x": [1, 2], "y": ['p"1', "q"]}),
    "single quotes": ("x,y\n1,'p,1'\n2,q\n", {"quotechar": "'"}, {"x": [1, 2], "y": ["p,1", "q"]}),
    # characters
    "utf-8 mark": (b"\xef\xbb\xbf" + TEXT.encode(), {}, Q),
    "utf-16": (TEXT.encode("utf-16"), {}, Q),
    "utf-16 said": (TEXT.encode("utf-16"), {"encoding": "utf-16"}, Q),
    "utf-16 of its order": (TEXT.encode("utf-16"), {"encoding": "utf-16-le"}, Q),
    "utf-16-be without mark": (TEXT.encode("utf-16-be"), {"encoding": "utf-16-be"}, Q),
    "utf-16 without mark, unsaid": (TEXT.encode("utf-16-le"), {}, ["encoding: utf-16-le"]),
    "utf-16 without mark or order": (TEXT.encode("utf-16-le"), {"encoding": "utf-16"}, ["utf-16-le"]),
    "utf-16 cut": (TEXT.replace("2,q\n", "2").encode("utf-16"), {}, ["line 3", "is incomplete"]),
    "utf-32": (TEXT.encode("utf-32"), {}, Q),
    "utf-8 called utf-16": (TEXT, {"encoding": "utf-16"}, ["leave out `encoding`"]),
    "utf-16 called latin-1": (TEXT.encode("utf-16"), {"encoding": "latin-1"}, ["leave out `encoding`"]),
    "latin-1 unsaid": ("x,y\n1,p\n2,é\n".encode("latin-1"), {}, ["line 3", "encoding: latin-1"]),
    "latin-1": ("x,y\n1,p\n2,é\n".encode("latin-1"), {"encoding": "latin-1"}, {"x": [1, 2], "y": ["p", "é"]}),
    "no such encoding": (TEXT, {"encoding": "utf-99"}, ["utf-99", "latin-1"]),
    "a spreadsheet": (b"PK\x03\x04" + bytes(40), {}, ["save it as CSV"]),
    # names of columns
    "no names": ("1,5,p\n2,6,q\n", {}, ["line 1", "header: null"]),
    "no names said": ("1,p\n2,q\n", {"header": None, "label": 1}, {0: [1, 2], "y": ["p", "q"]}),
    "two of one name": ("x,x,y\n1,2,p\n3,4,q\n", {}, ["line 1", "'x'", "different name"]),
    "numbers of rows": (",x,y\n0,1,p\n1,2,q\n", {}, Q),
    "names of rows of R": ('"","x","y"\n"Mazda",1,"p"\n"Fiat",2,"q"\n', {}, Q),
    "names of rows without a name": ('"x","y"\n"1",1,"p"\n"2",2,"q"\n', {"index_col": 0}, Q),
    "a name only": ("x,y\n", {}, ["no rows"]),
    # labels
    "numbers": ("x,y\n1,1\n2,-1\n", {}, {"x": [1, 2], "y": [1, -1]}),
    "leading zeros": ("x,y\n1,01\n2,1\n", {}, {"x": [1, 2], "y": ["01", "1"]}),
    "exponents": ("x,y\n1,1e3\n2,1000\n", {}, {"x": [1, 2], "y": ["1e3", "1000"]}),
    "signs": ("x,y\n1,+1\n2,-1\n", {}, {"x": [1, 2], "y": ["+1", "-1"]}),
    "signs as numbers": ("x,y\n1,+1\n2,-1\n", {"label_type": "number"}, {"x": [1, 2], "y": [1, -1]}),
    "one and 1.0": ("x,y\n1,1\n2,1.0\n", {}, {"x": [1, 2], "y": ["1", "1.0"]}),
    "truth": ("x,y\n1,true\n2,TRUE\n", {}, {"x": [1, 2], "y": ["true", "TRUE"]}),
    "a space": ("x,y\n1,a\n2,a \n", {}, {"x": [1, 2], "y": ["a", "a "]}),
    "a merge": ("x,y\n1,2\n\n3,1\n2,01\n", {"label_type": "number"}, ["'01'", "'1'", "line 4", "line 5"]),
    "no number": ("x,y\n1,1\n2,one\n", {"label_type": "number"}, ["line 3", "'one'", "label_type: text"]),
    "numbers as text": ("x,y\n1,1\n2,2\n", {"label_type": "text"}, {"x": [1, 2], "y": ["1", "2"]}),
    "NA": ("x,y\n1,EU\n2,NA\n", {}, ["line 3", "NA", "label_type: text"]),
    "NA as text": ("x,y\n1,EU\n2,NA\n", {"label_type": "text"}, {"x": [1, 2], "y": ["EU", "NA"]}),
    "NA kept": ("x,y\n1,EU\n2,NA\n", {"keep_default_na": False}, {"x": [1, 2], "y": ["EU", "NA"]}),
    "no filter": ("x,y\n1,EU\n2,NA\n", {"na_filter": False}, {"x": [1, 2], "y": ["EU", "NA"]}),
    "a missing value of the file": (
        "x,y\n1,EU\n2,-\n",
        {"na_values": {"y": ["-"]}},
        ["line 3", "label_type"],
    ),
    "a missing number of the file": ("x,y\n1,1\n2,-9\n", {"na_values": -9}, ["line 3", "-9"]),
    "no label": ("x,y\n1,p\n2,\n", {"label_type": "text"}, ["line 3", "label"]),
    "large numbers": (
        f"x,y\n1,{2**53}\n2,{2**53 + 1}\n",
        {},
        {"x": [1, 2], "y": [2**53, 2**53 + 1]},
    ),
    "larger numbers": (f"x,y\n1,{2**70}\n2,0\n", {}, {"x": [1, 2], "y": [str(2**70), "0"]}),
    # features
    "truth of a feature": ("x,y\ntrue,p\nfalse,q\n", {}, {"x": [True, False], "y": ["p", "q"]}),
    "two spellings of truth": ("x,y\ntrue,p\nTRUE,q\n", {}, {"x": ["true", "TRUE"], "y": ["p", "q"]}),
    "zeros of categories": ("x,y\n01,p\n1,q\n", {"categories": ["x"]}, {"x": ["01", "1"], "y": ["p", "q"]}),
    "gaps": ("x,y\n,p\n2,q\n", {}, {"x": [NAN, 2], "y": ["p", "q"]}),
    # options
    "the label dropped": (TEXT, {"drop": ["y"]}, ["drop", "'y'"]),
    "a text for a list": (TEXT, {"drop": "x"}, ["drop: [x]"]),
    "a mapping for a list": (TEXT, {"categories": {"x": 1}}, ["categories: [x]"]),
    "no such option": (TEXT, {"encodin": "utf-8"}, ["encodin", "encoding"]),
    "no such type": (TEXT, {"label_type": "int"}, ["number", "'int'"]),
    "another engine": ("x,y\n1,01\n2,1\n", {"engine": "pyarrow"}, {"x": [1, 2], "y": ["01", "1"]}),
}

HEAD = "@relation r\n@attribute x numeric\n@attribute y {p,q}\n@data\n"


def head(*attributes):
    return "@relation r\n" + "".join(f"@attribute {each}\n" for each in attributes) + "@data\n"


def lines(attribute, *values):
    """A file of one attribute and labels, and the rows."""
    return head(attribute, "y {p,q}") + "".join(f"{value},p\n" for value in values)


ARFF = {
    # lines
    "plain": (HEAD + "1,p\n2,q\n", Q),
    "upper case": (HEAD.upper().replace("X", "x").replace("Y", "y").replace("P,Q", "p,q") + "1,p\n2,q\n", Q),
    "crlf": ((HEAD + "1,p\n2,q\n").replace("\n", "\r\n"), Q),
    "utf-8 mark": (b"\xef\xbb\xbf" + (HEAD + "1,p\n2,q\n").encode(), Q),
    "utf-16": ((HEAD + "1,p\n2,q\n").encode("utf-16"), Q),
    "latin-1": ((HEAD + "1,p\n2,q %é\n").encode("latin-1"), ["line 6", "encoding: latin-1"]),
    "comments": ("% r\n" + HEAD.replace("@data\n", "%\n@data %\n") + "1,p\n% 5,p\n2,q % a note\n", Q),
    "tabs between values": (HEAD + "1\tp\n2\tq\n", Q),
    "tabs and commas": (
        head("x numeric", "z real", "y {p,q}") + "1\t5,p\n",
        {"x": [1], "z": [5], "y": ["p"]},
    ),
    "spaces between values": (HEAD + "1 p\n2   q\n", Q),
    "spaces around commas": (HEAD + " 1 , p \n2 ,q\n", Q),
    "keel": (
        "@relation r\n@attribute x real[0.0, 9.0]\n@attribute y {p, q}\n@inputs x\n@outputs y\n"
        "@data\n1, p\n2, q\n",
        Q,
    ),
    "tabs in the header": (HEAD.replace(" x ", "\tx\t") + "1,p\n2,q\n", Q),
    "weights of attributes": (HEAD.replace("numeric", "numeric {0.5}") + "1,p\n2,q\n", Q),
    # declarations
    "braces in a comment": (HEAD.replace("{p,q}", "{p,q} %{lo, hi}") + "1,p\n2,q\n", Q),
    "a comment after a type": (HEAD.replace("numeric", "numeric % {a}") + "1,p\n2,q\n", Q),
    "a brace in quotes": (lines("x {'a}', b}", "'a}'", "b"), {"x": ["a}", "b"], "y": ["p", "p"]}),
    "a space in quotes": (lines("x {' lo','lo',hi}", "' lo'", "lo"), {"x": [" lo", "lo"], "y": ["p", "p"]}),
    "both quotes": (
        lines("""x {'p,1',"q 2"}""", "'p,1'", '"q 2"', "'q 2'"),
        {"x": ["p,1", "q 2", "q 2"], "y": ["p"] * 3},
    ),
    "no space before braces": (lines("x{a,b}", "a", "b"), {"x": ["a", "b"], "y": ["p", "p"]}),
    "spaces for commas": (lines("x {a b}", "a", "b"), {"x": ["a", "b"], "y": ["p", "p"]}),
    "spaces without quotes": (lines("x {New York, Ulm}", "New York"), {"x": ["New York"], "y": ["p"]}),
    "a quoted name": (head("'a, b%'  numeric", "y {p,q}") + "1,p\n", {"a, b%": [1], "y": ["p"]}),
    "a name with a quote": (head(r"'it\'s' numeric", "y {p,q}") + "1,p\n", {"it's": [1], "y": ["p"]}),
    "a percent sign in a name": (head("share% numeric", "y {p,q}") + "1,p\n", {"share%": [1], "y": ["p"]}),
    "an unclosed list": (HEAD.replace("{p,q}", "{p,q"), ["line 3", "brace"]),
    "an empty list": (HEAD.replace("{p,q}", "{}"), ["line 3", "at least one"]),
    "a comma at the end of a list": (HEAD.replace("{p,q}", "{p,q,}"), ["line 3", "last comma"]),
    "words after a type": (HEAD.replace("numeric", "numeric or not"), ["line 2", "'or not'"]),
    "no type": (HEAD.replace(" numeric", ""), ["line 2", "name type"]),
    "relational": (HEAD.replace("numeric", "relational"), ["line 2", "'relational'"]),
    "a date": (lines('x date "yyyy-MM-dd"', "2020-01-01"), ["line 2", "drop"]),
    # values
    "missing": (HEAD + "?,p\n2,q\n", {"x": [None, 2], "y": ["p", "q"]}),
    "a missing label": (HEAD + "1,p\n2,?\n", ["line 6", "label", "complete_rows"]),
    "digits of another script": (HEAD + "1,p\n\u0662,q\n", ["line 6", "number"]),
    "missing of keel": (HEAD + "<null>,p\n2,q\n", {"x": [None, 2], "y": ["p", "q"]}),
    "a question mark in quotes": (
        lines("x {'?',a}", "'?'", "?", "a"),
        {"x": ["?", None, "a"], "y": ["p"] * 3},
    ),
    "numbers in quotes": (lines("x numeric", "'1'", '"2"'), {"x": [1, 2], "y": ["p", "p"]}),
    "escapes": (
        lines("x string", r"'a\'b'", r'"a\"b"', r"'a\\b'", r"'a\tb\n'", r"'5\%'", r"'\u00e9'"),
        {"x": ["a'b", 'a"b', "a\\b", "a\tb\n", "5%", "é"], "y": ["p"] * 6},
    ),
    "a quote of the other kind": (
        lines("x string", '"it\'s"', "O'Brien"),
        {"x": ["it's", "O'Brien"], "y": ["p"] * 2},
    ),
    "a comma in quotes": (lines("x string", "'a,b'"), {"x": ["a,b"], "y": ["p"]}),
    "a percent sign in quotes": (lines("x string", "'% a'"), {"x": ["% a"], "y": ["p"]}),
    "a percent sign in a word": (lines("x {5%,6%}", "5%"), {"x": ["5%"], "y": ["p"]}),
    "a percent sign in a number": (lines("x numeric", "5%"), ["line 5", "'5%'"]),
    "empty text in quotes": (lines("x string", "''"), {"x": [""], "y": ["p"]}),
    "a space at an end in quotes": (lines("x string", "'a '", "a "), {"x": ["a ", "a"], "y": ["p", "p"]}),
    "no value": (HEAD + "1,p\n,q\n", ["line 6", "between commas"]),
    "a comma at the end": (HEAD + "1,p\n2,q,\n", ["line 6", "last comma"]),
    "too few": (HEAD + "1,p\n2\n", ["line 6", "2 values"]),
    "too many": (HEAD + "1,p\n2,q,3\n", ["line 6", "found 3"]),
    "undeclared": (HEAD + "1,p\n2,r\n", ["line 6", "'r'"]),
    "another case": (HEAD + "1,p\n2,Q\n", ["line 6", "'Q'"]),
    "no number": (HEAD + "1,p\ntwo,q\n", ["line 6", "'two'"]),
    "an unclosed quote": (HEAD + "1,p\n2,'q\n", ["line 6", "quote"]),
    "text after a quote": (HEAD + "1,'p'q\n", ["line 5"]),
    "braces in a value": (HEAD + "{1},p\n", ["line 5"]),
    # sparse rows and weights
    "sparse": (HEAD + "{0 1,1 p}\n{0 2, 1 q}\n", Q),
    "sparse with zeros": (HEAD + "{}\n{ 1 q }\n{0 3}\n", {"x": [0, 0, 3], "y": ["p", "q", "p"]}),
    "sparse and dense": (HEAD + "{0 1}\n2,q\n", Q),
    "sparse with quotes": (
        lines("x {a,'b c'}").replace(",p\n", "") + "{0 'b c'}\n",
        {"x": ["b c"], "y": ["p"]},
    ),
    "sparse, missing": (HEAD + "{0 ?,1 q}\n", {"x": [None], "y": ["q"]}),
    "sparse, no such index": (HEAD + "{0 1}\n{2 5}\n", ["line 6", "from 0 to 1"]),
    "sparse, an index twice": (HEAD + "{0 1,0 2}\n", ["line 5", "ascending"]),
    "sparse, no value": (HEAD + "{0 1,1}\n", ["line 5", "index"]),
    "sparse, unclosed": (HEAD + "{0 1,1 p\n", ["line 5", "sparse row"]),
    "sparse without a text": (head("s string", "y {p,q}") + "{1 q}\n", ["line 5", "'s'"]),
    "weights": (HEAD + "1,p,{2}\n2,q, {0.5}\n", Q),
    "weights of sparse rows": (HEAD + "{0 1},{2}\n{0 2,1 q}, {3}\n", Q),
    "a weight that is none": (HEAD + "1,p,{two}\n", ["line 5", "weight"]),
}


def wrong(loader, cases, folder):
    """Return what is read otherwise than stated, or refused without the facts that are stated."""
    found = []
    for name, (content, *options, expected) in cases.items():
        try:
            result = read(loader, content, dict(options[0]) if options else {}, folder)
        except DatasetError as error:
            result = str(error)
        if isinstance(expected, dict):
            good = result == expected
        else:
            good = isinstance(result, str) and all(fact in result for fact in expected)
        if not good:
            found.append(f"{name}: expected {expected}, found {result}")
    return found


@pytest.mark.parametrize(("loader", "cases"), [(csv_file, CSV), (arff_file, ARFF)])
def test_dialects_are_read_as_stated_or_refused_by_line(loader, cases, tmp_path):
    assert len(cases) >= 50
    assert not (problems := wrong(loader, cases, tmp_path)), "\n".join(problems)
