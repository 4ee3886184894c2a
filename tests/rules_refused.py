"""Files of rules that are refused, each with all that a reader is told.

A case is a file, ``----``, and the message. In front of a file that begins with RULE stand `TABLES`, as its first line.
"""
# ruff: noqa: E501  messages are shown as they are

from __future__ import annotations

TABLES = (
    "TABLE status (hcw text, level text DEFAULT 'safe', n int DEFAULT 0, KEY (hcw)) "
    "TABLE room (id text, ward text, KEY (id)) STATIC "
    "TABLE way (a text, b text, km float, since time, open bool, KEY (a, b))\n"
)

CASES = """
######## a file

-- no rule, only a comment
----
ACEP-R001: there is no rule (line 1, column 1)
  -- no rule, only a comment
  ^
  hint: write one, for example RULE warn ON PATTERN SEQ(EXIT a, ENTER b) WITHIN 45 s DO CALL badge(b.hcw) END

TABLE t (k text, KEY (k))
----
ACEP-R001: there is no rule (line 1, column 26)
  TABLE t (k text, KEY (k))
                           ^
  hint: write one, for example RULE warn ON PATTERN SEQ(EXIT a, ENTER b) WITHIN 45 s DO CALL badge(b.hcw) END

PATTERN A a WITHIN 5
----
ACEP-Q001: unexpected `PATTERN`; expected RULE or TABLE (line 1, column 1)
  PATTERN A a WITHIN 5
  ^^^^^^^
  hint: a query stands in a rule: RULE warn ON PATTERN SEQ(EXIT a, ENTER b) WITHIN 45 s

a(b|c)d WITHIN 5
----
ACEP-Q001: unexpected `a`; expected RULE or TABLE (line 1, column 1)
  a(b|c)d WITHIN 5
  ^
  hint: a file has tables, TABLE name (...), and rules, RULE name ON PATTERN ...

SELECT * FROM Stock
----
ACEP-Q001: unexpected `SELECT`; expected RULE or TABLE (line 1, column 1)
  SELECT * FROM Stock
  ^^^^^^
  hint: a query stands in a rule: RULE warn ON PATTERN SEQ(EXIT a, ENTER b) WITHIN 45 s

TABL t (k text, KEY (k))
----
ACEP-Q001: unexpected `TABL`; expected RULE or TABLE (line 1, column 1)
  TABL t (k text, KEY (k))
  ^^^^
  hint: did you mean `TABLE`?

TABLE t (k text, KEY (k));
----
ACEP-Q001: unexpected `;`; expected RULE, STATIC, TABLE or the end of the text (line 1, column 26)
  TABLE t (k text, KEY (k));
                           ^
  hint: no sign stands behind a table or a rule

STATIC TABLE t (k text, KEY (k))
----
ACEP-Q001: unexpected `STATIC`; expected RULE or TABLE (line 1, column 1)
  STATIC TABLE t (k text, KEY (k))
  ^^^^^^
  hint: a table is written TABLE room (id text, ward text, KEY (id)) STATIC

TABLE t (k text, KEY (k)) STATC
----
ACEP-Q001: unexpected `STATC`; expected RULE, STATIC, TABLE or the end of the text (line 1, column 27)
  TABLE t (k text, KEY (k)) STATC
                            ^^^^^
  hint: did you mean `STATIC`?

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
----
ACEP-R002: two rules are named 'r' (line 3, column 6)
  RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
       ^
  hint: give each rule its own name: its matches have it

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO CALL f END;
----
ACEP-Q001: unexpected `;`; expected RULE, TABLE or the end of the text (line 3, column 14)
  DO CALL f END;
               ^
  hint: no sign stands behind a table or a rule

######## tables

TABLE t (k text, KEY (k))
TABLE t (k text, KEY (k))
----
ACEP-R002: two tables are named 't' (line 2, column 7)
  TABLE t (k text, KEY (k))
        ^
  hint: give each of the tables its own name

TABLE t (k text, KEY (k))
TABLE T (k text, KEY (k))
----
ACEP-R002: two tables are named 't' and 'T' (line 2, column 7)
  TABLE T (k text, KEY (k))
        ^
  hint: stores in files do not tell them apart: give one of them another name

TABLE t (k text, k int, KEY (k))
----
ACEP-R003: two columns are named 'k' (line 1, column 18)
  TABLE t (k text, k int, KEY (k))
                   ^^^^^
  hint: give each of the columns its own name

TABLE t (k text, K int, KEY (k))
----
ACEP-R003: two columns are named 'k' and 'K' (line 1, column 18)
  TABLE t (k text, K int, KEY (k))
                   ^^^^^
  hint: stores in files do not tell them apart: give one of them another name

TABLE t (k text, time int, KEY (k))
----
ACEP-R026: the name 'time' is taken: logs of changes have a column of that name (line 1, column 18)
  TABLE t (k text, time int, KEY (k))
                   ^^^^^^^^
  hint: choose another name; taken are time, row, rule, op, deleted

TABLE t (k text)
----
ACEP-R004: the table 't' has no key (line 1, column 7)
  TABLE t (k text)
        ^
  hint: say which columns name a row, behind the others: KEY (k)

TABLE t (k text, KEY ())
----
ACEP-R004: the table 't' has no key (line 1, column 18)
  TABLE t (k text, KEY ())
                   ^^^^^^
  hint: say which columns name a row, behind the others: KEY (k)

TABLE t (k text, key int, KEY (kk))
----
ACEP-R004: no column 'kk' for the key of 't' (line 1, column 32)
  TABLE t (k text, key int, KEY (kk))
                                 ^^
  hint: did you mean `k`? columns are k, key

TABLE t (k text, KEY (k, k))
----
ACEP-R004: the column 'k' stands twice in the key (line 1, column 26)
  TABLE t (k text, KEY (k, k))
                           ^
  hint: name each column once

TABLE t (k text, KEY (k), KEY (k))
----
ACEP-R004: the table 't' has two keys (line 1, column 27)
  TABLE t (k text, KEY (k), KEY (k))
                            ^^^^^^^
  hint: a key of two columns is written KEY (a, b)

TABLE t (k text KEY)
----
ACEP-Q001: unexpected `KEY`; expected DEFAULT, `)` or `,` (line 1, column 17)
  TABLE t (k text KEY)
                  ^^^
  hint: the key stands behind the columns: TABLE status (hcw text, level text, KEY (hcw))

TABLE t (k text PRIMARY KEY)
----
ACEP-Q001: unexpected `PRIMARY`; expected DEFAULT, `)` or `,` (line 1, column 17)
  TABLE t (k text PRIMARY KEY)
                  ^^^^^^^
  hint: the key stands behind the columns: TABLE status (hcw text, level text, KEY (hcw))

TABLE t (k string, KEY (k))
----
ACEP-R006: no type 'string' (line 1, column 12)
  TABLE t (k string, KEY (k))
             ^^^^^^
  hint: did you mean `text`? types are int, float, text, bool, time

TABLE t (k tex, KEY (k))
----
ACEP-R006: no type 'tex' (line 1, column 12)
  TABLE t (k tex, KEY (k))
             ^^^
  hint: did you mean `text`? types are int, float, text, bool, time

TABLE t (k varchar(20), KEY (k))
----
ACEP-Q001: unexpected `(`; expected DEFAULT, `)` or `,` (line 1, column 19)
  TABLE t (k varchar(20), KEY (k))
                    ^
  hint: types have no length: write text

TABLE t (k, v int, KEY (k))
----
ACEP-Q001: unexpected `,`; expected a name (line 1, column 11)
  TABLE t (k, v int, KEY (k))
            ^
  hint: a column has a name and a type: level text

TABLE t (k DEFAULT 5, KEY (k))
----
ACEP-Q001: unexpected `5`; expected DEFAULT, `)` or `,` (line 1, column 20)
  TABLE t (k DEFAULT 5, KEY (k))
                     ^
  hint: a column has a name and a type: level text

TABLE t (k text v int, KEY (k))
----
ACEP-Q001: unexpected `v`; expected DEFAULT, `)` or `,` (line 1, column 17)
  TABLE t (k text v int, KEY (k))
                  ^
  hint: columns are separated by `,`

TABLE t (k text, v int DEFALT 5, KEY (k))
----
ACEP-Q001: unexpected `DEFALT`; expected DEFAULT, `)` or `,` (line 1, column 24)
  TABLE t (k text, v int DEFALT 5, KEY (k))
                         ^^^^^^
  hint: did you mean `DEFAULT`?

TABLE t (k text, v int DEFAULT, KEY (k))
----
ACEP-Q001: unexpected `,`; expected FALSE, NULL, TRUE, `-`, a number or a string (line 1, column 31)
  TABLE t (k text, v int DEFAULT, KEY (k))
                                ^
  hint: a default is a constant, such as 'safe', 0 or TRUE

TABLE t (k text, v int DEFAULT a.x, KEY (k))
----
ACEP-Q001: unexpected `a`; expected FALSE, NULL, TRUE, `-`, a number or a string (line 1, column 32)
  TABLE t (k text, v int DEFAULT a.x, KEY (k))
                                 ^
  hint: a default is a constant, such as 'safe', 0 or TRUE

TABLE t k text, KEY (k)
----
ACEP-Q001: unexpected `k`; expected `(` (line 1, column 9)
  TABLE t k text, KEY (k)
          ^
  hint: a table is written TABLE status (hcw text, level text DEFAULT 'safe', KEY (hcw))

TABLE t ()
----
ACEP-Q001: unexpected `)`; expected KEY or a name (line 1, column 10)
  TABLE t ()
           ^
  hint: a table is written TABLE status (hcw text, level text DEFAULT 'safe', KEY (hcw))

TABLE t (k text, KEY (k)
----
ACEP-Q002: the text ends too early; expected `)` or `,` (line 1, column 25)
  TABLE t (k text, KEY (k)
                          ^
  hint: a bracket is still open

TABLE t (k text DEFAULT 'x', KEY (k))
----
ACEP-R005: the key column 'k' has a default (line 1, column 25)
  TABLE t (k text DEFAULT 'x', KEY (k))
                          ^^^
  hint: every row is made with its key: leave DEFAULT out

TABLE t (k text, v int DEFAULT 'x', KEY (k))
----
ACEP-R005: the column 'v' holds whole numbers, and this is a string (line 1, column 32)
  TABLE t (k text, v int DEFAULT 'x', KEY (k))
                                 ^^^
  hint: numbers stand without quotes

TABLE t (k text, v int DEFAULT 1.5, KEY (k))
----
ACEP-R005: the column 'v' holds whole numbers, and this is 1.5 (line 1, column 32)
  TABLE t (k text, v int DEFAULT 1.5, KEY (k))
                                 ^^^
  hint: write 2, or declare the column: v float

TABLE t (k text, v text DEFAULT 5, KEY (k))
----
ACEP-R005: the column 'v' holds text, and this is a number (line 1, column 33)
  TABLE t (k text, v text DEFAULT 5, KEY (k))
                                  ^
  hint: text stands in quotes: '5'

TABLE t (k text, v bool DEFAULT 1, KEY (k))
----
ACEP-R005: the column 'v' holds TRUE and FALSE, and this is a number (line 1, column 33)
  TABLE t (k text, v bool DEFAULT 1, KEY (k))
                                  ^
  hint: write TRUE or FALSE

TABLE t (k text, v time DEFAULT 5, KEY (k))
----
ACEP-R005: the column 'v' holds times, and this is a number (line 1, column 33)
  TABLE t (k text, v time DEFAULT 5, KEY (k))
                                  ^
  hint: write it as '2013-01-31' or '2013-01-31T12:30:00'

TABLE t (k text, v time DEFAULT 'today', KEY (k))
----
ACEP-Q065: 'today' is not a time (line 1, column 33)
  TABLE t (k text, v time DEFAULT 'today', KEY (k))
                                  ^^^^^^^
  hint: write it as '2013-01-31' or '2013-01-31T12:30:00'

TABLE t (k text, v int DEFAULT 9223372036854775808, KEY (k))
----
ACEP-Q008: the number is too large (line 1, column 32)
  TABLE t (k text, v int DEFAULT 9223372036854775808, KEY (k))
                                 ^^^^^^^^^^^^^^^^^^^
  hint: whole numbers have 64 bits

######## the head of a rule, and its clauses

RULE r
----
ACEP-Q002: the text ends too early; expected ON (line 2, column 7)
  RULE r
        ^
  hint: a rule begins RULE name ON PATTERN ...

RULE r ON
----
ACEP-Q002: the text ends too early; expected PATTERN (line 2, column 10)
  RULE r ON
           ^
  hint: a rule is about a pattern: RULE warn ON PATTERN SEQ(EXIT a, ENTER b) WITHIN 45 s

RULE r PATTERN A a
----
ACEP-Q001: unexpected `PATTERN`; expected ON (line 2, column 8)
  RULE r PATTERN A a
         ^^^^^^^
  hint: a rule begins RULE name ON PATTERN ...

RULE ON PATTERN A a WITHIN 5
----
ACEP-Q001: unexpected `PATTERN`; expected ON (line 2, column 9)
  RULE ON PATTERN A a WITHIN 5
          ^^^^^^^
  hint: a rule begins RULE name ON PATTERN ...

RULE r WORTH 0 ON PATTERN A a WITHIN 5
----
ACEP-R027: a rule is WORTH 0 (line 2, column 14)
  RULE r WORTH 0 ON PATTERN A a WITHIN 5
               ^
  hint: write a number above 0: RULE warn WORTH 5 ON PATTERN ...

RULE r ON PATTERN A a WITHIN 5 WORTH 5
----
ACEP-Q001: unexpected `5`; expected AFTER MATCH SKIP, AT START, CONSUME, DO, ERRORS, EVERY, FIRST MATCH, FOR, MAXIMAL, NON OVERLAP, RETURN, RULE, SIMULTANEOUS, TABLE, WHEN or the end of the text (line 2, column 38)
  RULE r ON PATTERN A a WITHIN 5 WORTH 5
                                       ^
  hint: WORTH stands behind the name: RULE warn WORTH 5 ON PATTERN ...

RULE r ON SELECT * FROM Stock
----
ACEP-R025: unexpected `SELECT`; expected PATTERN (line 2, column 11)
  RULE r ON SELECT * FROM Stock
            ^^^^^^
  hint: a rule has a pattern, RULE warn ON PATTERN ...: matches of CEL name no events that actions could write

RULE r ON a(b|c)d WITHIN 5
----
ACEP-R025: unexpected `a`; expected PATTERN (line 2, column 11)
  RULE r ON a(b|c)d WITHIN 5
            ^
  hint: a rule's query begins with PATTERN: bare regular expressions have no variables that actions could name

RULE r ON PATERN A a WITHIN 5
----
ACEP-Q001: unexpected `PATERN`; expected PATTERN (line 2, column 11)
  RULE r ON PATERN A a WITHIN 5
            ^^^^^^
  hint: did you mean `PATTERN`?

RULE r ON PATTERN A a DO CALL f END
----
ACEP-Q005: WITHIN is missing: without a window, what must be remembered grows for ever (line 2, column 22)
  RULE r ON PATTERN A a DO CALL f END
                       ^
  hint: add it after PATTERN and WHERE: WITHIN 10 s, WITHIN 100 events, or WITHIN 5 in the units of the time column

RULE r ON PATTERN A a WITHIN 5 WHERE a.x = 1
----
ACEP-Q006: unexpected `WHERE`; expected AFTER MATCH SKIP, AT START, CONSUME, DO, ERRORS, EVERY, FIRST MATCH, FOR, MAXIMAL, NON OVERLAP, RETURN, RULE, SIMULTANEOUS, TABLE, WHEN, a name or the end of the text (line 2, column 32)
  RULE r ON PATTERN A a WITHIN 5 WHERE a.x = 1
                                 ^^^^^
  hint: each clause stands once, in this order: PATTERN, WHERE, WITHIN, SIMULTANEOUS, ERRORS, AT START, MAXIMAL, FIRST MATCH, NON OVERLAP, AFTER MATCH SKIP, CONSUME, EVERY, RETURN, WHEN, FOR EACH, DO, END

RULE r ON PATTERN A a WHEN a.x = 1 WITHIN 5
----
ACEP-Q006: unexpected `WITHIN`; expected DO, FOR, OR, RULE, TABLE or the end of the text (line 2, column 36)
  RULE r ON PATTERN A a WHEN a.x = 1 WITHIN 5
                                     ^^^^^^
  hint: each clause stands once, in this order: PATTERN, WHERE, WITHIN, SIMULTANEOUS, ERRORS, AT START, MAXIMAL, FIRST MATCH, NON OVERLAP, AFTER MATCH SKIP, CONSUME, EVERY, RETURN, WHEN, FOR EACH, DO, END

RULE r ON PATTERN A a WITHIN 5 ERORS 1 DO CALL f END
----
ACEP-Q001: unexpected `1`; expected AFTER MATCH SKIP, AT START, CONSUME, DO, ERRORS, EVERY, FIRST MATCH, FOR, MAXIMAL, NON OVERLAP, RETURN, RULE, SIMULTANEOUS, TABLE, WHEN or the end of the text (line 2, column 38)
  RULE r ON PATTERN A a WITHIN 5 ERORS 1 DO CALL f END
                                       ^
  hint: did you mean `ERRORS`?

RULE r ON PATTERN A a WITHIN 5 PUBLISH p
----
ACEP-R025: a rule publishes no stream (line 2, column 32)
  RULE r ON PATTERN A a WITHIN 5 PUBLISH p
                                 ^^^^^^^^^
  hint: leave PUBLISH out: the matches have the name of the rule; streams are published by queries of a set

RULE r ON PATTERN A a WITHIN :w s
----
ACEP-Q085: the parameter :w has no value: rules are no templates (line 2, column 30)
  RULE r ON PATTERN A a WITHIN :w s
                               ^^
  hint: write a constant, or keep the value in a table: store.limits[a.id].low

RULE r ON PATTERN A a
WHERE a.x > :low WITHIN 5
----
ACEP-Q085: the parameter :low has no value: rules are no templates (line 3, column 13)
  WHERE a.x > :low WITHIN 5
              ^^^^
  hint: write a constant, or keep the value in a table: store.limits[a.id].low

RULE r ON PATTERN A a
WHERE (a.x = 1 WITHIN 5
----
ACEP-Q001: unexpected `WITHIN`; expected OR or `)` (line 3, column 16)
  WHERE (a.x = 1 WITHIN 5
                 ^^^^^^
  hint: a bracket is still open

RULE r ON PATTERN A a
WHERE a.x = 'abc WITHIN 5
----
ACEP-Q004: the quote ' is never closed (line 3, column 13)
  WHERE a.x = 'abc WITHIN 5
              ^^^^^^^^^^^^^
  hint: close it with '; a quote within is written twice: ''

RULE r ON PATTERN A a WITHIN 5 DEFINE a AS x > 3
----
ACEP-Q015: DEFINE is for bare regular expressions, not for PATTERN (line 2, column 32)
  RULE r ON PATTERN A a WITHIN 5 DEFINE a AS x > 3
                                 ^^^^^^
  hint: write conditions into WHERE: WHERE a.price > 10

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO CALL f
WHEN a.x = 1 END
----
ACEP-Q006: unexpected `WHEN`; expected END, `;` or `(` (line 4, column 1)
  WHEN a.x = 1 END
  ^^^^
  hint: each clause stands once, in this order: PATTERN, WHERE, WITHIN, SIMULTANEOUS, ERRORS, AT START, MAXIMAL, FIRST MATCH, NON OVERLAP, AFTER MATCH SKIP, CONSUME, EVERY, RETURN, WHEN, FOR EACH, DO, END

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5 FOR EVERY MATCH DO CALL f END
----
ACEP-Q001: unexpected `EVERY`; expected EACH (line 2, column 46)
  RULE r ON PATTERN SEQ(A a, B b) WITHIN 5 FOR EVERY MATCH DO CALL f END
                                               ^^^^^
  hint: write FOR EACH MATCH, or FOR EACH POINT

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5 FOR EACH EVENT DO CALL f END
----
ACEP-Q001: unexpected `EVENT`; expected MATCH or POINT (line 2, column 51)
  RULE r ON PATTERN SEQ(A a, B b) WITHIN 5 FOR EACH EVENT DO CALL f END
                                                    ^^^^^
  hint: write FOR EACH MATCH, or FOR EACH POINT

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5 FOR EACH MATCH
----
ACEP-Q002: the text ends too early; expected DO (line 2, column 56)
  RULE r ON PATTERN SEQ(A a, B b) WITHIN 5 FOR EACH MATCH
                                                         ^
  hint: FOR EACH says how often the actions are run: FOR EACH MATCH DO CALL badge END

######## reads

RULE r ON PATTERN SEQ(A a, B b)
WHERE store.state[a.x].level = 'safe'
WITHIN 5
----
ACEP-R007: no table 'state' (line 3, column 13)
  WHERE store.state[a.x].level = 'safe'
              ^^^^^
  hint: did you mean `status`? tables are status, room, way

RULE r ON PATTERN SEQ(A a, B b)
WHERE EXISTS store.romo[a.x]
WITHIN 5
----
ACEP-R007: no table 'romo' (line 3, column 20)
  WHERE EXISTS store.romo[a.x]
                     ^^^^
  hint: did you mean `room`? tables are status, room, way

RULE r ON PATTERN SEQ(A a, B b)
WHERE store.status[a.x].levl = 'safe'
WITHIN 5
----
ACEP-R008: no column 'levl' in 'status' (line 3, column 25)
  WHERE store.status[a.x].levl = 'safe'
                          ^^^^
  hint: did you mean `level`? columns are hcw, level, n

RULE r ON PATTERN SEQ(A a, B b)
WHERE store.way[a.x].km = 1
WITHIN 5
----
ACEP-R009: the key of 'way' has 2 columns, a, b; here is 1 (line 3, column 7)
  WHERE store.way[a.x].km = 1
        ^^^^^^^^^^^^^^^^^
  hint: give one value for each, in that order

RULE r ON PATTERN SEQ(A a, B b)
WHERE store.status[a.x, b.x].n = 1
WITHIN 5
----
ACEP-R009: the key of 'status' has 1 column, hcw; here are 2 (line 3, column 7)
  WHERE store.status[a.x, b.x].n = 1
        ^^^^^^^^^^^^^^^^^^^^^^^^
  hint: give one value for each, in that order

RULE r ON PATTERN SEQ(A a, B b)
WHERE store.status[a.x] = 1
WITHIN 5
----
ACEP-R021: a read names a column of the row (line 3, column 7)
  WHERE store.status[a.x] = 1
        ^^^^^^^^^^^^^^^^^
  hint: name a column, store.t[key].level, or ask whether there is a row: EXISTS store.t[key]

RULE r ON PATTERN SEQ(A a, B b)
WHERE EXISTS store.status[a.x].n
WITHIN 5
----
ACEP-R021: EXISTS asks for a row, not for a column (line 3, column 7)
  WHERE EXISTS store.status[a.x].n
        ^^^^^^^^^^^^^^^^^^^^^^^^^^
  hint: write EXISTS store.status[a.x], or store.status[a.x].n IS NOT NULL

RULE r ON PATTERN SEQ(A a, B b)
WHERE store.status.n = 1
WITHIN 5
----
ACEP-Q001: unexpected `.`; expected a comparison such as `= 3`, AFTER MATCH SKIP, AND, AT START, CONSUME, DO, ERRORS, EVERY, FIRST MATCH, FOR, MAXIMAL, NON OVERLAP, OR, RETURN, RULE, SIMULTANEOUS, TABLE, WHEN, WITHIN or the end of the text (line 3, column 19)
  WHERE store.status.n = 1
                    ^
  hint: a read names a row by its key: store.status[b.hcw].level

RULE r ON PATTERN SEQ(A a, B b)
WHERE store.status[].n = 1
WITHIN 5
----
ACEP-Q001: unexpected `]`; expected a value such as `a.price` or 3 (line 3, column 20)
  WHERE store.status[].n = 1
                     ^
  hint: the key of a row stands in the brackets: store.status[b.hcw].level

RULE r ON PATTERN SEQ(A a, B b)
WHERE EXISTS status[a.x]
WITHIN 5
----
ACEP-Q001: unexpected `status`; expected a comparison such as `= 3`, AFTER MATCH SKIP, AND, AT START, CONSUME, DO, ERRORS, EVERY, FIRST MATCH, FOR, MAXIMAL, NON OVERLAP, OR, RETURN, RULE, SIMULTANEOUS, TABLE, WHEN, WITHIN, `.`, `[]` or the end of the text (line 3, column 14)
  WHERE EXISTS status[a.x]
               ^^^^^^
  hint: EXISTS asks for a row of a table: EXISTS store.status[b.hcw]

RULE r ON PATTERN SEQ(A a, B b)
WHERE store.way[store.status[a.x].level, a.y].km = 1
WITHIN 5
----
ACEP-R023: the key of a read is read from a table itself (line 3, column 17)
  WHERE store.way[store.status[a.x].level, a.y].km = 1
                  ^^^^^^^^^^^^^^^^^^^^^^^
  hint: keep what is needed in one table, or compare both reads with attributes of events

RULE r ON PATTERN SEQ(A a, B b)
WHERE store.way[a.x, b.x].km = 1
WITHIN 5
----
ACEP-R021: the key of 'way' names two events, a and b (line 3, column 7)
  WHERE store.way[a.x, b.x].km = 1
        ^^^^^^^^^^^^^^^^^^^^^^
  hint: say when: store.way[a.x, b.x AT b].km

RULE r ON PATTERN SEQ(A a, B b)
WHERE store.status['x'].n = 1
WITHIN 5
----
ACEP-R021: the key of 'status' names no event (line 3, column 7)
  WHERE store.status['x'].n = 1
        ^^^^^^^^^^^^^^^^^^^
  hint: say when: store.status['x' AT b].n

RULE r ON PATTERN SEQ(A a, B b)
WHERE EXISTS store.status['x']
WITHIN 5
----
ACEP-R021: the key of 'status' names no event (line 3, column 7)
  WHERE EXISTS store.status['x']
        ^^^^^^^^^^^^^^^^^^^^^^^^
  hint: say when: EXISTS store.status['x' AT b]

RULE r ON PATTERN SEQ(A a, B b)
WHERE store.status[hcw].n = 1
WITHIN 5
----
ACEP-Q048: 'hcw' is of no variable (line 3, column 20)
  WHERE store.status[hcw].n = 1
                     ^^^
  hint: say whose: a.hcw

RULE r ON PATTERN SEQ(A a, B b)
WHERE store.status[c.x].n = 1
WITHIN 5
----
ACEP-Q030: no variable 'c' in the pattern (line 3, column 20)
  WHERE store.status[c.x].n = 1
                     ^^^
  hint: variables are a, b

RULE r ON PATTERN SEQ(A a, C+ c)
WHERE store.status[max(c[].x)].n = 1
WITHIN 5
----
ACEP-R021: max(c[].x) in a key is about several events (line 3, column 20)
  WHERE store.status[max(c[].x)].n = 1
                     ^^^^^^^^^^
  hint: name one event, c[1].x; in WHEN aggregates may be keys

RULE r ON PATTERN SEQ(A a, C+ c)
WHERE store.way[c[i].x, c[i-1].x].km = 1
WITHIN 5
----
ACEP-R021: the key of 'way' names two events, c[i] and c[i-1] (line 3, column 7)
  WHERE store.way[c[i].x, c[i-1].x].km = 1
        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  hint: say when: store.way[c[i].x, c[i-1].x AT c[i-1]].km

RULE r ON PATTERN SEQ(A a, B b)
WHERE store.status[[x]].n = 1
WITHIN 5
----
ACEP-Q013: [x] is no value: it can only be joined to other conditions by AND (line 3, column 20)
  WHERE store.status[[x]].n = 1
                     ^^^
  hint: write WHERE [x] AND ..., outside OR, NOT and arithmetic

RULE r ON PATTERN SEQ(A a, B b)
WHERE store.status[a.x AT c].n = 1
WITHIN 5
----
ACEP-Q030: no variable 'c' in the pattern (line 3, column 27)
  WHERE store.status[a.x AT c].n = 1
                            ^
  hint: variables are a, b

RULE r ON PATTERN SEQ(A a, B b)
WHERE store.status[a.x AT b[1]].n = 1
WITHIN 5
----
ACEP-Q033: 'b' is one event and takes no index (line 3, column 27)
  WHERE store.status[a.x AT b[1]].n = 1
                            ^^^^
  hint: write AT b

RULE r ON PATTERN SEQ(A a, C+ c)
WHERE store.status[a.x AT c[]].n = 1
WITHIN 5
----
ACEP-R022: AT names one event (line 3, column 27)
  WHERE store.status[a.x AT c[]].n = 1
                            ^^^
  hint: write c[1], c[i] or c[c.LEN]

RULE r ON PATTERN SEQ(A a, B b)
WHERE store.status[a.x AT b.y].n = 1
WITHIN 5
----
ACEP-Q001: unexpected `.`; expected `[]` or `]` (line 3, column 28)
  WHERE store.status[a.x AT b.y].n = 1
                             ^
  hint: AT names an event, and not an attribute of it: AT b

RULE r ON PATTERN SEQ(A a, B b)
WHERE store.status[a.x AT b].n = 1
WITHIN 5 NON OVERLAP
----
ACEP-Q900: the key of 'status' is of a and read AT b: such a condition is known only for complete matches, which does not work yet with NON OVERLAP (line 3, column 7)
  WHERE store.status[a.x AT b].n = 1
        ^^^^^^^^^^^^^^^^^^^^^^^^
  hint: leave NON OVERLAP out; where [attr] is in force, the key may be that attribute of any event

RULE r ON PATTERN SEQ(A a, B b)
WHERE skip_till_next_match { store.status[a.x AT b].n = 1 }
WITHIN 5
----
ACEP-Q900: the key of 'status' is of a and read AT b: such a condition is known only for complete matches, which does not work yet with skip_till_next_match (line 3, column 30)
  WHERE skip_till_next_match { store.status[a.x AT b].n = 1 }
                               ^^^^^^^^^^^^^^^^^^^^^^^^
  hint: use skip_till_any_match; where [attr] is in force, the key may be that attribute of any event

RULE r ON PATTERN SEQ(A a, ~(N n), B b)
WHERE store.status[a.x AT n].n = 1
WITHIN 5
----
ACEP-Q900: the key of 'status' is of a and read AT n: such a condition is known only for complete matches, which does not work yet in a condition about n, which is negated (line 3, column 7)
  WHERE store.status[a.x AT n].n = 1
        ^^^^^^^^^^^^^^^^^^^^^^^^
  hint: let the key be of n; where [attr] is in force, the key may be that attribute of any event

RULE r ON PATTERN SEQ(A a, ~(N n), B b)
WHERE store.status[a.x AT b].n = n.x
WITHIN 5
----
ACEP-Q900: the key of 'status' is of a and read AT b: such a condition is known only for complete matches, which does not work yet in a condition about n, which is negated (line 3, column 7)
  WHERE store.status[a.x AT b].n = n.x
        ^^^^^^^^^^^^^^^^^^^^^^^^
  hint: let the key be of b; where [attr] is in force, the key may be that attribute of any event

RULE r ON PATTERN SEQ(A a, C+ c)
WHERE store.status[c[1].x AT c[c.LEN]].n = 1
WITHIN 5 NON OVERLAP
----
ACEP-Q900: the key of 'status' is of c[1] and read AT c[c.LEN]: such a condition is known only for complete matches, which does not work yet with NON OVERLAP (line 3, column 7)
  WHERE store.status[c[1].x AT c[c.LEN]].n = 1
        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  hint: leave NON OVERLAP out; where [attr] is in force, the key may be that attribute of any event

RULE r ON PATTERN SEQ(A a, C+ c) WITHIN 5
RETURN store.status[c.x].n AS n
----
ACEP-Q049: 'c' stands for several events, RETURN needs one value (line 3, column 21)
  RETURN store.status[c.x].n AS n
                      ^^^
  hint: write first(c[].x), c[c.LEN].x or an aggregate

RULE r ON PATTERN SEQ(A a, C+ c) WITHIN 5
RETURN store.status['x' AT c].n AS n
----
ACEP-R022: 'c' stands for several events, RETURN needs one value (line 3, column 28)
  RETURN store.status['x' AT c].n AS n
                             ^
  hint: write AT c[1] or AT c[c.LEN]

RULE r ON PATTERN SEQ(A a, ~(N n), B b) WITHIN 5
RETURN store.status['x' AT n].n AS n
----
ACEP-Q032: 'n' is negated (line 3, column 28)
  RETURN store.status['x' AT n].n AS n
                             ^
  hint: an event that must not happen is in no match

RULE r ON PATTERN SEQ(A a, B b)
WHERE count(store.status) > 3
WITHIN 5
----
ACEP-R025: count is over the events of a variable (line 3, column 7)
  WHERE count(store.status) > 3
        ^^^^^^^^^^^^^^^^^^^
  hint: a rule reads one row by its key: store.status[b.hcw].level; tables are not scanned, joined or aggregated

RULE r ON PATTERN SEQ(A a, B b)
WHERE sum(store.status[a.x].n) > 3
WITHIN 5
----
ACEP-R025: unexpected `[a.x]`; expected `)` (line 3, column 23)
  WHERE sum(store.status[a.x].n) > 3
                        ^^^^^
  hint: a rule reads one row by its key: store.status[b.hcw].level; tables are not scanned, joined or aggregated

RULE r ON PATTERN SEQ(A a, B b)
WHERE a.x = (SELECT n FROM status)
WITHIN 5
----
ACEP-R025: unexpected `n`; expected a comparison such as `= 3`, AND, OR, `)`, `.` or `[]` (line 3, column 21)
  WHERE a.x = (SELECT n FROM status)
                      ^
  hint: a rule reads one row by its key: store.status[b.hcw].level; tables are not scanned, joined or aggregated

RULE r ON PATTERN SEQ(A a, B b)
WHERE a.x = 1 JOIN status
WITHIN 5
----
ACEP-R025: unexpected `JOIN`; expected an operator, AFTER MATCH SKIP, AND, AT START, CONSUME, DO, ERRORS, EVERY, FIRST MATCH, FOR, MAXIMAL, NON OVERLAP, OR, RETURN, RULE, SIMULTANEOUS, TABLE, WHEN, WITHIN or the end of the text (line 3, column 15)
  WHERE a.x = 1 JOIN status
                ^^^^
  hint: a rule reads one row by its key: store.status[b.hcw].level; tables are not scanned, joined or aggregated

RULE r ON PATTERN SEQ(A a, B b)
WHERE EXISTS (SELECT n FROM status)
WITHIN 5
----
ACEP-R025: unexpected `n`; expected a comparison such as `= 3`, AND, OR, `)`, `,`, `.` or `[]` (line 3, column 22)
  WHERE EXISTS (SELECT n FROM status)
                       ^
  hint: a rule reads one row by its key: store.status[b.hcw].level; tables are not scanned, joined or aggregated

RULE r ON PATTERN SEQ(A a, B b)
WHERE status[a.x].n = 1
WITHIN 5
----
ACEP-Q009: no such index [a.x] (line 3, column 13)
  WHERE status[a.x].n = 1
              ^^^^^
  hint: to read a table write store.status[a.x].n

RULE r ON PATTERN SEQ(A a, B b)
WHERE status.n = 1
WITHIN 5
----
ACEP-Q030: 'status' is a table, and no variable of the pattern (line 3, column 7)
  WHERE status.n = 1
        ^^^^^^^^
  hint: a table is read by its key: store.status[b.hcw].n

######## WHEN

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
WHEN DO CALL f END
----
ACEP-Q001: unexpected `CALL`; expected a comparison such as `= 3`, AND, DO, FOR, OR, RULE, TABLE, `.`, `[]` or the end of the text (line 3, column 9)
  WHEN DO CALL f END
          ^^^^
  hint: a condition or a value is missing before DO

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
WHEN [hcw]
DO CALL f END
----
ACEP-Q013: [hcw] is no value: it can only be joined to other conditions by AND (line 3, column 6)
  WHEN [hcw]
       ^^^^^
  hint: write WHERE [hcw] AND ..., outside OR, NOT and arithmetic

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
WHEN store.status[a.x AT b].n = 1
DO CALL f END
----
ACEP-R022: WHEN knows no AT (line 3, column 26)
  WHEN store.status[a.x AT b].n = 1
                           ^
  hint: WHEN reads what holds when the match is complete: leave AT out, or move the condition to WHERE

RULE r ON PATTERN SEQ(A a, ~(N n), B b) WITHIN 5
WHEN store.status[n.x].n = 1
DO CALL f END
----
ACEP-R017: 'n' is negated (line 3, column 19)
  WHEN store.status[n.x].n = 1
                    ^^^
  hint: an event that must not happen is in no match

RULE r ON PATTERN SEQ(A a, C+ c) WITHIN 5
WHEN c.x = 1
DO CALL f END
----
ACEP-R018: 'c' stands for several events, WHEN needs one value (line 3, column 6)
  WHEN c.x = 1
       ^^^
  hint: write c[1].x, c[c.LEN].x or an aggregate

RULE r ON PATTERN SEQ(A a, C+ c) WITHIN 5
WHEN max(c[..i-1].x) = 1
DO CALL f END
----
ACEP-R018: there is no i in WHEN (line 3, column 6)
  WHEN max(c[..i-1].x) = 1
       ^^^^^^^^^^^^^^^
  hint: write max(c[]...) for all events

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
WHEN 1 = 1
DO CALL f END
----
ACEP-Q043: the condition is about no event and no table (line 3, column 6)
  WHEN 1 = 1
       ^^^^^
  hint: a condition is about events and tables: WHEN store.room[b.location].ward != 'closed'

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
WHEN store.status[a.x].n
DO CALL f END
----
ACEP-Q063: this is a number, not a condition (line 3, column 6)
  WHEN store.status[a.x].n
       ^^^^^^^^^^^^^^^^^^^
  hint: a condition compares values: a.price > 10

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
WHEN a.x + 1
DO CALL f END
----
ACEP-Q063: this is a number, not a condition (line 3, column 6)
  WHEN a.x + 1
       ^^^^^^^
  hint: a condition compares values: a.price > 10

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
WHEN c.x = 1
DO CALL f END
----
ACEP-Q030: no variable 'c' in the pattern (line 3, column 6)
  WHEN c.x = 1
       ^^^
  hint: variables are a, b

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
WHEN a[1].x = 1
DO CALL f END
----
ACEP-Q033: 'a' is one event and takes no index [1] (line 3, column 6)
  WHEN a[1].x = 1
       ^^^^^^
  hint: write a.x

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
RETURN a.x AS fired WHEN a.x = 1
DO CALL f END
----
ACEP-Q901: the name 'fired' is taken: results of rules with WHEN have a column 'fired' of their own (line 3, column 8)
  RETURN a.x AS fired WHEN a.x = 1
         ^^^^^^^^^^^^
  hint: choose another name; the column says for which matches WHEN held

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
WHEN a.x = 1, b.x = 2
DO CALL f END
----
ACEP-Q001: unexpected `,`; expected DO, FOR, OR, RULE, TABLE or the end of the text (line 3, column 13)
  WHEN a.x = 1, b.x = 2
              ^
  hint: conditions are joined by AND or OR

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
IF a.x = 1
DO CALL f END
----
ACEP-Q001: unexpected `a`; expected AFTER MATCH SKIP, AT START, CONSUME, DO, ERRORS, EVERY, FIRST MATCH, FOR, MAXIMAL, NON OVERLAP, RETURN, RULE, SIMULTANEOUS, TABLE, WHEN or the end of the text (line 3, column 4)
  IF a.x = 1
     ^
  hint: what is asked before the actions are run stands in WHEN

######## the form of actions

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO CALL f; END
----
ACEP-Q001: unexpected `END`; expected CALL, DELETE, UPDATE or UPSERT (line 3, column 12)
  DO CALL f; END
             ^^^
  hint: `;` stands between two actions, and not behind the last

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO CALL f CALL g END
----
ACEP-Q001: unexpected `CALL`; expected END, `;` or `(` (line 3, column 11)
  DO CALL f CALL g END
            ^^^^
  hint: actions are separated by `;`

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5 DO CALL f
----
ACEP-Q002: the text ends too early; expected END, `;` or `(` (line 2, column 51)
  RULE r ON PATTERN SEQ(A a, B b) WITHIN 5 DO CALL f
                                                    ^
  hint: END closes a rule with actions: DO CALL badge END

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5 DO CALL f
RULE s ON PATTERN A a WITHIN 5
----
ACEP-Q001: unexpected `RULE`; expected END, `;` or `(` (line 3, column 1)
  RULE s ON PATTERN A a WITHIN 5
  ^^^^
  hint: END closes a rule with actions: DO CALL badge END

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5 DO
----
ACEP-Q002: the text ends too early; expected CALL, DELETE, UPDATE or UPSERT (line 2, column 44)
  RULE r ON PATTERN SEQ(A a, B b) WITHIN 5 DO
                                             ^
  hint: END closes a rule with actions: DO CALL badge END

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO INSERT INTO status END
----
ACEP-Q001: unexpected `INSERT`; expected CALL, DELETE, UPDATE or UPSERT (line 3, column 4)
  DO INSERT INTO status END
     ^^^^^^
  hint: UPSERT makes a row where there is none: UPSERT status SET level = 'safe' AT (b.hcw)

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO SELECT n FROM status END
----
ACEP-R025: unexpected `SELECT`; expected CALL, DELETE, UPDATE or UPSERT (line 3, column 4)
  DO SELECT n FROM status END
     ^^^^^^
  hint: a rule reads one row by its key: store.status[b.hcw].level; tables are not scanned, joined or aggregated

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO UPDTE status SET n = 1 AT (a.x) END
----
ACEP-Q001: unexpected `UPDTE`; expected CALL, DELETE, UPDATE or UPSERT (line 3, column 4)
  DO UPDTE status SET n = 1 AT (a.x) END
     ^^^^^
  hint: did you mean `UPDATE`?

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO UPDATE status SET n = 1 WHERE hcw = 'x' END
----
ACEP-Q001: unexpected `WHERE`; expected AT, END, OR, `;` or `,` (line 3, column 28)
  DO UPDATE status SET n = 1 WHERE hcw = 'x' END
                             ^^^^^
  hint: an action names its row by the key: AT (b.hcw); conditions stand in WHEN

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO UPDATE status SET status.n = 1 AT (a.x) END
----
ACEP-Q001: unexpected `.`; expected `=` (line 3, column 28)
  DO UPDATE status SET status.n = 1 AT (a.x) END
                             ^
  hint: SET names a column alone: SET level = ..., not status.level

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO UPDATE status SET n = 1 AT a.x END
----
ACEP-Q001: unexpected `a`; expected `(` (line 3, column 31)
  DO UPDATE status SET n = 1 AT a.x END
                                ^
  hint: the key stands in brackets: AT (b.hcw)

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO UPDATE status SET n = 1 AT () END
----
ACEP-Q001: unexpected `)`; expected a value such as `a.price` or 3 (line 3, column 32)
  DO UPDATE status SET n = 1 AT () END
                                 ^
  hint: the key stands in brackets: AT (b.hcw)

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO UPDATE status SET AT (a.x) END
----
ACEP-Q001: unexpected `(`; expected `=` (line 3, column 25)
  DO UPDATE status SET AT (a.x) END
                          ^
  hint: SET gives columns values: SET level = 'safe', n = old.n + 1 AT (b.hcw)

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO UPDATE status SET n = AT (a.x) END
----
ACEP-Q001: a value is missing before AT (line 3, column 26)
  DO UPDATE status SET n = AT (a.x) END
                           ^^
  hint: write SET level = 'safe' AT (b.hcw)

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO UPDATE status SET n = 1, AT (a.x) END
----
ACEP-Q001: unexpected `(`; expected `=` (line 3, column 32)
  DO UPDATE status SET n = 1, AT (a.x) END
                                 ^
  hint: SET gives columns values: SET level = 'safe', n = old.n + 1 AT (b.hcw)

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO UPDATE status SET n 1 AT (a.x) END
----
ACEP-Q001: unexpected `1`; expected `=` (line 3, column 24)
  DO UPDATE status SET n 1 AT (a.x) END
                         ^
  hint: SET gives columns values: SET level = 'safe'

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO UPDATE status AT (a.x) SET n = 1 END
----
ACEP-Q001: unexpected `SET`; expected END or `;` (line 3, column 27)
  DO UPDATE status AT (a.x) SET n = 1 END
                            ^^^
  hint: SET stands before AT: UPDATE status SET level = 'safe' AT (b.hcw)

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO DELETE FROM status AT (a.x) END
----
ACEP-Q001: unexpected `status`; expected AT, END, `;` or SET (line 3, column 16)
  DO DELETE FROM status AT (a.x) END
                 ^^^^^^
  hint: write DELETE status AT (b.hcw)

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO UPDATE status AT (a.x) END
----
ACEP-R014: UPDATE without SET changes nothing (line 3, column 4)
  DO UPDATE status AT (a.x) END
     ^^^^^^^^^^^^^^^^^^^^^^
  hint: write UPDATE status SET level = ... AT (b.hcw)

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO UPDATE status SET n = 1 END
----
ACEP-R014: UPDATE does not say which row (line 3, column 4)
  DO UPDATE status SET n = 1 END
     ^^^^^^^^^^^^^^^^^^^^^^^
  hint: name it by its key: AT (b.hcw)

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO DELETE status END
----
ACEP-R014: DELETE does not say which row (line 3, column 4)
  DO DELETE status END
     ^^^^^^^^^^^^^
  hint: name it by its key: AT (b.hcw)

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO DELETE status SET n = 1 AT (a.x) END
----
ACEP-R014: DELETE sets no columns (line 3, column 22)
  DO DELETE status SET n = 1 AT (a.x) END
                       ^^^^^
  hint: write DELETE status AT (b.hcw), or UPDATE with SET

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO CALL f(a.x END
----
ACEP-Q001: unexpected `END`; expected OR, `)` or `,` (line 3, column 15)
  DO CALL f(a.x END
                ^^^
  hint: a bracket is still open

RULE r ON PATTERN SEQ(A a, B b) WHERE a.x LIKE 'b%' WITHIN 5
DO CALL f(a.x) END
----
ACEP-Q175: there is no LIKE in rules and in CEL (line 2, column 43)
  RULE r ON PATTERN SEQ(A a, B b) WHERE a.x LIKE 'b%' WITHIN 5
                                            ^^^^
  hint: compare with =, or list the values with IN

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
WHEN CASE WHEN a.x = 1 THEN TRUE END DO CALL f(a.x) END
----
ACEP-Q175: there is no CASE in rules and in CEL (line 3, column 6)
  WHEN CASE WHEN a.x = 1 THEN TRUE END DO CALL f(a.x) END
       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  hint: write a rule for each case

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO CALL f(g(a.x)) END
----
ACEP-Q011: no function 'g' (line 3, column 11)
  DO CALL f(g(a.x)) END
            ^
  hint: functions are count, sum, min, max, avg, first, last, stddev

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO f(a.x) END
----
ACEP-Q001: unexpected `f`; expected CALL, DELETE, UPDATE or UPSERT (line 3, column 4)
  DO f(a.x) END
     ^
  hint: actions are UPDATE, UPSERT, DELETE, and CALL name(...)

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
THEN CALL f END
----
ACEP-Q001: unexpected `CALL`; expected AFTER MATCH SKIP, AT START, CONSUME, DO, ERRORS, EVERY, FIRST MATCH, FOR, MAXIMAL, NON OVERLAP, RETURN, RULE, SIMULTANEOUS, TABLE, WHEN or the end of the text (line 3, column 6)
  THEN CALL f END
       ^^^^
  hint: actions stand between DO and END: DO CALL badge(b.hcw) END

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5 s
CALL f END
----
ACEP-Q001: unexpected `CALL`; expected AFTER MATCH SKIP, AT START, CONSUME, DO, ERRORS, EVERY, FIRST MATCH, FOR, MAXIMAL, NON OVERLAP, RETURN, RULE, SIMULTANEOUS, TABLE, WHEN or the end of the text (line 3, column 1)
  CALL f END
  ^^^^
  hint: actions stand between DO and END: DO CALL badge(b.hcw) END

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO UPDATE store.status SET n = 1 AT (a.x) END
----
ACEP-Q001: unexpected `.`; expected AT, END, `;` or SET (line 3, column 16)
  DO UPDATE store.status SET n = 1 AT (a.x) END
                 ^
  hint: an action names the table alone, and its row by AT: UPDATE status SET level = 'safe' AT (b.hcw)

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO UPDATE status[a.x] SET n = 1 END
----
ACEP-Q001: unexpected `[a.x]`; expected AT, END, `;` or SET (line 3, column 17)
  DO UPDATE status[a.x] SET n = 1 END
                  ^^^^^
  hint: an action names the table alone, and its row by AT: UPDATE status SET level = 'safe' AT (b.hcw)

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO UPDATE status SET n += 1 AT (a.x) END
----
ACEP-Q001: unexpected `+`; expected `=` (line 3, column 24)
  DO UPDATE status SET n += 1 AT (a.x) END
                         ^
  hint: write SET n = old.n + 1

######## what is written

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO UPDATE state SET n = 1 AT (a.x) END
----
ACEP-R007: no table 'state' (line 3, column 11)
  DO UPDATE state SET n = 1 AT (a.x) END
            ^^^^^
  hint: did you mean `status`? tables are status, room, way

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO UPDATE room SET ward = 'x' AT (a.x) END
----
ACEP-R011: 'room' is STATIC: no rule writes it (line 3, column 11)
  DO UPDATE room SET ward = 'x' AT (a.x) END
            ^^^^
  hint: leave STATIC out of TABLE room

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO UPDATE status SET lvl = 'x' AT (a.x) END
----
ACEP-R008: no column 'lvl' in 'status' (line 3, column 22)
  DO UPDATE status SET lvl = 'x' AT (a.x) END
                       ^^^
  hint: did you mean `level`? columns are hcw, level, n

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO UPDATE status SET hcw = 'x' AT (a.x) END
----
ACEP-R012: 'hcw' is in the key of 'status' (line 3, column 22)
  DO UPDATE status SET hcw = 'x' AT (a.x) END
                       ^^^
  hint: a row keeps its key: DELETE it, and UPSERT another one

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO UPDATE status SET n = 1, n = 2 AT (a.x) END
----
ACEP-R013: one action sets 'n' twice (line 3, column 29)
  DO UPDATE status SET n = 1, n = 2 AT (a.x) END
                              ^^^^^
  hint: keep one of the two; `old` is the same row in both

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO UPDATE way SET km = 1 AT (a.x) END
----
ACEP-R009: the key of 'way' has 2 columns, a, b; here is 1 (line 3, column 26)
  DO UPDATE way SET km = 1 AT (a.x) END
                           ^^^^^^^^
  hint: give one value for each, in that order

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO DELETE status AT (a.x, b.x) END
----
ACEP-R009: the key of 'status' has 1 column, hcw; here are 2 (line 3, column 18)
  DO DELETE status AT (a.x, b.x) END
                   ^^^^^^^^^^^^^
  hint: give one value for each, in that order

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO UPDATE status SET n = old.m + 1 AT (a.x) END
----
ACEP-R008: no column 'm' in 'status' (line 3, column 26)
  DO UPDATE status SET n = old.m + 1 AT (a.x) END
                           ^^^^^
  hint: columns are hcw, level, n

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO UPDATE status SET n = n + 1 AT (a.x) END
----
ACEP-Q048: 'n' is of no variable (line 3, column 26)
  DO UPDATE status SET n = n + 1 AT (a.x) END
                           ^
  hint: write old.n for the row before this action

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO UPDATE status SET n = x + 1 AT (a.x) END
----
ACEP-Q048: 'x' is of no variable (line 3, column 26)
  DO UPDATE status SET n = x + 1 AT (a.x) END
                           ^
  hint: say whose: a.x

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO UPDATE status SET n = 1 AT (old.hcw) END
----
ACEP-R015: old.hcw stands outside SET (line 3, column 32)
  DO UPDATE status SET n = 1 AT (old.hcw) END
                                 ^^^^^^^
  hint: the key says which row it is: name it by events, AT (b.hcw)

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO DELETE status AT (old.hcw) END
----
ACEP-R015: old.hcw stands outside SET (line 3, column 22)
  DO DELETE status AT (old.hcw) END
                       ^^^^^^^
  hint: the key says which row it is: name it by events, AT (b.hcw)

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO CALL f(old.hcw) END
----
ACEP-R015: old.hcw stands outside SET (line 3, column 11)
  DO CALL f(old.hcw) END
            ^^^^^^^
  hint: give CALL what events have; only SET knows the row as it was

RULE r ON PATTERN SEQ(A a, B old) WITHIN 5
DO UPDATE status SET n = old.n AT (a.x) END
----
ACEP-R015: in SET, `old` is the row before this action, and here it is a variable of the pattern, too (line 3, column 26)
  DO UPDATE status SET n = old.n AT (a.x) END
                           ^^^^^
  hint: give the variable of the pattern another name

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO UPDATE status SET n = old[1].n AT (a.x) END
----
ACEP-R015: `old` is one row and takes no index (line 3, column 26)
  DO UPDATE status SET n = old[1].n AT (a.x) END
                           ^^^^^^^^
  hint: write old.n

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO UPDATE status SET n = max(old[].n) AT (a.x) END
----
ACEP-R015: `old` is one row: there is nothing to aggregate (line 3, column 26)
  DO UPDATE status SET n = max(old[].n) AT (a.x) END
                           ^^^^^^^^^^^^

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO UPDATE status SET n = status.n + 1 AT (a.x) END
----
ACEP-Q030: 'status' is a table, and no variable of the pattern (line 3, column 26)
  DO UPDATE status SET n = status.n + 1 AT (a.x) END
                           ^^^^^^^^
  hint: in SET, the row before this action is `old`: old.n

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO CALL f(status.n) END
----
ACEP-Q030: 'status' is a table, and no variable of the pattern (line 3, column 11)
  DO CALL f(status.n) END
            ^^^^^^^^
  hint: an action knows its events, and in SET the row it writes, as `old`

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO CALL f(a) END
----
ACEP-Q048: 'a' is an event, and no value (line 3, column 11)
  DO CALL f(a) END
            ^
  hint: name an attribute of the event: a.x

######## which events actions name

RULE r ON PATTERN SEQ(A a, B b, C c) WITHIN 5 ERRORS 1
DO UPDATE status SET n = 1 AT (a.x) END
----
ACEP-R016: 'a' can be missing: its weight 1 is not above ERRORS 1 (line 3, column 32)
  DO UPDATE status SET n = 1 AT (a.x) END
                                 ^^^
  hint: WEIGHTS (a = 2) lets no match do without it

RULE r ON PATTERN SEQ(A a, B b, C c) WITHIN 5 ERRORS 2 WEIGHTS (a = 2)
DO CALL f(a.x) END
----
ACEP-R016: 'a' can be missing: its weight 2 is not above ERRORS 2 (line 3, column 11)
  DO CALL f(a.x) END
            ^^^
  hint: WEIGHTS (a = 3) lets no match do without it

RULE r ON PATTERN SEQ(A a, B? b) WITHIN 5
DO CALL f(b.x) END
----
ACEP-R017: not every match has an event 'b' (line 3, column 11)
  DO CALL f(b.x) END
            ^^^
  hint: an action may name what every match has: a; or write a rule for each case

RULE r ON PATTERN SEQ(A a, B* b) WITHIN 5
DO CALL f(b[1].x) END
----
ACEP-R017: not every match has an event 'b' (line 3, column 11)
  DO CALL f(b[1].x) END
            ^^^^^^
  hint: an action may name what every match has: a; or write a rule for each case

RULE r ON PATTERN SEQ(A a, (B b | C c)) WITHIN 5
DO CALL f(b.x) END
----
ACEP-R017: not every match has an event 'b' (line 3, column 11)
  DO CALL f(b.x) END
            ^^^
  hint: an action may name what every match has: a; or write a rule for each case

RULE r ON PATTERN SEQ(A a, ~(N n), B b) WITHIN 5
DO CALL f(n.x) END
----
ACEP-R017: 'n' is negated: a match has no such event (line 3, column 11)
  DO CALL f(n.x) END
            ^^^
  hint: an action may name what every match has: a, b

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO CALL f(d.x) END
----
ACEP-Q030: no variable 'd' in the pattern (line 3, column 11)
  DO CALL f(d.x) END
            ^^^
  hint: variables are a, b

RULE r ON PATTERN SEQ(A a, C+ c) WITHIN 5
DO CALL f(c.x) END
----
ACEP-R018: 'c' stands for several events, an action needs one value (line 3, column 11)
  DO CALL f(c.x) END
            ^^^
  hint: write c[1].x, c[c.LEN].x or an aggregate

RULE r ON PATTERN SEQ(A a, C+ c) WITHIN 5
DO CALL f(c[i].x) END
----
ACEP-R018: 'c' stands for several events, an action needs one value (line 3, column 11)
  DO CALL f(c[i].x) END
            ^^^^^^
  hint: write c[1].x, c[c.LEN].x or an aggregate

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO CALL f(max(a[].x)) END
----
ACEP-Q034: 'a' is one event, there is nothing to aggregate (line 3, column 11)
  DO CALL f(max(a[].x)) END
            ^^^^^^^^^^
  hint: write a.x, or repeat the event: Shelf+ a[]

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO CALL f(store.room[a.x].ward) END
----
ACEP-R020: an action reads no tables (line 3, column 11)
  DO CALL f(store.room[a.x].ward) END
            ^^^^^^^^^^^^^^^^^^^^
  hint: an action knows its events, and in SET the row it writes, as `old`; test other tables in WHEN

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO UPDATE status SET n = 1 AT (store.room[a.x].ward) END
----
ACEP-R020: an action reads no tables (line 3, column 32)
  DO UPDATE status SET n = 1 AT (store.room[a.x].ward) END
                                 ^^^^^^^^^^^^^^^^^^^^
  hint: an action knows its events, and in SET the row it writes, as `old`; test other tables in WHEN

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5 FOR EACH POINT
DO UPDATE status SET n = 1 AT (a.x) END
----
ACEP-R019: matches that one event completes can differ in a.x (line 3, column 32)
  DO UPDATE status SET n = 1 AT (a.x) END
                                 ^^^
  hint: name b, its last event; or write FOR EACH MATCH

RULE r ON PATTERN SEQ(A a, B b)
WHERE [k]
WITHIN 5 FOR EACH POINT
DO CALL f(a.k, a.x) END
----
ACEP-R019: matches that one event completes can differ in a.x (line 5, column 16)
  DO CALL f(a.k, a.x) END
                 ^^^
  hint: name b, its last event or attributes in [k]; or write FOR EACH MATCH

RULE r ON PATTERN SEQ(A a, C+ c) WITHIN 5 FOR EACH POINT
DO CALL f(c[1].x) END
----
ACEP-R019: matches that one event completes can differ in c[1].x (line 3, column 11)
  DO CALL f(c[1].x) END
            ^^^^^^
  hint: name c[c.LEN], its last event; or write FOR EACH MATCH

RULE r ON PATTERN SEQ(A a, C+ c) WITHIN 5 FOR EACH POINT
DO CALL f(max(c[].x)) END
----
ACEP-R019: matches that one event completes can differ in max(c[].x) (line 3, column 11)
  DO CALL f(max(c[].x)) END
            ^^^^^^^^^^
  hint: name c[c.LEN], its last event; or write FOR EACH MATCH

RULE r ON PATTERN SEQ(A a, B? b) WITHIN 5 FOR EACH POINT
DO CALL f(a.x) END
----
ACEP-R019: matches that one event completes can differ in a.x (line 3, column 11)
  DO CALL f(a.x) END
            ^^^
  hint: write FOR EACH MATCH

RULE r ON PATTERN SEQ(A a, ~(N n)) WITHIN 5 FOR EACH POINT
DO CALL f END
----
ACEP-R019: matches of this pattern are known when their window has closed, and not at an event (line 2, column 19)
  RULE r ON PATTERN SEQ(A a, ~(N n)) WITHIN 5 FOR EACH POINT
                    ^^^^^^^^^^^^^^^^
  hint: write FOR EACH MATCH

######## types

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO UPDATE status SET n = 'x' AT (a.x) END
----
ACEP-R010: the column 'n' of 'status' holds whole numbers, and this is a string (line 3, column 26)
  DO UPDATE status SET n = 'x' AT (a.x) END
                           ^^^
  hint: numbers stand without quotes

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO UPDATE status SET n = 1.5 AT (a.x) END
----
ACEP-R010: the column 'n' of 'status' holds whole numbers, and this is 1.5 (line 3, column 26)
  DO UPDATE status SET n = 1.5 AT (a.x) END
                           ^^^
  hint: write 2, or declare the column: n float

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO UPDATE status SET level = 5 AT (a.x) END
----
ACEP-R010: the column 'level' of 'status' holds text, and this is a number (line 3, column 30)
  DO UPDATE status SET level = 5 AT (a.x) END
                               ^
  hint: text stands in quotes: '5'

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO UPDATE status SET level = old.n AT (a.x) END
----
ACEP-R010: the column 'level' of 'status' holds text, and this is a number (line 3, column 30)
  DO UPDATE status SET level = old.n AT (a.x) END
                               ^^^^^
  hint: declare what it holds: level float

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO UPDATE status SET n = old.level + 1 AT (a.x) END
----
ACEP-Q062: this is a string, not a number (line 3, column 26)
  DO UPDATE status SET n = old.level + 1 AT (a.x) END
                           ^^^^^^^^^
  hint: arithmetic is for numbers

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO UPDATE status SET n = 1 AT (5) END
----
ACEP-R010: the key column 'hcw' of 'status' holds text, and this is a number (line 3, column 32)
  DO UPDATE status SET n = 1 AT (5) END
                                 ^
  hint: text stands in quotes: '5'

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO DELETE status AT (NULL) END
----
ACEP-R010: the key column 'hcw' of 'status' is never NULL (line 3, column 22)
  DO DELETE status AT (NULL) END
                       ^^^^
  hint: no row has NULL in its key

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO UPDATE status SET n = 9223372036854775808 AT (a.x) END
----
ACEP-Q008: the number is too large (line 3, column 26)
  DO UPDATE status SET n = 9223372036854775808 AT (a.x) END
                           ^^^^^^^^^^^^^^^^^^^
  hint: whole numbers have 64 bits

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO UPDATE way SET since = 'today' AT (a.x, a.y) END
----
ACEP-Q065: 'today' is not a time (line 3, column 27)
  DO UPDATE way SET since = 'today' AT (a.x, a.y) END
                            ^^^^^^^
  hint: write it as '2013-01-31' or '2013-01-31T12:30:00'

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO UPDATE way SET open = 1 AT (a.x, a.y) END
----
ACEP-R010: the column 'open' of 'way' holds TRUE and FALSE, and this is a number (line 3, column 26)
  DO UPDATE way SET open = 1 AT (a.x, a.y) END
                           ^
  hint: write TRUE or FALSE

RULE r ON PATTERN SEQ(A a, B b) WITHIN 5
DO UPDATE way SET km = old.since AT (a.x, a.y) END
----
ACEP-R010: the column 'km' of 'way' holds numbers, and this is a time (line 3, column 24)
  DO UPDATE way SET km = old.since AT (a.x, a.y) END
                         ^^^^^^^^^
  hint: declare what it holds: km time

RULE r ON PATTERN SEQ(A a, B b)
WHERE store.status[5 AT a].n = 1
WITHIN 5
----
ACEP-R010: the key column 'hcw' of 'status' holds text, and this is a number (line 3, column 20)
  WHERE store.status[5 AT a].n = 1
                     ^
  hint: text stands in quotes: '5'

RULE r ON PATTERN SEQ(A a, B b)
WHERE store.status[a.x].level = 5
WITHIN 5
----
ACEP-Q061: a string cannot be compared with a number (line 3, column 7)
  WHERE store.status[a.x].level = 5
        ^^^^^^^^^^^^^^^^^^^^^^^^^^^
  hint: strings stand in quotes: '5'

RULE r ON PATTERN SEQ(A a, B b)
WHERE store.status[a.x].n = '5'
WITHIN 5
----
ACEP-Q061: a number cannot be compared with a string (line 3, column 7)
  WHERE store.status[a.x].n = '5'
        ^^^^^^^^^^^^^^^^^^^^^^^^^
  hint: numbers stand without quotes: 5

RULE r ON PATTERN SEQ(A a, B b)
WHERE store.status[a.x].n
WITHIN 5
----
ACEP-Q063: this is a number, not a condition (line 3, column 7)
  WHERE store.status[a.x].n
        ^^^^^^^^^^^^^^^^^^^
  hint: a condition compares values: a.price > 10

RULE r ON PATTERN SEQ(A a, B b)
WHERE EXISTS store.status[a.x] > 3
WITHIN 5
----
ACEP-Q061: booleans have no order for > (line 3, column 7)
  WHERE EXISTS store.status[a.x] > 3
        ^^^^^^^^^^^^^^^^^^^^^^^^
  hint: compare with = or !=

######## automata written by hand

RULE r ON PATTERN AUTOMATON (REGISTERS m = 0 q0 -> q1 ON T t SET m = 1 FINAL q1) WITHIN 5
DO UPDATE status SET n = m AT (t.x) END
----
ACEP-R018: an action knows the events of a match, and no registers (line 3, column 26)
  DO UPDATE status SET n = m AT (t.x) END
                           ^
  hint: show it in the results: RETURN m

RULE r ON PATTERN AUTOMATON (REGISTERS m = 0 q0 -> q1 ON T t SET m = 1 FINAL q1) WITHIN 5
DO CALL f(m) END
----
ACEP-R018: an action knows the events of a match, and no registers (line 3, column 11)
  DO CALL f(m) END
            ^
  hint: show it in the results: RETURN m

RULE r ON PATTERN AUTOMATON (q0 -> q1 ON T FINAL q1) WITHIN 5
DO CALL f(t.x) END
----
ACEP-Q030: no variable 't' in the pattern (line 3, column 11)
  DO CALL f(t.x) END
            ^^^
  hint: give the arc's event a variable: q0 -> q1 ON Tick t

RULE r ON PATTERN AUTOMATON (q0 -> q1 ON T t q0 -> q1 ON U u FINAL q1) WITHIN 5
DO CALL f(t.x) END
----
ACEP-R017: not every match has an event 't' (line 3, column 11)
  DO CALL f(t.x) END
            ^^^
  hint: no event is in every match; or write a rule for each case

RULE r ON PATTERN AUTOMATON (q0 -> q1 ON T t
WHEN store.status['x'].n = 1 FINAL q1) WITHIN 5
----
ACEP-R021: the key of 'status' names no event (line 3, column 6)
  WHEN store.status['x'].n = 1 FINAL q1) WITHIN 5
       ^^^^^^^^^^^^^^^^^^^
  hint: say when: store.status['x' AT t].n

RULE r ON PATTERN AUTOMATON (q0 -> q1 ON T t q1 -> q2 ON T u
WHEN store.status[t.x].n = 1 FINAL q2) WITHIN 5
----
ACEP-Q082: 't' is not the event of this arc (line 3, column 19)
  WHEN store.status[t.x].n = 1 FINAL q2) WITHIN 5
                    ^^^
  hint: write u.x; what other events had must be kept in registers

RULE r ON PATTERN AUTOMATON (q0 -> q1 ON T t q1 -> q2 ON T u
WHEN store.status[u.x AT t].n = 1 FINAL q2) WITHIN 5
----
ACEP-R022: AT is another event than that of the arc (line 3, column 26)
  WHEN store.status[u.x AT t].n = 1 FINAL q2) WITHIN 5
                           ^
  hint: an arc reads what holds at its own event: leave AT out

RULE r ON PATTERN AUTOMATON (REGISTERS l = '' q0 -> q1 ON T t SET l = t.x q1 -> q2 ON T u
WHEN store.status[l].n = 1 FINAL q2) WITHIN 5
----
ACEP-R021: a key cannot be of a register such as 'l' (line 3, column 19)
  WHEN store.status[l].n = 1 FINAL q2) WITHIN 5
                    ^
  hint: name the row by attributes of the event

RULE r ON PATTERN AUTOMATON (q0 -> q1 ON T t
WHEN f(t.x) = 1 FINAL q1) WITHIN 5
----
ACEP-Q011: no function 'f' (line 3, column 6)
  WHEN f(t.x) = 1 FINAL q1) WITHIN 5
       ^
  hint: functions are count, sum, min, max, avg, first, last, stddev
"""


def refused() -> list[tuple[str, str]]:
    """The files, and what is said of them."""
    without_heads = "\n".join(line for line in CASES.strip().split("\n") if not line.startswith("########"))
    cases = []
    for case in filter(None, map(str.strip, without_heads.split("\n\n"))):
        text, _, said = case.partition("\n----\n")
        cases.append((TABLES + text if text.startswith("RULE") else text, said))
    return cases
