"""``RuleSet.explain`` and ``graph``: who waits for whom, what runs each part of a rule, and why."""

from __future__ import annotations

import pytest

from acep_approx import compile_rules
from acep_approx.errors import UsageError

HOSPITAL = """
TABLE status (hcw text, level text DEFAULT 'safe', KEY (hcw))
TABLE room (id text, ward text, KEY (id)) STATIC
RULE warn ON
  PATTERN SEQ(EXIT a, ~(SANITIZE n), ENTER b)
  WHERE [hcw] AND store.status[b.hcw].level = 'safe'
  WITHIN 45 s
  WHEN store.room[b.location].ward != 'closed'
DO UPDATE status SET level = 'warning' AT (b.hcw); CALL badge(b.hcw, 'red') END
RULE calm ON
  PATTERN SEQ(MASK m, EXIT e)
  WHERE [hcw] AND store.status[e.hcw].level = 'warning'
  WITHIN 5 s
FOR EACH POINT DO UPDATE status SET level = 'safe' AT (e.hcw) END
RULE look ON PATTERN ENTER b WHERE store.status[b.hcw].level = 'warning' WITHIN 1 s
"""
IN_A_ROW = """
TABLE last (id text, price float, KEY (id))
TABLE alarms (id text, n int DEFAULT 0, KEY (id))
RULE note ON PATTERN Trade t WITHIN 1 DO UPSERT last SET price = t.price AT (t.id) END
RULE drop ON
  PATTERN SEQ(Order o, Trade t)
  WHERE [id] AND store.last[o.id].price > 10 AND store.last[o.hedge AT t].price > 10
  WITHIN 60
DO UPDATE alarms SET n = old.n + 1 AT (t.id); DELETE last AT (o.hedge) END
RULE quiet ON PATTERN SEQ(Order o, ~(Trade n)) WHERE [id] WITHIN 60 WHEN EXISTS store.alarms[o.id]
"""


def test_a_circle_is_told_with_those_in_it_and_why():
    assert (
        compile_rules(HOSPITAL).explain()
        == """\
table    status, by hcw; total: each key has a row, with defaults where nothing was written
         written by warn (level), calm (level)
         read by warn (level), calm (level), look (level)
table    room, by id; static: no rule writes it
         read by warn (ward)
graph    warn -> warn, because of status.level
         warn -> calm, because of status.level
         warn -> look, because of status.level
         calm -> warn, because of status.level
         calm -> calm, because of status.level
         calm -> look, because of status.level
circle   warn and calm read what rules among them write
stage 1  lockstep: in one kernel, event by event
         warn and calm detect
         warn and calm fire
stage 2  batch: over a whole batch at a time
         look detects
rule     warn
         detects in stage 1, lockstep: it reads status.level, which warn and calm write
         fires in stage 1, lockstep: it writes status.level, which warn and calm read
         engine cells, because one event alone decides each condition
         reads store.status[b.hcw].level as a column of the events b
         reads store.room[b.location].ward for WHEN, as of the event that completes the match
         its matches are listed
rule     calm
         detects in stage 1, lockstep: it reads status.level, which warn and calm write
         fires in stage 1, lockstep: it writes status.level, which warn and calm read
         engine cells, because one event alone decides each condition
         reads store.status[e.hcw].level as a column of the events e
         its matches are not listed: points say all that is asked
rule     look
         detects in stage 2, batch: waits for warn and calm, because of status.level
         engine cells, because one event alone decides each condition
         reads store.status[b.hcw].level as a column of the events b
         its matches are listed\
"""
    )


def test_rules_without_a_circle_run_over_whole_batches():
    assert (
        compile_rules(IN_A_ROW).explain()
        == """\
table    last, by id; a key has a row if one was loaded or made
         written by note (price), drop (deletes rows)
         read by drop (price)
table    alarms, by id; total: each key has a row, with defaults where nothing was written
         written by drop (n)
         read by quiet (EXISTS)
graph    note -> drop, because of last.price
         drop -> drop, because of which rows last has
         drop -> quiet, because of which rows alarms has
circle   drop reads what it writes
stage 1  batch: over a whole batch at a time
         note and quiet detect
stage 2  batch: over a whole batch at a time
         note fires
stage 3  stepping: in turn, in the order of the stream, one transaction after the other
         not in one kernel, because rule drop: a condition reads the store for one event as of another
         drop detects
         drop fires
stage 4  batch: over a whole batch at a time
         quiet tests complete matches
rule     note
         detects in stage 1, batch: waits for nobody
         fires in stage 2, batch: waits for its matches and for nobody else
         engine cells, because one event alone decides each condition
         its matches are listed
rule     drop
         detects in stage 3, stepping: it reads which rows last has, which drop writes
         fires in stage 3, stepping: it reads which rows last has, which drop writes
         engine cells, because one event alone decides each condition
         reads store.last[o.id].price as a column of the events o
         reads store.last[o.hedge AT t].price late: of complete matches, as of t
         its matches are listed
rule     quiet
         detects in stage 1, batch: waits for nobody
         tests complete matches in stage 4, batch: waits for drop, because of which rows alarms has
         engine runs
         because the cells cannot answer a negation after the last event
         reads EXISTS store.alarms[o.id] for WHEN, as of the event that completes the match
         its matches are listed
         a negation at its end makes matches wait until their windows have closed; they are transactions then\
"""
    )


def test_rules_that_share_nothing():
    text = compile_rules("RULE a ON PATTERN A a WITHIN 1 DO CALL f END RULE b ON PATTERN B b WITHIN 1").explain()
    assert (
        text
        == """\
graph    no rule reads what a rule writes
stage 1  batch: over a whole batch at a time
         a and b detect
stage 2  batch: over a whole batch at a time
         a fires
rule     a
         detects in stage 1, batch: waits for nobody
         fires in stage 2, batch: waits for its matches and for nobody else
         engine cells, because one event alone decides each condition
         its matches are listed
rule     b
         detects in stage 1, batch: waits for nobody
         engine cells, because one event alone decides each condition
         its matches are listed\
"""
    )


def test_the_graph_in_mermaid_has_circles_as_boxes():
    assert (
        compile_rules(HOSPITAL).graph()
        == """\
flowchart LR
  t0[("status")]
  t1[("room STATIC")]
  subgraph k0 ["in turn"]
    r0["warn"]
    r1["calm"]
  end
  r2["look"]
  c0(["CALL badge"])
  t0 -->|"level"| r0
  t1 -->|"ward"| r0
  r0 -->|"level"| t0
  r0 --> c0
  t0 -->|"level"| r1
  r1 -->|"level"| t0
  t0 -->|"level"| r2\
"""
    )


def test_the_graph_for_graphviz():
    assert (
        compile_rules(IN_A_ROW).graph("dot")
        == """\
digraph rules {
  rankdir=LR;
  node [shape=cylinder];
  t0 [label="last"];
  t1 [label="alarms"];
  subgraph cluster_0 {
    label="in turn";
    r1 [label="drop", shape=box];
  }
  r0 [label="note", shape=box];
  r2 [label="quiet", shape=box];
  r0 -> t0 [label="price"];
  t0 -> r1 [label="price"];
  r1 -> t0 [label="deletes rows"];
  r1 -> t1 [label="n"];
  t1 -> r2 [label="EXISTS"];
}\
"""
    )


def test_another_format_is_refused():
    with pytest.raises(UsageError, match=r"ACEP-U001.*'png'"):
        compile_rules(HOSPITAL).graph("png")
