"""Every bad query has its code, its place, and words that help."""


from __future__ import annotations

import pytest

from acep_approx.errors import LimitError, QueryError
from acep_approx.query.checks import check
from acep_approx.query.limits import MAX_DEPTH, MAX_POSITIONS, MAX_TEXT
from acep_approx.query.parser import parse
from acep_approx.query.shape import choice_of, sequence_of
from acep_approx.query.syntax import Absent, Atom, Constant, QuerySyntax, Repeat, Sequence, Unary, Window

# (query, code, column, words of the message, words of the hint)
SYNTAX = [
    # words where they do not belong
    ("PATTERN SEQ(A a B b) WITHIN 5", "Q001", 17, "unexpected `B`; expected `)`, `,`, `[]` or `|`", "separated by `,`"),
    ("PATTERN SEQ(A a+, B b) WITHIN 5", "Q001", 16, "unexpected `+`", "follows the type: `A+ a[]`"),
    ("PATTERN SEQ(A a{2,3}, B b) WITHIN 5", "Q001", 16, "unexpected `{`", "follows the type: `A{2,3} a[]`"),
    ("PATTERN (A a)+* WITHIN 5", "Q001", 15, "unexpected `*`", "((A a)+)*"),
    ("PATTERN SEQ(A, B b) WITHIN 5", "Q001", 14, "unexpected `,`", "a type and a variable: `Shelf a`"),
    ("PATTERN (A a)) WITHIN 5", "Q001", 14, "unexpected `)`", "no open bracket"),
    ("a(b)) WITHIN 5", "Q001", 5, "unexpected `)`; expected the end", "no open bracket"),
    ("PATTERN SEQ() WITHIN 5", "Q001", 13, "expected a component such as `Type a`", None),
    ("PATTERN SEQ(A a, B b WITHIN 5", "Q001", 22, "unexpected `WITHIN`; expected `)`", "a bracket is still open"),
    ("PATTERN SEQ(Select a, within b) WITHIN 5", "Q001", 23, "unexpected `within`", "reserved word"),
    ("PATTERN WITHIN 5", "Q001", 9, "expected a component", "say what to look for"),
    ("PATTERN A a -> B b WITHIN 5", "Q001", 13, "unexpected `->`", "SEQ(A a, B b)"),
    ("PATTERN A{,3} a WITHIN 5", "Q001", 11, "expected a whole number", "{2}, {2,} or {2,3}"),
    ("PATTERN A a WITHN 5", "Q001", 13, "unexpected `WITHN`", "did you mean `WITHIN`?"),
    ("PATTERN A a WERE a.x > 3 WITHIN 5", "Q001", 13, "unexpected `WERE`", "did you mean `WHERE`?"),
    ("PATTERN A a WHERE a.x > 3 WITHIN 5 EROR 1", "Q001", 41, "unexpected `1`", "did you mean `ERRORS`?"),
    ("PATERN SEQ(A a) WITHIN 5", "Q001", 8, "unexpected `SEQ`", "did you mean `PATTERN`?"),
    ("PATTERN A a WHERE a.x > 3 b.x > 3 WITHIN 5", "Q001", 27, "unexpected `b`", "joined by AND or OR"),
    ("PATTERN A a WHERE a.x > 3 [id] WITHIN 5", "Q001", 27, "unexpected `[id]`", "joined by AND or OR"),
    ("PATTERN A a WHERE a.x => 3 WITHIN 5", "Q001", 24, "unexpected `>`", "write >= instead of =>"),
    ("PATTERN A a WHERE a.x > 3 || a.y > 3 WITHIN 5", "Q001", 27, "unexpected `|`", "write OR"),
    ("PATTERN A a WHERE 1 < a.x < 3 WITHIN 5", "Q001", 27, "unexpected `<`", "do not chain"),
    ("PATTERN A a WHERE a.x IN () WITHIN 5", "Q001", 27, "unexpected `)`", "may not be empty"),
    ("PATTERN A a WHERE a.x = 3 AND WITHIN 5", "Q001", 31, "expected a value such as", "missing before WITHIN"),
    ("PATTERN A a WHERE (a.x > 3 WITHIN 5", "Q001", 28, "expected OR or `)`", "a bracket is still open"),
    ("PATTERN A a WITHIN 5 s NON-OVERLAP", "Q001", 27, "unexpected `-`; expected OVERLAP", "two words: NON OVERLAP"),
    ("PATTERN A a WITHIN 5 s NONOVERLAP", "Q001", 24, "unexpected `NONOVERLAP`", "did you mean `NON OVERLAP`?"),
    ("PATTERN A a WITHIN five s", "Q001", 20, "expected `-` or a number", None),
    ("PATTERN A a WITHIN 5 RETURN a.x, a.y AS y", "Q001", 32, "expected AS", "RETURN a.price AS price"),
    ("a(b|)c WITHIN 5", "Q001", 5, "expected `(` or a letter", "bare regular expression"),
    ("a[bc]d WITHIN 5", "Q001", 2, "unexpected `[bc]`", "for types write PATTERN"),
    ("a (b|c)d WITHIN 5", "Q001", 3, "unexpected `(`", "ends at the first space"),
    ("WHERE a.x > 3 WITHIN 5", "Q001", 7, "unexpected `a`", "starts with PATTERN"),
    # what people write who come from other languages, or whose data have other names than programs
    ("PATTERN SEQ(A a, NOT B b, C c) WITHIN 5", "Q001", 18, "unexpected `NOT`", "SEQ(A a, ~(B b), C c)"),
    ("PATTERN SEQ(A a, !B b, C c) WITHIN 5", "Q003", 18, "unexpected character '!'", "SEQ(A a, ~(B b), C c)"),
    ("PATTERN SEQ(* a, B b) WITHIN 5", "Q001", 13, "unexpected `*`", "SEQ(Any a, Any b)"),
    ("PATTERN SEQ(404 a, B b) WITHIN 5", "Q001", 13, "unexpected `404`", "in quotes: '404' a"),
    ("PATTERN SEQ(A a, org/repo b) WITHIN 5", "Q001", 21, "unexpected `/`", "in quotes: 'org/repo' b"),
    ("PATTERN SEQ(Order Placed a, B b) WITHIN 5", "Q001", 26, "unexpected `a`", "in quotes: 'Order Placed' a"),
    ("PATTERN SEQ(A a B b) WITHIN 5", "Q001", 17, "unexpected `B`", "parts of a sequence are separated by `,`"),
    ("PATTERN A a WHERE [Order ID] WITHIN 5", "Q001", 26, "unexpected `ID`", "[`Order ID`]"),
    ("PATTERN A a WHERE [case:concept:name] WITHIN 5", "Q001", 24, "unexpected", "[`case:concept:name`]"),
    ("PATTERN A a WHERE a.Order ID = 3 WITHIN 5", "Q001", 27, "unexpected `ID`", "`Order ID`"),
    ("PATTERN A a WHERE a.x > 1,5 WITHIN 5", "Q001", 26, "unexpected `,`", "behind a point: 1.5"),
    ("PATTERN A a WHERE a.x = 1, a.y = 2 WITHIN 5", "Q001", 26, "unexpected `,`", "joined by AND or OR"),
    ("PATTERN A a WITHIN 1,5 h", "Q001", 21, "unexpected `,`", "behind a point: 1.5"),
    ("PATTERN A a WITHIN 5 s LIMIT 3", "Q001", 24, "unexpected `LIMIT`", "--limit"),
    ("PATTERN A a WITHIN 5 s ERRORS k", "Q001", 31, "unexpected `k`", "may be missing: ERRORS 1"),
    ("PATTERN A a WITHIN 5 s ERRORS", "Q002", 30, "ends too early", "may be missing: ERRORS 1"),
    ("PATTERN A a WITHIN 1m", "Q007", 21, "no such unit 'm'", "did you mean `min`?"),
    ("PATTERN A a WITHIN 1h30min", "Q007", 21, "no such unit 'h30min'", "1 h 30 min is 90 min"),
    ("PATTERN A a WITHIN 2 wk", "Q007", 22, "no such unit 'wk'", "did you mean `week`?"),
    ("PATTERN SEQ(A a, B b) WHERE b.ts - a.ts < 2 months WITHIN 5 h", "Q001", 45, "unexpected `months`", None),
    ("late.acep", "Q001", 5, "unexpected `.`", "Path('late.acep').read_text()"),
    ("ok then alarm", "Q001", 4, "unexpected `then`", "ends at the first space"),
    # too early an end
    ("PATTERN A a WHERE a.x >", "Q002", 24, "ends too early; expected a value", None),
    ("PATTERN SEQ(A a, B b", "Q002", 21, "ends too early; expected `)`", "a bracket is still open"),
    ("PATTERN A a WITHIN 5 NON", "Q002", 25, "ends too early; expected OVERLAP", None),
    ("PATTERN A a WITHIN 5 RETURN a.x", "Q002", 32, "expected AS", "every output needs a name"),
    ("SEQ(A a) WITHIN 5", "Q002", 6, "ends too early", "starts with PATTERN"),
    ("a(b WITHIN 5", "Q002", 4, "expected `)`", "a bracket is still open"),
    # characters that are in no word
    ('PATTERN A a WHERE a.x > "s" WITHIN 5', "Q003", 25, "unexpected character '\"'", "single quotes: 's'"),
    ("PATTERN A a WHERE a.x > 3 && a.y > 3 WITHIN 5", "Q003", 27, "unexpected character '&'", "write AND"),
    ("PATTERN A a WHERE !a.x WITHIN 5", "Q003", 19, "unexpected character '!'", "write NOT"),
    ("PATTERN SEQ(A a; B b) WITHIN 5", "Q003", 16, "unexpected character ';'", "without a semicolon"),
    ("PATTERN A a WHERE a.x = 'abc WITHIN 5", "Q004", 25, "never closed", "written twice: ''"),
    ("PATTERN A a WHERE a.`x = 3 WITHIN 5", "Q004", 21, "never closed", "close it with `"),
    # clauses
    ("PATTERN A a", "Q005", 12, "WITHIN is missing", "WITHIN 10 s"),
    ("ab ERRORS 1", "Q005", 12, "grows for ever", "after the regular expression"),
    ("PATTERN A a WITHIN 5 WHERE a.x = 1", "Q006", 22, "unexpected `WHERE`", "WHERE, WITHIN, SIMULTANEOUS, ERRORS"),
    ("PATTERN A a WITHIN 5 WITHIN 6", "Q006", 22, "unexpected `WITHIN`", "stands once"),
    ("PATTERN A a WITHIN 5 WEIGHTS (a = 2)", "Q006", 22, "unexpected `WEIGHTS`", "ERRORS 1 WEIGHTS (b = 2)"),
    ("PATTERN A a WITHIN 5 NON OVERLAP NON OVERLAP", "Q006", 34, "unexpected `NON`", "stands once"),
    ("PATTERN A a WITHIN 5 NON OVERLAP ERRORS 0", "Q006", 34, "unexpected `ERRORS`", "ERRORS, AT START, MAXIMAL"),
    ("PATTERN A a WITHIN 5 RETURN a.x AS x non overlap", "Q006", 38, "unexpected `non`", "CONSUME, EVERY, RETURN"),
    ("PATTERN A a WITHIN 5 ERRORS 0 SIMULTANEOUS", "Q006", 31, "unexpected `SIMULTANEOUS`", "SIMULTANEOUS, ERRORS"),
    ("PATTERN A a WITHIN 5 SIMULTANEOUS SIMULTANEOUS", "Q006", 35, "unexpected `SIMULTANEOUS`", "stands once"),
    ("PATTERN A a WITHIN 5 s SIMULTANOUS", "Q001", 24, "unexpected `SIMULTANOUS`", "did you mean `SIMULTANEOUS`?"),
    ("PATTERN A a WITHIN 5 simultanous", "Q007", 22, "no such unit 'simultanous'", "did you mean `simultaneous`?"),
    ("PATTERN A a WITHIN 5 parsec", "Q007", 22, "no such unit 'parsec'", "did you mean `sec`?"),
    ("PATTERN A a WITHIN 5 ERRORS 1.5", "Q008", 29, "a whole number, not 1.5", "may be missing"),
    ("PATTERN A{99999999999999999999} a WITHIN 5", "Q008", 11, "too large", "64 bits"),
    ("PATTERN A a WHERE a.x < 1e999 WITHIN 5", "Q008", 25, "too large", None),
    (f"PATTERN A a WHERE a.x < {'9' * 6000} WITHIN 5", "Q008", 25, "too large", None),
    ("PATTERN SEQ(A a, B b) WHERE strict_contiguity(a) WITHIN 5", "Q016", 47, "leaves out b", "every variable"),
    ("PATTERN A a WHERE skip_till_next_mach { a.x = 1 } WITHIN 5", "Q018", 19, "no strategy 'skip_till_next_mach'",
     "did you mean `skip_till_next_match`?"),
    # Kleene variables, aggregates, negation
    ("PATTERN A+ a[] WHERE a[0].x > 3 WITHIN 5", "Q009", 23, "no such index [0]", "a[a.LEN]"),
    ("PATTERN A+ a[] WHERE a[].x > 3 WITHIN 5", "Q009", 23, "names several events", "max(a[].x)"),
    ("PATTERN A+ a[1] WITHIN 5", "Q009", 13, "no meaning in a pattern", "write a[]"),
    ("PATTERN A+ a[] WHERE a[i].x > avg(a) WITHIN 5", "Q010", 31, "avg(a) is no aggregate", "write avg(a[].price)"),
    ("PATTERN A+ a[] WHERE a[i].x > avg(a[i-1].x) WITHIN 5", "Q010", 31, "no aggregate", "avg(a[..i-1].x)"),
    ("PATTERN A+ a[] WHERE count(*) > 3 WITHIN 5", "Q010", 28, "unexpected `*`", "count(a[])"),
    ("PATTERN A+ a[] WITHIN 5 RETURN sum(avg(a[].x)) AS s", "Q010", 39, "unexpected `(`", "one variable"),
    ("PATTERN A+ a[] WHERE mean(a[].x) > 3 WITHIN 5", "Q011", 22, "no function 'mean'", "did you mean `avg`?"),
    ("PATTERN A a WHERE lowr(a.x) = 'b' WITHIN 5", "Q011", 19, "no function 'lowr'", "did you mean `lower`?"),
    ("PATTERN A a WHERE substring(a.x, 1) = 'b' WITHIN 5", "Q011", 19, "no function 'substring'", "`substr`?"),
    ("PATTERN SEQ(A a, ~(B b, (C c | D d))) WITHIN 5", "Q012", 25, "this is a choice", "~(A a | B b)"),
    ("PATTERN SEQ(A a, ~(B+ b)) WITHIN 5", "Q012", 19, "this is a repetition", None),
    ("PATTERN SEQ(A a, ~(~B b)) WITHIN 5", "Q012", 19, "a negation within a negation", None),
    ("PATTERN A a WHERE [id] OR a.x > 3 WITHIN 5", "Q013", 19, "[id] is no value", "WHERE [id] AND"),
    ("PATTERN A a WHERE NOT [id] WITHIN 5", "Q013", 23, "[id] is no value", "outside OR, NOT"),
    ("PATTERN SEQ(A a[], B b) WITHIN 5", "Q014", 15, "nothing repeats it", "Shelf+ a[]"),
    ("", "Q017", 1, "the query is empty", "for example PATTERN"),
    ("  -- only a comment\n ", "Q017", 1, "the query is empty", None),
]  # fmt: skip

STRUCTURE = [
    ("PATTERN A a WITHIN 5 DEFINE a AS x > 3", "Q015", 22, "DEFINE is for bare regular", "WHERE a.price > 10"),
    ("PATTERN SEQ(A a, B b) WHERE c.x > 3 WITHIN 5", "Q030", 29, "no variable 'c'", "variables are a, b"),
    ("PATTERN SEQ(A abc, B b) WHERE abd.x > 3 WITHIN 5", "Q030", 31, "no variable 'abd'", "did you mean `abc`?"),
    ("PATTERN A a WITHIN 5 RETURN b.x AS x", "Q030", 29, "no variable 'b'", "variables are a"),
    ("PATTERN A a WITHIN 5 ERRORS 0 WEIGHTS (b = 2)", "Q030", 40, "no variable 'b'", "variables are a"),
    ("ab WHERE c.x > 3 WITHIN 5", "Q030", 10, "no variable 'c'", "variables are a, b"),
    ("PATTERN SEQ(A a, B a) WITHIN 5", "Q031", 18, "'a' stands twice", "its own variable"),
    ("PATTERN SEQ(A a, ~(B b), C c) WITHIN 5 RETURN b.x AS x", "Q032", 47, "'b' is negated", "no attributes"),
    ("PATTERN SEQ(A a, ~(B b)) WITHIN 5 ERRORS 0 WEIGHTS (b = 2)", "Q032", 53, "no weight", "cannot be missing"),
    ("PATTERN SEQ(A a, B b) WHERE a[i].x > 3 WITHIN 5", "Q033", 29, "takes no index [i]", "write a.x"),
    ("PATTERN A? a WHERE a[1].x > 3 WITHIN 5", "Q033", 20, "takes no index [1]", "write a.x"),
    ("PATTERN SEQ(A a, B b) WHERE avg(a[].x) > 3 WITHIN 5", "Q034", 29, "nothing to aggregate", "Shelf+ a[]"),
    ("PATTERN ~(A a) WITHIN 5", "Q035", 9, "only negations", "SEQ(A a, ~(B b), C c)"),
    ("PATTERN SEQ(~(A a), ~(B b)) WITHIN 5", "Q035", 9, "sequence of negations", "put it into a sequence"),
    ("PATTERN SEQ(A a, (B b | ~(C c))) WITHIN 5", "Q037", 25, "an alternative", "into a sequence"),
    ("PATTERN SEQ(A a, (~(C c))+) WITHIN 5", "Q037", 18, "repeated", "into a sequence"),
    ("PATTERN A a WITHIN 5 ERRORS 0 WEIGHTS (a = 0)", "Q038", 40, "weight of a is 0", "from 1"),
    ("PATTERN A a WITHIN 5 ERRORS 0 WEIGHTS (a = 1.5)", "Q038", 44, "weight of a is 1.5", "whole number"),
    ("PATTERN A a WITHIN 5 ERRORS 0 WEIGHTS (a = 2, a = 3)", "Q038", 47, "two weights for 'a'", "one weight"),
    ("PATTERN A a WITHIN 5 ERRORS -1", "Q039", 29, "ERRORS -1 is below 0", "from 0"),
    ("PATTERN SEQ(A a, B b) WITHIN 5 ERRORS 2", "Q040", 39, "ERRORS 2 is not below 2", "at most ERRORS 1"),
    ("a(b|cd){2}e* WITHIN 5 ERRORS 7 WEIGHTS (a=3)", "Q040", 30, "ERRORS 7 is not below 5", "at most ERRORS 4"),
    ("PATTERN A+ a[] WHERE avg(a[..i-1].x) > 3 WITHIN 5", "Q041", 22, "no a[i] is named", "compare it with a[i]"),
    ("PATTERN A+ a[] WITHIN 5 RETURN avg(a[..i-1].x) AS m", "Q041", 32, "no i in RETURN", "for all events"),
    ("PATTERN A{3,2} a WITHIN 5", "Q042", 9, "{3,2} ends before it begins", "write {2,3}"),
    ("PATTERN SEQ(B b, A{0} a) WITHIN 5", "Q042", 18, "0 times is nothing", "leave this part out"),
    ("a{0,0}b WITHIN 5", "Q042", 1, "0 times is nothing", "leave this part out"),
    ("PATTERN A a WHERE 1 = 1 WITHIN 5", "Q043", 19, "about no variable", "a.price > 10"),
    ("PATTERN A a WITHIN 5 RETURN a.x AS x, a.y AS x", "Q044", 39, "two outputs are named 'x'", "its own name"),
    ("PATTERN A a WITHIN -5", "Q045", 20, "a window of -5 ticks", "0 or longer"),
    ("PATTERN A a WITHIN 5.5 events", "Q045", 20, "5.5 events", "whole numbers"),
    ("PATTERN A a WITHIN 5.5", "Q045", 20, "5.5 ticks", "WITHIN 1.5 s"),
    ("ab WHERE a.x > b.x WITHIN 5", "Q046", 10, "letters are not variables", "about one letter"),
    ("a+b WHERE a[i].x > 1 WITHIN 5", "Q046", 11, "letters are not variables", "about one letter"),
    ("ab WITHIN 5 DEFINE c AS x > 3", "Q047", 20, "'c' is not in the regular expression", "letters are a, b"),
    ("ab WITHIN 5 DEFINE a AS x > 3, a AS x > 4", "Q047", 32, "defined twice", "AND or OR"),
    ("PATTERN A a WHERE price > 3 WITHIN 5", "Q048", 19, "'price' is of no variable", "a.price"),
    ("ab WITHIN 5 DEFINE a AS a.x > 3", "Q048", 25, "DEFINE knows no variable 'a'", "stand alone"),
    ("PATTERN A+ a[] WITHIN 5 RETURN a.x AS x", "Q049", 32, "stands for several events", "first(a[].x)"),
    ("PATTERN A+ a[] WITHIN 5 RETURN a[i].x AS x", "Q049", 32, "stands for several events", "a[a.LEN].x"),
    ("ab WITHIN 5 RETURN a.x AS x", "Q050", 20, "RETURN needs variables", "use PATTERN"),
    ("PATTERN SEQ(A a, ~(B b), ~(C c), D d) WHERE b.x > a.x AND b.y = c.y WITHIN 5", "Q052", 65,
     "names two negated variables, 'b' and 'c'", "one condition for each"),
    ("PATTERN A a WITHIN 5 events SIMULTANEOUS", "Q053", 20,
     "WITHIN 5 events and SIMULTANEOUS exclude one another", "give it as a time"),
    ("PATTERN A a WITHIN 5 SIMULTANEOUS NON OVERLAP", "Q053", 35,
     "NON OVERLAP and SIMULTANEOUS exclude one another", "leave one out"),
    ("PATTERN A a WITHIN 5 SIMULTANEOUS MAXIMAL FIRST MATCH", "Q053", 43,
     "FIRST MATCH and SIMULTANEOUS exclude one another", "leave one out"),
    ("PATTERN A a WITHIN 5 SIMULTANEOUS AFTER MATCH SKIP TO LAST a", "Q053", 35,
     "AFTER MATCH SKIP TO LAST a and SIMULTANEOUS exclude one another", "leave one out"),
    ("PATTERN SEQ(A first, ~(N n)) WITHIN 5 AFTER MATCH SKIP TO LAST frist", "Q030", 64,
     "no variable 'frist' that binds events", "did you mean `first`?"),
    ("PATTERN SEQ(A a, ~(N n)) WITHIN 5 AFTER MATCH SKIP TO FIRST n", "Q030", 61,
     "no variable 'n' that binds events", "PAST LAST ROW"),
    ("ab WITHIN 5 AFTER MATCH SKIP TO LAST a", "Q030", 38, "no variable 'a' that binds events", "PAST LAST ROW"),
    ("PATTERN A a WITHIN 5 EVERY 3 events", "Q045", 28, "EVERY counts time, not events", "EVERY 1 h"),
    ("PATTERN A a WITHIN 5 EVERY 3 parsecs", "Q007", 30, "no such unit 'parsecs'", None),
    ("PATTERN A a WITHIN 5 EVERY -1", "Q045", 28, "", None),
    ("PATTERN SEQ(A a, ~(B b | C c), D d) WHERE b.x > 1 OR c.x > 1 WITHIN 5", "Q052", 54,
     "names two negated variables, 'b' and 'c'", "joined by AND"),
    ("PATTERN SEQ(A a, B b) WHERE upper(coalesce(a.x, b.x)) = 'B' WITHIN 5", "Q170", 29,
     "upper names several events", "once for each event"),
    ("PATTERN A+ a[] WHERE lower(max(a[].x)) = 'b' WITHIN 5", "Q170", 22, "lower of max(a[].x)", "of one event"),
    ("PATTERN A+ a[] WHERE a[1].x + length(a[i-1].x) > length(coalesce(a[1].x, a[i].x)) WITHIN 5", "Q170", 50,
     "length names several events", "once for each event"),
    ("PATTERN A a WHERE lower() = 'b' WITHIN 5", "Q171", 19, "1 argument, and not 0", "write lower(a.name)"),
    ("PATTERN A a WHERE substr(a.x) = 'b' WITHIN 5", "Q171", 19, "2 or 3 arguments", "write substr(a.name, 1, 1)"),
    ("PATTERN A a WHERE coalesce() = 'b' WITHIN 5", "Q171", 19, "1 or more argument", "coalesce(a.x, a.y)"),
    ("PATTERN SEQ(A a, B b) WHERE lower(CASE WHEN a.x > 1 THEN a.y ELSE b.y END) = 'b' WITHIN 5", "Q170", 29,
     "lower names several events", "once for each event"),
    ("PATTERN A a WHERE a.x LIKE a.y WITHIN 5", "Q172", 28, "a constant text", "a.name LIKE '%text%'"),
    ("PATTERN A a WHERE a.x LIKE 5 WITHIN 5", "Q172", 28, "a constant text", "a.name LIKE '%text%'"),
    ("PATTERN SEQ(A a, B b) WHERE starts_with(a.x, b.x) WITHIN 5", "Q172", 46, "a constant text", "'text'"),
    ("PATTERN A a WHERE substr(a.x, 0) = 'b' WITHIN 5", "Q172", 31, "0 is out of range", "first three"),
    ("PATTERN A a WHERE substr(a.x, 1, -1) = 'b' WITHIN 5", "Q172", 34, "-1 is out of range", "first three"),
    ("PATTERN A a WHERE substr(a.x, 1.5) = 'b' WITHIN 5", "Q172", 31, "a constant whole number", "write substr"),
    ("PATTERN A a WHERE round(a.x, 16) = 1 WITHIN 5", "Q172", 30, "16 is out of range", "0 to 15"),
    ("PATTERN A a WHERE a.x LIKE 'b\\' WITHIN 5", "Q174", 28, "ends with a backslash", "at the end"),
    ("PATTERN A a WHERE matches(a.x, '(') WITHIN 5", "Q174", 32, "cannot be read", "RE2"),
    ("PATTERN A a WHERE matches(a.x, '(?=b)') WITHIN 5", "Q174", 32, "cannot be read", "no look-around"),
    ("PATTERN A a WITHIN 5 RETURN matches(a.x, '[') AS m", "Q174", 42, "cannot be read", "RE2"),
    ("ab WITHIN 5 DEFINE a AS matches(x, '[')", "Q174", 36, "cannot be read", "RE2"),
    ("PATTERN AUTOMATON (REGISTERS n = 'x' q -> f ON A WHEN n LIKE 'x%' FINAL f) WITHIN 5", "Q170", 55,
     "LIKE of n in a condition", "of one event"),
    ("PATTERN A a WHERE a.x = 9223372036854775808 WITHIN 5", "Q008", 25, "too large", "64 bits"),
    ("((a{999}){999}){999} WITHIN 5", "Q022", 1, "997,002,999 positions", "multiply"),
    ("PATTERN ((A{1001} a)) WITHIN 5", "Q022", 9, "1,001 positions, the limit is 1,000", "cost nothing extra"),
]  # fmt: skip


def assert_error(error: QueryError, code: str, column: int, message: str, hint: str | None) -> None:
    assert error.code == f"ACEP-{code}"
    assert (error.line, error.column) == (1, column)
    assert message in error.message
    if hint:
        assert hint in (error.hint or "")
        assert hint in str(error)
    assert error.exit_code == 3


@pytest.mark.parametrize(
    ("text", "code", "column", "message", "hint"), SYNTAX, ids=[case[0][:60] for case in SYNTAX]
)
def test_text_that_does_not_parse(text, code, column, message, hint):
    with pytest.raises(QueryError) as caught:
        parse(text)
    assert_error(caught.value, code, column, message, hint)


@pytest.mark.parametrize(
    ("text", "code", "column", "message", "hint"), STRUCTURE, ids=[case[0][:60] for case in STRUCTURE]
)
def test_query_that_makes_no_sense(text, code, column, message, hint):
    with pytest.raises(QueryError) as caught:
        check(parse(text))
    assert_error(caught.value, code, column, message, hint)


def test_line_and_caret_in_a_text_of_several_lines():
    with pytest.raises(QueryError) as caught:
        parse("-- find it\nPATTERN SEQ(A a,\n        B b C c)\nWITHIN 5")
    assert (caught.value.line, caught.value.column) == (3, 13)
    assert str(caught.value).splitlines()[1:3] == ["          B b C c)", "              ^"]


def test_positions_in_the_clauses_of_a_regular_expression_are_those_of_the_whole_text():
    with pytest.raises(QueryError) as caught:
        check(parse("-- a\n  a(b|c)d\nWHERE z.x > 1 WITHIN 5"))
    assert (caught.value.line, caught.value.column) == (3, 7)


@pytest.mark.parametrize(
    "text",
    [
        "PATTERN " + "(" * 10_000 + "A a" + ")" * 10_000 + " WITHIN 5",
        "PATTERN A a WHERE " + "(" * 10_000 + "a.x" + ")" * 10_000 + " = 1 WITHIN 5",
        "(" * 10_000 + "a" + ")" * 10_000 + " WITHIN 5",
        "PATTERN " + "(" * 10_000,
        "PATTERN A a WHERE " + "NOT " * 3_000 + "a.x WITHIN 5",
        "PATTERN A a WHERE " + "- " * 3_000 + "a.x = 1 WITHIN 5",
        "PATTERN A a WHERE a.x" + " + 1" * 3_000 + " = 1 WITHIN 5",
        "PATTERN A a WHERE a.x = 0" + " OR a.x = 1" * 3_000 + " WITHIN 5",
        "PATTERN A a WITHIN 5 RETURN a.x" + " + 1" * 3_000 + " AS x",
        "a WITHIN 5 DEFINE a AS x = 0" + " OR x = 1" * 3_000,
    ],
    ids=lambda text: text[:24],
)  # fmt: skip
def test_nesting_is_limited_and_never_meets_the_recursion_limit(text):
    with pytest.raises(LimitError) as caught:
        parse(text)
    assert caught.value.code == "ACEP-Q021"
    assert caught.value.given > caught.value.limit == MAX_DEPTH


def test_depth_at_the_limit_is_fine():
    text = "PATTERN " + "(" * MAX_DEPTH + "A a" + ")" * MAX_DEPTH + " WITHIN 5"
    assert parse(text).pattern == Atom("A", "a")
    check(parse("PATTERN A a WHERE " + "NOT " * (MAX_DEPTH - 1) + "a.x WITHIN 5"))
    check(parse("PATTERN A a WHERE a.x = 0" + " AND a.x = 1" * 2000 + " WITHIN 5"))


def test_deep_trees_that_were_not_parsed():
    pattern = Atom("A", "a")
    for _ in range(10_000):
        pattern = Repeat(pattern, 1, None)
    with pytest.raises(LimitError, match="ACEP-Q021"):
        check(QuerySyntax(pattern, Window(5, "ticks")))
    value = Constant(1)
    for _ in range(10_000):
        value = Unary("-", value)
    with pytest.raises(LimitError, match="ACEP-Q021"):
        check(QuerySyntax(Atom("A", "a"), Window(5, "ticks"), predicates=(value,)))


def test_long_text():
    with pytest.raises(LimitError) as caught:
        parse("PATTERN A a WITHIN 5 --" + "x" * MAX_TEXT)
    assert (caught.value.code, caught.value.limit) == ("ACEP-Q020", MAX_TEXT)
    parse("PATTERN A a WITHIN 5 --" + "x" * (MAX_TEXT - 100))


def test_positions_at_the_limit():
    check(parse(f"PATTERN A{{{MAX_POSITIONS}}} a WITHIN 5"))
    check(parse("(a{100}){2,10} WITHIN 5"))
    nested = "a"
    for _ in range(90):
        nested = f"({nested}){{999999999999999}}"
    with pytest.raises(LimitError, match=r"more than 10\^12 positions"):
        check(parse(nested + " WITHIN 5"))


@pytest.mark.parametrize(
    ("query", "code"),
    [
        (QuerySyntax(Atom("A", "a b"), Window(5, "ticks")), "Q051"),
        (QuerySyntax(Atom("A", "ab"), Window(5, "ticks"), is_regex=True), "Q051"),
        (QuerySyntax(Atom("A", "a"), Window(5, "parsec")), "Q007"),
        (QuerySyntax(Atom("A", "a"), Window(float("nan"), "s")), "Q045"),
        (QuerySyntax(Atom("A", "a"), Window(float("inf"), "s")), "Q045"),
        (QuerySyntax(Repeat(Atom("A", "a"), -1, 2), Window(5, "s")), "Q042"),
        (QuerySyntax(Sequence((Absent((Atom("A", "a"),)),)), Window(5, "s")), "Q035"),
    ],
)
def test_trees_that_no_text_makes(query, code):
    with pytest.raises(QueryError) as caught:
        check(query)
    assert caught.value.code == f"ACEP-{code}"
    assert "line" not in str(caught.value)  # there is no text to point at


def test_conditions_with_one_negated_variable_each_are_fine():
    check(parse("PATTERN SEQ(A a, ~(B b | C c), D d) WHERE (b.x > a.x OR b.x = d.x) AND c.y = a.y WITHIN 5"))


def test_normal_form_joins_what_is_nested():
    a, b, c = (Atom(name.upper(), name) for name in "abc")
    assert sequence_of([sequence_of([a, b]), c]) == Sequence((a, b, c))
    assert choice_of([a]) is a
    assert sequence_of([a]) is a


def test_enough_bad_queries():
    assert len(SYNTAX) + len(STRUCTURE) >= 45


def test_a_long_line_is_cut_around_the_mistake() -> None:
    """An error in a very long query stays readable, and the carets still point at the piece."""
    text = "PATTERN SEQ(" + ", ".join(f"A v{i}" for i in range(5000)) + ", A v0) WITHIN 5"
    with pytest.raises(QueryError) as caught:
        check(parse(text))
    excerpt, carets = caught.value.caret().split("\n")
    assert len(excerpt) < 200
    assert excerpt[carets.index("^") : carets.rindex("^") + 1] in "A v0"


@pytest.mark.parametrize(
    ("where", "repair"),
    [
        ("[box] AND skip_till_next_match", "WHERE skip_till_next_match { [box] }"),
        ("[box] AND a.x > 1 AND strict_contiguit", "WHERE strict_contiguity { [box] AND a.x > 1 }"),
        ("[box] AND (a.x > 1 OR strict_contiguity)", "WHERE strict_contiguity { CONDITIONS }"),
        ("skip_till_next_match AND [box]", "WHERE skip_till_next_match { [box] }"),
        ("skip_till_next_match(a, b) AND [box]", "WHERE skip_till_next_match { CONDITIONS }"),
        ("skip_till_next_match { [box] } AND a.x > 1", "WHERE skip_till_next_match { [box] AND a.x > 1 }"),
        ("[box] skip_till_next_match", "WHERE skip_till_next_match { [box] }"),
        ("[box] AND partition_contiguity { a.x > 1 }", "WHERE partition_contiguity { [box] AND a.x > 1 }"),
    ],
)
def test_a_strategy_among_conditions(where, repair):
    """The clause of the hint can be typed, where the conditions are known."""
    with pytest.raises(QueryError) as caught:
        check(parse(f"PATTERN SEQ(A a, B b) WHERE {where} WITHIN 5"))
    assert caught.value.hint.removesuffix(" WITHIN 5").endswith(repair)
    if "CONDITIONS" not in repair:
        check(parse(f"PATTERN SEQ(A a, B b) {repair} WITHIN 5"))
