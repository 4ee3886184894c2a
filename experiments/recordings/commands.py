"""The command lines: one table for each kind of run, and the products of queries, outputs and options."""

# ruff: noqa: E501 - a command line is one line of its table

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from experiments.recordings.case import Case, cases, lines_of
from experiments.recordings.worlds import LETTERS

PATTERNS = [name for name in LETTERS if name.endswith(".acep")]
FOLLOW = "--follow --until-idle '0 s'"
EARLY = "--watermark 1000 --id id --emit early"


def plain() -> Iterator[str]:
    """One query over events in order: outputs, formats, options, inputs."""
    for query, output in product(LETTERS, ("matches", "points", "count", "bundles", "partial", "events")):
        yield f"run {query} letters.csv --output {output} --format {'csv' if output == 'points' else 'jsonl'}"
    for query in ("cells.acep", "runs.acep", "next.acep", "machine.acep", "same.acep", "return.acep", "fold.cel"):
        yield f"run {query} letters.csv --output compressed -o found"
    for query, kind in product(("lost.acep", "lighter.acep"), ("matches", "points", "count", "bundles", "events")):
        yield f"run {query} events.csv --output {kind} -o found.parquet"
        yield f"run {query} events.csv --output {kind} --format table"
    for query in PATTERNS[:6]:
        yield f"run {query} letters.csv --engine runs --merge none"
        yield f"run {query} letters.csv --engine runs --output count --merge equal"
    yield from lines_of("""
        run lost.acep events.csv
        run lost.acep events.csv -o found.csv
        run lost.acep events.csv -o found.jsonl
        run lost.acep events.csv -q
        run lost.acep events.jsonl
        run lost.acep events.parquet
        run lost.acep events.csv.gz
        run lost.acep events.json
        run lost.acep - < events.csv
        run lost.acep - < events.jsonl
        run lost.acep - < events.parquet
        run lost.acep - < events.csv.gz
        run lost.acep day
        run lost.acep day/1.csv day/2.csv
        run @lost.acep events.csv --errors 0 --output bundles --format csv
        run lost.acep events.csv -k 1 --within '100 min'
        run lost.acep events.csv --engine cells
        run lost.acep events.csv --engine runs
        run lost.acep events.csv --bind kg
        run lost.acep events.csv --bind kg --bind ts --format csv
        run lost.acep events.csv --output points --bind kg
        run lost.acep events.csv --output points --bind kg --bind type -o found.parquet
        run lost.acep events.csv --limit 2
        run lost.acep events.csv --limit 0
        run lost.acep events.csv --limit 3
        run lost.acep events.csv --flush -o found.csv
        run lost.acep latin.csv --encoding latin-1
        run lost.acep keyless.csv
        run lost.acep header.csv
        run lost.acep empty.jsonl
        run lost.acep empty.jsonl --output count
        run lost.acep empty.jsonl --output points --format table
        run lost.acep empty.jsonl -o none.parquet
        run lighter.acep events.csv --output count
        run lighter.acep events.csv --output points --merge none
        run heavy.acep events.csv
        run heavy.acep - < events.csv
        run 'PATTERN SEQ(Packed p, Lodaed l) WITHIN 12 h' events.csv
        run 'PATTERN SEQ(Packed p, Delivered d) WITHIN 1 min' events.csv --output points
        run 'PATTERN SEQ(A a, B b) WHERE [key] WITHIN 5 s' odd.csv --time when --key who --type what --unit s
        run 'PATTERN SEQ(A a, B b) WHERE [key] WITHIN 5' odd.csv --time when --key who --type what
        run 'PATTERN SEQ(A a, B b) WHERE [key] WITHIN 5 s' odd.csv --time when --key who --type what
        run 'PATTERN SEQ(Packed p, Delivered d) WHERE [key] WITHIN 2 d RETURN d.kg AS kg' german.csv --time Datum+Uhrzeit --time-format '%d.%m.%Y %H:%M' --decimal ,
        run 'PATTERN SEQ(Packed p, Delivered d) WHERE [key] WITHIN 2 d' german.csv --time Datum+Uhrzeit --time-format '%d.%m.%Y %H:%M' --time-zone Europe/Vienna --thousands . --decimal ,
        run ab.acep german.csv --time Datum+Uhrzeit
        run 'PATTERN SEQ(ANY a, ANY b) WHERE a.status = 200 AND b.status = 500 WITHIN 1 min' access.log --line-format apache
        run 'PATTERN SEQ(INFO a, WARN w) WITHIN 1 min' plain.log --line-format '{time} {level} {message}' --type level
        run 'PATTERN SEQ(A a, B b) WITHIN 20 RETURN a.s AS s, b.s AS t, a.x AS x, b.x AS y' signs.jsonl
        run 'PATTERN SEQ(A a, B b) WITHIN 20 RETURN a.s AS s, b.s AS t, a.x AS x, b.x AS y' signs.jsonl --format csv
        run 'PATTERN SEQ(A a, B b) WITHIN 20 RETURN a.s AS s, b.s AS t, a.x AS x, b.x AS y' signs.jsonl --format table
        run 'PATTERN SEQ(A{7,8} a, B b) WITHIN 200' many.jsonl --output points
        run 'A{8}B WITHIN 9' many.jsonl --format table
        run 'A+B WITHIN 1000' many.jsonl --output count
        run 'A+B WITHIN 1000' many.jsonl --output count --format csv
        run 'A+B WITHIN 1000' many.jsonl --output count -o count.parquet
        run ab.acep mixed.csv
        run ab.acep mixed.csv --sort
        run ab.acep mixed.csv --sort --output points --bind x
        run ab.acep mixed.csv --on-late skip
        run ab.acep mixed.csv --on-late skip --late late.csv -o found.jsonl
        run ab.acep mixed.csv --on-late skip --late late.jsonl --output count
        run ab.acep mixed.csv --on-late skip --late late.parquet --output bundles
        run lost.acep torn.csv
        run lost.acep torn.csv --on-malformed skip
        run lost.acep torn.csv --on-malformed skip --rejects bad.jsonl
        run lost.acep torn.csv --on-malformed skip --rejects bad.csv --output count
        run lost.acep torn.csv --on-malformed skip --rejects bad.parquet -o out.parquet
        run ab.acep badtype.csv
        run ab.acep badtype.csv --column-type x=text
        run ab.acep types.csv
        run 'PATTERN SEQ(A a, B b) WHERE [key] WITHIN 5 events' idle.csv --key-idle 5
        run 'PATTERN SEQ(A a, B b) WHERE [key] WITHIN 5 events' idle.csv --key-idle 5 --output points --format csv
        run 'PATTERN SEQ(A a, B b) WHERE [key] WITHIN 25' idle.csv --key-idle 5 --output bundles
        run 'PATTERN SEQ(A a, ~(B b)) WHERE [key] WITHIN 25' idle.csv --key-idle 5 --output partial
        run 'PATTERN SEQ(A a, B b) WHERE [key] WITHIN 5 events' idle.csv --key-idle 5 --output bundles
        run 'PATTERN SEQ(A a, B b) WHERE [key] WITHIN 25' idle.csv --key-idle 5 --output compressed -o found
        run 'PATTERN SEQ(A a, B b) WITHIN 25' idle.csv --key-idle 5
        run cells.acep letters.parquet --output points -o found.csv
        run runs.acep letters.parquet --output count
        run sums.acep letters.parquet -o found.parquet
        run negend.acep letters.parquet --output bundles -o found.csv
        run higher.cel quotes.csv --format csv
        run higher.cel quotes.csv --output count
        run 'SELECT id_1 AS first, id AS second FROM Trip NEXT Trip' trips.csv --start left
        run 'SELECT id FROM FILTER{DUR > 3}(Trip)' trips.csv --start left --output points
        run next.cel letters.csv --output points --bind x
        run free.cel letters.csv --output count
        run lost.acep events.csv --log debug --log log.txt
    """)


def wrong() -> Iterator[str]:
    """Inputs, queries and options that are refused, each with its words and its exit code."""
    yield from lines_of("""
        run
        run lost.acep
        nosuch
        run nowhere.acep events.csv
        run @nowhere events.csv
        run wrong.acep events.csv
        run nokey.acep letters.csv
        run 'ab' events.csv
        run 'PATTERN SEQ(A a, B b) WHERE c.x > 1 WITHIN 5' letters.csv
        run 'PATTERN SEQ(A a, B b) WHERE a.nope > 1 WITHIN 5' letters.csv
        run 'PATTERN SEQ(A a, B b) WHERE a.key > 1 WITHIN 5' letters.csv
        run 'PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match { b.x > a[i].x + a[i-1].x } WITHIN 5' letters.csv
        run lost.acep event.csv
        run lost.acep events.csv --time when
        run lost.acep events.csv --key box
        run lost.acep events.csv --unit s
        run lost.acep events.csv --within '2 parsec'
        run lost.acep events.csv --errors 5
        run lost.acep events.csv --errors -1
        run lost.acep events.csv --limit -1
        run lost.acep events.csv --output all
        run lost.acep events.csv --format xml
        run lost.acep events.csv --colour
        run lost.acep events.csv -
        run lost.acep events.csv --format parquet
        run lost.acep events.csv -o nowhere/out.csv
        run lost.acep events.csv -o .
        run lost.acep events.csv -o events.csv
        run lost.acep day -o day/found.csv
        run lost.acep events.csv -o out.csv --format table
        run lost.acep events.csv -o out.csv.gz
        run lost.acep events.csv --limit 2 --output count
        run lost.acep events.csv --rejects bad.jsonl
        run lost.acep events.csv --late late.csv
        run lost.acep torn.csv --on-malformed skip --rejects torn.csv
        run lost.acep torn.csv --on-malformed skip --rejects x.csv -o x.csv
        run lost.acep torn.csv -o old.csv
        run lighter.acep events.csv --engine cells
        run lighter.acep events.csv --merge equal,some
        run lighter.acep events.csv --output compressed
        run lighter.acep events.csv --output compressed -o x --format csv
        run lighter.acep events.csv --output compressed -o x --limit 1
        run lighter.acep events.csv --output compressed -o x --bind kg
        run apart.acep letters.csv --output compressed -o x
        run return.acep letters.csv --bind x
        run lost.acep events.csv --bind nope
        run lost.acep events.csv --id kg
        run lost.acep events.csv --flush -o found.parquet
        run lost.acep events.csv --metrics-port 70000
        run fold.cel letters.csv --output partial
        run fold.cel letters.csv --bind x
        run free.cel letters.csv --budget '20 runs'
        run fold.cel letters.csv --start nope
        run lost.acep events.csv --start ts
        run lost.acep events.csv --page nowhere/p.html
        run lost.acep events.csv --page events.csv
        run lost.acep events.csv --strict
        run lost.acep events.csv --reorder 5
        run lost.acep events.csv --stamp
        run lost.acep events.csv --store x.db
        run lost.acep events.csv --table a=b
        run lost.acep events.csv --changes x
        run lost.acep events.csv --calls x
        run lost.acep events.csv --until-idle '5 s'
        run lost.acep events.csv --checkpoint cp
        run lost.acep events.csv --kafka-option a=b
        run lost.acep events.csv --finish
        run lost.acep kafka:///x
    """)


def budgets() -> Iterator[str]:
    """Runs that do only so much work, with and without a history, and what learns."""
    kinds = ("20%", "2 steps/event", "30 runs", "100%", "0.5 steps/event")
    for budget, output in product(kinds, ("matches", "points", "count", "bundles")):
        yield f"run rising.acep now.csv --budget '{budget}' --history history --output {output} --format csv"
    for policy in ("history", "coverage", "scores", "random", "oldest", "most-advanced", "luck"):
        history = "--history history" if policy in ("history", "coverage", "scores") else ""
        yield f"run rising.acep long.csv --budget '2 steps/event' --policy {policy} {history} --seed 7 --output points"
    for query in ("runs.acep", "next.acep", "sums.acep", "machine.acep", "fold.cel", "cells.acep", "count.acep"):
        yield f"run {query} letters.csv --budget '1 steps/event' --seed 3"
        yield f"run {query} letters.csv --budget '5 runs' --output points --audit 0.2"
    yield from lines_of("""
        run rising.acep now.csv --budget '2 steps/event' --history history --expand
        run rising.acep now.csv --budget '2 steps/event' --history history --expand --whole-bundles
        run rising.acep now.csv --budget '2 steps/event' --shed shed.csv --output points
        run rising.acep now.csv --budget '2 steps/event' --shed shed.jsonl
        run rising.acep now.csv --budget '2 steps/event' --shed shed.parquet --output count
        run rising.acep now.csv --budget '30 runs' --report report.html --output count
        run rising.acep long.csv --budget 20% --history history --report report.html --page page.html --output points
        run rising.acep now.csv --budget 10% --full-work 200 --within 3000 --output points
        run rising.acep now.csv --budget '2 steps/event' --audit 0
        run rising.acep now.csv --budget '2 steps/event' --limit 5 --on-late skip
        run rising.acep now.csv --budget '1 steps/event' --unit s --within '30 s' --shed s.csv
        run rising.acep - --budget '2 steps/event' --history history --output points < now.csv
        run ab.acep now.csv --budget 5% --history history
        run peak.acep june.csv --budget 20% --history peakhistory --output points -o found.csv
        run peak.acep june.csv --budget '5 steps/event' --output points --key-idle 300
        run rising.acep long.csv --budget '4 steps/event' --learn --save fresh --output points -o found.csv
        run rising.acep long.csv --budget '4 steps/event' --learn --output count --learn-log log.csv
        run rising.acep long.csv --budget '4 steps/event' --learn --output count --learn-log log.jsonl --report r.html
        run rising.acep long.csv --budget 30% --history history --learn --save grown --output count ;; run rising.acep now.csv --budget 30% --history grown --output count
        run rising.acep long.csv now.csv --budget '4 steps/event' --learn --save often --save-every 1 --output count
        run rising.acep - --budget '4 steps/event' --learn --save live --output points --format csv < long.csv
        run ab.acep now.csv --budget 9% --learn --save unmade --learn-log none.jsonl
        run rising.acep now.csv --budget 50% --full-work 8 --learn --output count
        run rising.acep now.csv --history history
        run rising.acep now.csv --shed shed.csv
        run rising.acep now.csv --seed 0
        run rising.acep now.csv --budget much
        run rising.acep now.csv --budget 20%
        run rising.acep now.csv --budget '9 runs' --policy history
        run rising.acep now.csv --budget '9 runs' --audit 1
        run rising.acep now.csv --budget '9 runs' --output partial
        run rising.acep now.csv --budget '9 runs' --output compressed -o folder
        run rising.acep now.csv --budget '9 runs' --output points --expand
        run rising.acep now.csv --budget '9 runs' --whole-bundles
        run rising.acep now.csv --expand
        run rising.acep now.csv --budget '9 runs' --report nowhere/report.html
        run rising.acep now.csv --budget '9 runs' --shed shed.txt
        run rising.acep now.csv --budget '9 runs' --shed same.csv -o same.csv
        run rising.acep now.csv --budget 9% --history history --errors 1
        run rising.acep now.csv --budget 9% --history history --within 40
        run rising.acep now.csv --budget 9% --history nowhere
        run rising.acep now.csv --learn
        run rising.acep now.csv --budget '9 runs' --save unmade
        run rising.acep now.csv --budget '9 runs' --learn --policy random
        run rising.acep now.csv --budget '9 runs' --learn --save-every 2
        run rising.acep now.csv --budget 9% --full-work nan
        run rising.acep now.csv --budget '9 runs' --learn --output partial
        train rising.acep past.csv -o learned
        train rising.acep past.csv -o grown --gap window ;; train rising.acep more.csv -o grown --more ;; train rising.acep past.csv -o grown --new-version
        train fold.cel letters.csv -o learned
        train free.cel letters.csv -o learned
        train rising.acep past.csv -o history
        train rising.acep past.csv -o history --more --errors 1
        train rising.acep past.csv -o x --more --gap 5
        train rising.acep past.csv -o x --gap wide
        train rising.acep nowhere.csv -o x
        train ab.acep past.csv -o learned
        tune rising.acep past.csv --errors 0,1 --budgets 20%,100% --plot curves.html
        tune rising.acep past.csv --within 15,30 --output points --budgets 50%
        tune rising.acep past.csv --most-steps 0
        tune free.cel letters.csv
        tune rising.acep past.csv --errors 0,x
        tune rising.acep past.csv --budgets '5 ms/batch'
        tune rising.acep past.csv --plot curves.png
        replay rising.acep now.csv --budget 20% --history history --at 20200
        replay rising.acep now.csv --budget 20% --history history --at 20200 --key u --limit 1
        replay rising.acep now.csv --budget '1 steps/event' --within '12 events' --at 200 --limit 1
        replay rising.acep now.csv --budget '1 steps/event' --unit s --within '30 s' --at 1970-01-01T05:36:40Z --limit 2
        replay rising.acep now.csv --budget '9 runs' --at 20100 --key nobody
        replay ab.acep now.csv --budget '9 runs' --at 20100
        replay rising.acep now.csv --at 5
        replay rising.acep now.csv --budget '2 ms/batch' --at 5
        replay rising.acep now.csv --budget '9 runs' --at noon
    """)


def late() -> Iterator[str]:
    """Events that come late, are corrected or taken back."""
    for query, output in product(PATTERNS, ("matches", "points", "count")):
        yield f"run {query} disorder.csv --watermark 12 --id id --output {output} --op none"
    for query, emit in product(("cells.acep", "runs.acep", "negend.acep", "machine.acep", "next.acep"), ("early", "4")):
        yield f"run {query} days --watermark 1000 --id id --emit {emit} --format csv"
        yield f"run {query} days --watermark 9 --id id --emit {emit} --late late.csv"
    for output in ("matches", "points"):
        yield f"run cells.acep days {EARLY} --output {output} -o found.parquet"
        yield f"run same.acep days {EARLY} --output {output} -o found.csv"
        yield f"run cells.acep story.csv --watermark 50 --id id --changelog --output {output}"
    yield from lines_of("""
        run first.acep messages.csv --watermark '6 min' --late late.csv
        run first.acep messages.csv --watermark '6 min' --late late.jsonl --on-late skip
        run first.acep messages.csv --watermark '6 min' --late late.parquet --id id --emit early
        run ab.acep - --watermark 5 --emit early < mixed.csv
        run ab.acep mixed.csv --watermark 2 --output count
        run ab.acep mixed.csv --watermark 2 --output points --format table
        run ab.acep tornops.csv --watermark 6 --id id --late late.csv
        run ab.acep tornops.csv --watermark 6 --id id --emit early --late late.jsonl
        run ab.acep debezium.csv --watermark 9 --id id --emit early
        run ab.acep debezium.csv --watermark 9 --id id
        run ab.acep flink.csv --watermark 9 --id id --emit early --format csv
        run ab.acep flink.csv --watermark 9 --changelog
        run ab.acep flink.csv --op op --emit 3 --id id
        run ab.acep sources.csv --source from --watermark 1
        run ab.acep sources.csv --source from --watermark 1 --idle 2
        run ab.acep sources.csv --source from --emit early
        run ab.acep sources.csv --source from --watermark '1 s' --unit s --within '9 s'
        run ab.acep missing.csv --sequence n
        run ab.acep missing.csv --sequence n --source from
        run ab.acep missing.csv --sequence n --watermark 3 --emit early
        run ab.acep mixed.csv --watermark 2 --page page.html
        run cells.acep days --watermark 1000 --id id --emit early --page page.html -o found.csv
        run cells.acep days --watermark 1000 --id id --emit early --limit 3
        run cells.acep header.csv --watermark 5 --emit early
        run cells.acep header.csv --watermark 5 --output count
        run cells.acep empty.jsonl --watermark 5 --emit early -o none.parquet --late late.csv
        run fold.cel mixed.csv --watermark 6
        run next.cel letters.csv --watermark 6
        run next.cel disorder.csv --watermark 12 --output count --op none
        run fold.cel letters.csv --watermark 6 --emit early
        run cells.acep torn.csv --watermark '5 s' --within '5 s'
        run lost.acep torn.csv --watermark '5 s' --on-malformed skip --rejects bad.jsonl
        run heavy.acep events.csv --watermark '1 s'
        run ab.acep types.csv --watermark 5
        run ab.acep story.csv --watermark 5parsec
        run ab.acep story.csv --watermark -5
        run ab.acep story.csv --watermark 5 --emit soon
        run ab.acep story.csv --watermark '5 s'
        run ab.acep story.csv --watermark 5 --idle 5
        run ab.acep story.csv --watermark 5 --source key --idle long
        run ab.acep story.csv --watermark 5 --op what
        run ab.acep story.csv --watermark 5 --op type
        run ab.acep story.csv --watermark 5 --id what
        run ab.acep story.csv --watermark 5 --sequence key
        run ab.acep story.csv --watermark 5 --late story.csv
        run ab.acep story.csv --watermark 5 --late x.csv -o x.csv
        run ab.acep story.csv --watermark 5 --format parquet
        run ab.acep story.csv --watermark 5 --output count --changelog
        run ab.acep story.csv --watermark 5 --output count --limit 3
        run ab.acep debezium.csv --watermark 9 --emit early
        run 'PATTERN SEQ(A a, B b) WITHIN 9 RETURN a.id AS op' story.csv --watermark 5 --emit early
    """)


def sets() -> Iterator[str]:
    """Folders of queries: many on one stream, templates, levels, queries in CEL."""
    for folder, events in (("queries", "set.csv"), ("mixedset", "letters.csv"), ("templates", "letters.csv")):
        for output in ("matches", "points", "count"):
            whole = "" if output == "count" else " --limit 100000"
            for form in ("jsonl", "csv", "table"):
                yield f"run --queries {folder} {events} --output {output} --format {form}{whole}"
            yield f"run --queries {folder} {events} --output {output} -o found.parquet"
        yield f"run --queries {folder} {events} --page page.html -o found.jsonl"
        yield f"run --queries {folder} - < {events}"
        yield f"run --queries {folder} {events} --limit 5"
        yield f"check --queries {folder}"
        yield f"check --queries {folder} --input {events}"
        for form in ("text", "mermaid", "dot", "svg", "air", "json"):
            yield f"explain --queries {folder} --format {form}"
    yield from lines_of("""
        run --queries queries setmixed.csv
        run --queries queries setmixed.csv --reorder 5
        run --queries queries setmixed.csv --reorder 1 --output points
        run --queries queries setmixed.csv --reorder 0
        run --queries queries setmixed.csv --sort
        run --queries queries setmixed.csv --on-late skip
        run --queries queries setmixed.csv --on-late skip --late late.csv
        run --queries queries setmixed.csv --reorder 0 --late late.csv
        run --queries queries down.csv
        run --queries queries down.csv --key p
        run --queries queries - < down.csv
        run --queries queries timeless.csv --stamp --output count
        run --queries timedset timeless.csv --stamp --output count
        run --queries queries timeless.csv
        run --queries mixedset letters.csv --key-idle 4 --output points
        run --queries templates letters.csv --key-idle 4
        run --queries templates letters.parquet --output count
        run --queries mixedset letters.parquet --output points -o found.csv
        run --queries badset set.csv
        run --queries badset set.csv --strict
        run --queries badset set.csv --output count --format csv
        check --queries badset
        check --queries badset --input set.csv
        check --queries badset --input set.csv --strict
        explain --queries badset
        run --queries autoset letters.csv
        run --queries nowhere set.csv
        run --queries none set.csv
        run --queries queries
        run --queries queries nowhere.csv
        run --queries queries torn.csv
        run --queries queries set.csv --output count --page p.html
        check --queries queries set.csv
    """)


def rules() -> Iterator[str]:
    """Files of rules: tables, actions, a store that goes on."""
    hygiene = "run hygiene.acep ward.csv --table room=rooms.csv"
    for form in ("jsonl", "csv", "parquet"):
        yield f"{hygiene} -o out --changes changes --calls calls.jsonl --format {form}"
        yield f"run counting.acep letters.csv -o out --changes changes --calls calls.jsonl --format {form}"
    yield from (
        line.replace("HYGIENE", hygiene)
        for line in lines_of("""
        HYGIENE
        HYGIENE -q
        HYGIENE -o out
        HYGIENE --page page.html
        HYGIENE --store s.db -o out --changes changes --calls calls.jsonl ;; HYGIENE --store s.db -o out --changes changes --calls calls.jsonl
        HYGIENE --store s.db --checkpoint-every 2
        HYGIENE --sort
        HYGIENE --on-late skip
        HYGIENE --store s.db ;; run hygiene.acep ward.csv --store s.db --finish
        run hygiene.acep ward.csv
        run hygiene.acep - --table room=rooms.csv < ward.csv
        run counting.acep letters.csv
        run counting.acep letters.csv --page page.html -o out
        run counting.acep letters.parquet -o out --changes changes --calls calls.jsonl
        run counting.acep few.csv --store s.db -o out ;; run counting.acep few.csv --store s.db -o out --finish
        run counting.acep few.csv --store s.db --checkpoint-every 7 --changes changes --calls c.jsonl
        run counting.acep mixed.csv --key x
        run counting.acep disorder.csv
        run counting.acep disorder.csv --sort -o out
        run counting.acep disorder.csv --on-late skip --late late.csv
        run still.acep grow.csv
        run still.acep grow.csv --store s.db --calls c.jsonl ;; run still.acep grow.csv --store s.db --calls c.jsonl --finish
        run overflow.acep huge.csv
        run overflow.acep huge.csv --store s.db -o out --changes changes
        run overflow.acep huge.csv -o whole
        run wrongrules.acep huge.csv
        HYGIENE --store s.db ;; @append hygiene.acep \\n-- changed ;; HYGIENE --store s.db ;; @copy counting.acep hygiene.acep ;; HYGIENE --store s.db
        HYGIENE --table rooms.csv
        HYGIENE --table status=rooms.csv
        HYGIENE --table ward=rooms.csv
        HYGIENE -o hygiene.acep
        HYGIENE -o none/out/deep
        HYGIENE -o out --changes out
        HYGIENE --calls calls.parquet
        HYGIENE --format parquet
        HYGIENE -o out --format table
        HYGIENE --store nowhere/h.db
        HYGIENE --store rooms.csv
        run heavy.acep events.csv --changes x
        check hygiene.acep
        check hygiene.acep --input ward.csv
        check counting.acep --input ward.csv
        check wrongrules.acep
        explain hygiene.acep
        explain hygiene.acep --format mermaid
        explain hygiene.acep --format dot
        explain hygiene.acep --format svg
        explain hygiene.acep --format json
        explain counting.acep
    """)
    )


def live() -> Iterator[str]:
    """Input that grows; checkpoints, taken up again; pages and metrics."""
    more = "@append grow.csv 4,B,1\\n5,A,2\\n ;;"
    for query in (
        "ab.acep",
        "strict.acep",
        "'PATTERN SEQ(A a, ~(B b)) WITHIN 3'",
        "'PATTERN SEQ(A a, B b) WITHIN 2 events'",
    ):
        for output in ("matches", "points", "partial"):
            run = f"run {query} grow.csv {FOLLOW} --checkpoint cp -o found.csv --output {output}"
            yield f"{run} ;; {more} {run} ;; {run} --finish"
        for output in ("count", "bundles"):
            yield f"run {query} grow.csv {FOLLOW} --output {output}"
    for query in ("ab.acep", "negend.acep --key x", "free.cel"):
        run = f"run {query} grow.csv {FOLLOW} --watermark 2 --checkpoint cp -o found.jsonl --late late.csv"
        yield f"{run} ;; @append grow.csv 9,B,9\\n0,A,0\\n8,B,1\\n ;; {run} ;; {run} --finish"
    run = f"run ab.acep grow.csv {FOLLOW} --watermark 9 --emit early --checkpoint cp -o found.jsonl"
    yield f"{run} ;; @append grow.csv 2,A,7\\n4,B,1\\n ;; {run} ;; {run} --finish"
    run = f"run --queries templates few.csv {FOLLOW} --checkpoint cp -o f.jsonl"
    yield f"{run} ;; @append few.csv 90,70,k,A,3,left\\n91,71,k,B,4,\\n ;; {run} ;; {run} --finish"
    run = f"run --queries mixedset few.csv {FOLLOW} --checkpoint cp -o f.jsonl --output points --reorder 2"
    yield f"{run} ;; @append few.csv 90,70,k,A,3,left\\n89,71,k,B,4,\\n ;; {run} ;; {run} --finish"
    run = f"run counting.acep few.csv {FOLLOW} --store s.db -o out --changes changes"
    yield f"{run} ;; @append few.csv 90,70,k,A,3,left\\n91,71,k,B,4,\\n ;; {run} ;; {run} --finish"
    run = f"run 'PATTERN SEQ(A a, B b) WHERE [key] WITHIN 5 events' idle.csv {FOLLOW} --key-idle 5 --checkpoint c"
    yield f"{run} ;; @append idle.csv 60,A,q\\n61,B,q\\n ;; {run}"
    yield from (
        line.replace("FOLLOW", FOLLOW)
        for line in lines_of("""
        run ab.acep day FOLLOW
        run lost.acep day FOLLOW --checkpoint cp ;; run lost.acep day FOLLOW --checkpoint cp
        run ab.acep grow.csv FOLLOW --budget '1000 runs'
        run ab.acep mixed.csv FOLLOW --on-late skip --late late.csv
        run ab.acep mixed.csv FOLLOW
        run ab.acep grow.csv FOLLOW --page page.html
        run counting.acep few.csv FOLLOW
        run --queries queries set.csv FOLLOW
        run --queries badset set.csv FOLLOW -o f.jsonl
        run lost.acep torn.csv FOLLOW --on-malformed skip --rejects bad.jsonl
        run lost.acep torn.csv FOLLOW --checkpoint cp ;; run lost.acep torn.csv FOLLOW --checkpoint cp --on-malformed skip
        run ab.acep grow.csv FOLLOW --checkpoint cp -o a.csv ;; run ab.acep grow.csv FOLLOW --checkpoint cp -o b.csv
        run ab.acep grow.csv FOLLOW --checkpoint cp ;; run strict.acep grow.csv FOLLOW --checkpoint cp
        run ab.acep grow.csv FOLLOW --sort
        run ab.acep grow.csv FOLLOW --format table
        run ab.acep grow.csv FOLLOW -o found.parquet
        run ab.acep grow.csv FOLLOW --output compressed -o f
        run ab.acep grow.csv FOLLOW --checkpoint cp --limit 3
        run ab.acep grow.csv FOLLOW --checkpoint cp --budget '9 runs'
        run ab.acep grow.csv FOLLOW --checkpoint cp --output count
        run ab.acep grow.csv FOLLOW --checkpoint cp --on-late skip
        run ab.acep grow.csv FOLLOW --checkpoint cp --checkpoint-every often
        run ab.acep grow.csv FOLLOW --checkpoint-every '1 s'
        run ab.acep grow.csv FOLLOW --finish
        run ab.acep grow.csv FOLLOW --encoding latin-1
        run ab.acep grow.csv few.csv FOLLOW
        run ab.acep grow.csv FOLLOW --spark
        run counting.acep few.csv FOLLOW --checkpoint cp
        run --queries queries set.csv FOLLOW --output count --checkpoint cp
        run ab.acep grow.csv --metrics-port 0 --on-malformed skip
        run ab.acep grow.csv FOLLOW --metrics-port 0
        run rising.acep now.csv --budget '2 steps/event' --metrics-port 0 --output points
        run ab.acep mixed.csv --watermark 1 --metrics-port 0
        run ab.acep mixed.csv --watermark 1 --metrics-port 0 --output count
        run --queries queries set.csv --metrics-port 0
        run counting.acep few.csv --metrics-port 0
        run runs.acep letters.csv --metrics-port 0 --output count
    """)
    )


def pages() -> Iterator[str]:
    """Pages of HTML."""
    for query in LETTERS:
        yield f"run {query} letters.csv --page page.html -o found.jsonl"
    yield from lines_of("""
        run lost.acep events.csv --page page.html
        run heavy.acep events.csv --page page.html
        run lost.acep - --page page.html < events.csv
        run lost.acep events.csv --output count --page page.html
        run lost.acep events.csv --output bundles --page page.html
        run ab.acep mixed.csv --sort --page page.html
        run lost.acep empty.jsonl --page page.html
        run higher.cel quotes.csv --page page.html
    """)


def words() -> Iterator[str]:
    """What says things of queries and events: check, explain, why, look, help."""
    for query in LETTERS:
        yield f"check {query} --input letters.csv"
        yield f"explain {query}"
        yield f"explain {query} --format json"
        yield f"why {query} letters.csv"
    for query, form in product(
        ("cells.acep", "runs.acep", "machine.acep", "fold.cel"), ("mermaid", "dot", "svg", "air")
    ):
        yield f"explain {query} --format {form}"
    yield from lines_of("""
        --version
        --help
        check lost.acep
        check lost.acep --input events.csv
        check lost.acep --input - < events.jsonl
        check lost.acep --input events.parquet --key kg
        check lost.acep --input events.csv --key box
        check wrong.acep
        check free.cel
        check 'PATTERN SEQ(Packed p, Delivered d) WHERE p.typ > 10 WITHIN 12 h' --input events.csv
        check ab.acep --input types.csv
        check
        explain
        explain wrong.acep
        explain lost.acep --format png
        explain lost.acep --engine runs
        why lost.acep events.csv
        why heavy.acep events.csv
        why heavy.acep events.csv --format json
        why heavy.acep events.csv --key 'box 2' --around 2024-05-01T09:00:00Z
        why heavy.acep events.csv --key 'box 2' --around 2024-05-01T09:00:00Z --format json
        why lost.acep events.csv --key 'box 1' --around 2024-05-01T08:06:00Z
        why lost.acep events.csv --key 'box 7' --around 2024-05-01T08:06:00Z
        why lost.acep events.csv --key 'box 1' --around soon
        why lost.acep events.csv --key 'box 1'
        why heavy.acep - < events.csv
        why runs.acep letters.csv --key k --around 40
        why cells.acep letters.csv --key l --around 60 --errors 0
        why fold.cel letters.csv --around 40
        why next.cel letters.csv --around 41 --format json
        why strict.acep letters.csv --around 33
        why negend.acep letters.csv --key m --around 70
        why counting.acep letters.csv
        look shop.csv
        look shop.csv --format json
        look shop.csv --rows 3
        look - --time when_ms --unit ms < shop.csv
        look letters.csv
        look letters.parquet --format json
        look events.json
        look german.csv
        look access.log
        look nowhere.csv
        demo --quiet --output demo.html
        demo --save-events flights.csv
    """)
    for command in ("run", "check", "explain", "why", "train", "tune", "replay", "look", "demo", "warm", "package"):
        yield f"{command} --help"


def together() -> Iterator[str]:
    """What goes together, and what does not: cells of that page, by their codes."""
    wings = {
        "budget": "run rising.acep now.csv --budget '9 runs'",
        "late": "run ab.acep disorder.csv --watermark 12 --op none",
        "spark": "run ab.acep letters.csv --spark",
        "stream": "run ab.acep arrived --spark --stream -o out --checkpoint cp",
        "set": "run --queries mixedset letters.csv",
        "rules": "run counting.acep letters.csv",
        "follow": f"run ab.acep grow.csv {FOLLOW}",
        "kept": f"run ab.acep grow.csv {FOLLOW} --checkpoint cp",
        "cel": "run fold.cel letters.csv",
        "machine": "run machine.acep letters.csv",
    }
    options = lines_of("""
        --output partial
        --output bundles
        --output count
        --output compressed -o links
        --output events
        --emit early
        --changelog
        --op note
        --id id
        --source key
        --sequence id
        --idle 5
        --watermark 5
        --sort
        --on-late skip
        --key-idle 5
        --budget '9 runs'
        --history history
        --learn
        --shed s.csv
        --report r.html
        --expand
        --bind x
        --errors 1
        --within 5
        --engine runs
        --merge none
        --limit 3
        --start ts
        --page p.html
        --late l.csv
        --on-malformed skip --rejects r.csv
        --queries mixedset
        --store s.db
        --reorder 3
        --stamp
        --shards 2
        --checkpoint cp
        --follow --until-idle '0 s'
        --time-zone UTC
    """)
    started = ("spark", "stream")
    harmless = ("--id", "--errors", "--within", "--engine", "--key-idle", "--budget", "--bind", "--output count",
                "--output events", "--watermark", "--limit", "--on-malformed", "--late", "--shards", "--time-zone",
                "--checkpoint")  # fmt: skip
    for wing, option in product(wings, options):
        if wing in started and option.startswith(harmless):
            continue  # these may start Spark
        yield f"{wings[wing]} {option}"
    yield from lines_of("""
        run ab.acep letters.csv --spark --output bundles
        run ab.acep letters.csv --master local
        run ab.acep letters.csv --stream
        run ab.acep letters.csv --spark --watermark 5s
        run ab.acep letters.csv --spark --late x.jsonl
        run ab.acep letters.csv --spark --budget 20% --learn
        run ab.acep letters.csv --spark --metrics-port 0
        run ab.acep letters.csv --spark --stream --output count
        run ab.acep letters.csv --spark --stream --limit 3
        run ab.acep letters.csv --spark --stream --trigger 5s --until-done
        run ab.acep letters.csv --spark -o queries
        run ab.acep letters.csv --spark -o new --format csv
        run ab.acep letters.csv --spark -o new --output count
        run ab.acep letters.csv --spark --stream -o new
        run ab.acep letters.csv --spark --stream --checkpoint state
        run ab.acep letters.csv --spark --stream -o new --checkpoint new
        run counting.acep letters.csv --spark
        run --queries queries set.csv --spark
        run 'RULE r ON AB WITHIN 5 DO CALL x(1) END' letters.csv
        run 'RULE r ON PATTERN AUTOMATON (s -> t ON A a FINAL t) WITHIN 5' letters.csv
        run 'RULE r ON PATTERN SEQ(A a, B b) WITHIN 5 PUBLISH X' letters.csv
    """)


def spark() -> Iterator[str]:
    """Runs that start Spark."""
    batch = "run spark.acep seconds.jsonl --spark --id event"
    stream = (
        "run spark.acep arrived --spark --stream --id event --shards 2 --watermark '5 seconds' -o out "
        "--checkpoint cp --late late --until-done"
    )
    for output in ("matches", "points", "count"):
        yield f"{batch} --output {output} --format jsonl"
    yield f"{batch} -o found.parquet --limit 3"
    yield f"{batch} -o folder"
    yield f"{batch} -o found.parquet --engine runs --budget '3 steps/event' --policy random --seed 5"
    yield "run fold.cel letters.csv --spark --format jsonl"
    yield "run machine.acep letters.csv --spark --format jsonl"
    yield "run lost.acep torn.csv --spark"
    yield f"{stream} ;; @copy second.jsonl arrived/2.jsonl ;; {stream}"
    yield f"{stream} --output points"
    yield "train rising.acep past.csv -o learned --spark"
    yield "tune rising.acep past.csv --budgets 50% --spark"


TABLES = {
    "plain": plain, "wrong": wrong, "budgets": budgets, "late": late, "sets": sets, "rules": rules, "live": live,
    "pages": pages, "words": words, "together": together,
}  # fmt: skip


def all_commands(*, with_spark: bool = False) -> list[Case]:
    """All command lines as cases; those that start Spark only when asked for."""
    tables = {**TABLES, "spark": spark} if with_spark else TABLES
    return [case for group, lines in tables.items() for case in cases(group, lines())]
