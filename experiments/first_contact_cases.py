"""What strangers do in their first quarter of an hour, and what they should see: mistakes, and files of all kinds."""

from __future__ import annotations

from dataclasses import dataclass

SHOP = "PATTERN SEQ(placed a, paid b, shipped c) WHERE [key] WITHIN 1 d"
FOUND = '"matches": 4'
"""What a run of ``SHOP`` should count, however the events are written."""


@dataclass(frozen=True)
class Command:
    """A command, and what a good answer has.

    Attributes
    ----------
    words : tuple of str
        After ``acep``.
    says : tuple of str
        What must stand in what is printed, on stdout or stderr; of words joined by ``|`` one must.
    code : int
        The exit code.
    stdin : str
        The file that is fed to standard input.
    """

    words: tuple[str, ...]
    says: tuple[str, ...]
    code: int = 0
    stdin: str = ""


@dataclass(frozen=True)
class Case:
    """What somebody has or does, and the commands."""

    name: str
    commands: tuple[Command, ...]


def run(query: str, file: str, *options: str) -> tuple[str, ...]:
    """The words of ``acep run``."""
    return ("run", query, file, *options)


def _file(name: str, file: str, *understood: str, query: str = SHOP, options: tuple[str, ...] = ()) -> Case:
    """A file that is looked at, and then run on."""
    return Case(
        name,
        (
            Command(("look", file, *options), ("12 rows", "first query", "acep run", *understood)),
            Command(run(query, file, *options, "--output", "count"), (FOUND,)),
        ),
    )


def _mistake(name: str, words: tuple[str, ...], *says: str, code: int) -> Case:
    return Case(name, (Command(words, says, code),))


def _query(name: str, right: str, wrong: str, *says: str, code: int) -> Case:
    """``SHOP`` with something wrong in it, over ``shop.csv``."""
    return _mistake(name, run(SHOP.replace(right, wrong), "shop.csv"), *says, code=code)


def _events(name: str, file: str, *says: str, code: int) -> Case:
    """``SHOP`` over a file that is none, or not what it seems."""
    return _mistake(name, run(SHOP, file), *says, code=code)


LOG = ("--time", "when", "--type", "step", "--key", "order")
FILES = (
    _file(
        "semicolons, and commas in numbers", "german.csv", "delimiter ';'", "decimal comma in amount", "10.5 .. 13.5"
    ),
    _file("tabs", "tabs.tsv", "(tab)"),
    _file("gzip", "zipped.csv.gz", "gzip"),
    _file("zstd", "squeezed.jsonl.zst", "zst"),
    _file("a JSON array over many lines", "array.json", "JSON"),
    _file(
        "objects in objects",
        "nested.jsonl",
        "order.id",
        "event.name",
        query=SHOP.replace("[key]", "[`order.id`]"),
        options=("--time", "at", "--type", "event.name"),
    ),
    _file("an array inside an object", "wrapped.json", "events"),
    _file(
        "a log of Apache",
        "access.log",
        query=SHOP.replace("placed", "'/placed'").replace("paid", "'/paid'").replace("shipped", "'/shipped'"),
        options=("--line-format", "apache", "--type", "path", "--key", "host"),
    ),
    _file(
        "syslog",
        "sys.log",
        options=(
            "--line-format",
            r"<\d+>1 (?P<when>\S+) (?P<order>\S+) \S+ \S+ (?P<step>\S+) .*",
            *LOG,
        ),
    ),
    Case(
        "a log of Java, with tracebacks between the lines",
        (
            Command(
                (
                    "look",
                    "java.log",
                    "--line-format",
                    r"(?P<when>\S+ \S+) INFO +\[(?P<order>\w+)\] (?P<step>\w+) - .*",
                    *LOG,
                ),
                ("12 rows", "3 rows cannot be read", "--on-malformed skip", "java.log, line 7"),
            ),
        ),
    ),
    _file("German dates", "dates_de.csv", "2024-03-28 09:30", "ts as %d.%m.%Y"),
    _file("American dates with AM and PM", "dates_us.csv", "2024-03-28 09:30", "ts as %m/%d/%Y"),
    Case(
        "dates that may be read in two ways",
        (
            Command(
                ("look", "dates_unclear.csv"),
                ("more than one format", "--time-format '%d/%m/%Y", "--time-format '%m/%d/%Y", "03/04/2024"),
            ),
            Command(run(SHOP, "dates_unclear.csv"), ("in two ways", "--time-format '%d/%m/%Y", "%m/%d/%Y"), 4),
            Command(run(SHOP, "dates_unclear.csv", "--time-format", "%m/%d/%Y %H:%M", "--output", "count"), (FOUND,)),
        ),
    ),
    _file(
        "milliseconds since 1970",
        "numbers.csv",
        "--unit ms",
        query=SHOP.replace("[key]", "[order_id]"),
        options=("--time", "when_ms", "--unit", "ms", "--type", "step"),
    ),
    _file(
        "Parquet with structs",
        "nested.parquet",
        "order.id",
        query=SHOP.replace("[key]", "[`order.id`]"),
        options=("--time", "at", "--type", "event.name"),
    ),
    _file("a date and a time of day in two columns", "two_columns.csv", "date+time", "2024-03-28 09:30"),
    _file("the same in German, with AM and PM", "two_texts.csv", "Datum+Uhrzeit", "2024-03-28 09:30"),
    _file(
        "a date and a time of day, joined by the user",
        "two_columns.csv",
        "2024-03-28 09:30",
        options=("--time", "date+time"),
    ),
    _file("CSV from Excel: a mark at the begin, and CR LF", "excel.csv", "taken as"),
    Case(
        "no header",
        (
            Command(("look", "headless.csv"), ("looks like an event", "2024-03-28T09:30:00Z", "--columns"), 4),
            Command(run(SHOP, "headless.csv"), ("line of names", "2024-03-28T09:30:00Z", "--columns"), 4),
            Command(
                run(SHOP, "headless.csv", "--columns", "ts,key,type,amount", "--output", "count"),
                (FOUND,),
            ),
        ),
    ),
    Case(
        "not in order of time",
        (
            Command(("look", "unsorted.csv"), ("not in order", "--sort", "--watermark")),
            Command(run(SHOP, "unsorted.csv"), ("time runs backwards", "--sort"), 4),
            Command(run(SHOP, "unsorted.csv", "--sort", "--output", "count"), (FOUND,)),
        ),
    ),
    _file(
        "a title above the header, and empty rows of Excel below",
        "titled.csv",
        "2 lines ahead of the header left out",
        "decimal comma in amount",
    ),
    _file("names with a star", "days/*.csv", "2 files", "'days/*.csv'"),
    _file("a zip of one file", "events.zip", "12 rows"),
    _file("a folder with files of two formats", "mixed", "taken as"),
    Case(
        "rows that cannot be read",
        (
            Command(("look", "damaged.csv"), ("2 rows cannot be read", "line 6", "--on-malformed skip")),
            Command(run(SHOP, "damaged.csv"), ("line 6", "--on-malformed skip"), 4),
            Command(run(SHOP, "damaged.csv", "--on-malformed", "skip", "--output", "count"), (FOUND, "2 ")),
        ),
    ),
    Case(
        "names of columns that nobody told us",
        (
            Command(("look", "named.csv"), ("--type step", "order_id", "created_at", "acep run")),
            Command(run(SHOP, "named.csv"), ("--key-column COLUMN", "acep look named.csv"), 4),
        ),
    ),
)

MEANT = "PATTERN SEQ(placed a, paid b)"
LANGUAGES = tuple(
    _mistake(f"a query in {name}", ("check", text), f"{name} is not read yet", f"in our words: {meant}", code=3)
    for name, text, meant in (
        (
            "MATCH_RECOGNIZE",
            "SELECT * FROM shop MATCH_RECOGNIZE (PARTITION BY key PATTERN (a b+) DEFINE b AS b.amount > a.amount)",
            "PATTERN SEQ(ANY a, ANY+ b[]) WHERE partition_contiguity {[key] AND b[i].amount > a.amount} WITHIN 1 h",
        ),
        ("EQL", "sequence by key with maxspan=1d [placed where true] [paid where amount > 3]", f"{MEANT} WHERE [key]"),
        ("Flink CEP", 'Pattern.begin("a").where(x).followedBy("b").within(Time.days(1))', "PATTERN SEQ(ANY a, ANY b)"),
        ("EPL of Esper", "select * from pattern [every a=placed -> b=paid(key=a.key) where timer:within(1 d)]", MEANT),
        ("Siddhi", "from every a=placed -> b=paid[a.key == key] within 1 day select a.key insert into Out", MEANT),
        ("SPL of Splunk", "index=shop | transaction key startswith=placed endswith=paid", "PATTERN SEQ('placed' a"),
    )
)
"""What they type who know another engine: it is named, and the same is said in our words."""
SLIPS = tuple(
    _mistake(f"a slip: {slip}", ("check", slip), f"write {meant}", code=3)
    for slip, meant in (
        ("PATTERN (placed a -> paid b) WITHIN 1 d", "PATTERN (placed a, paid b) WITHIN 1 d"),
        ("PATTERN SEQ(placed a then paid b) WITHIN 1 d", f"{MEANT} WITHIN 1 d"),
        ("PATTERN SEQ(a: placed, b: paid) WITHIN 1 d", f"{MEANT} WITHIN 1 d"),
        ("EVENT SEQ(placed a, !(lost l), paid b) WITHIN 1 d", "PATTERN SEQ(placed a, ~(lost l), paid b) WITHIN 1 d"),
        (f"{MEANT} PARTITION BY key WITHIN 1 d", f"{MEANT} WHERE [key] WITHIN 1 d"),
        (f"{MEANT} WITHIN 1 d WHERE [key]", f"{MEANT} WHERE [key] WITHIN 1 d"),
        (f"{MEANT} WITHIN INTERVAL '1' DAY", f"{MEANT} WITHIN 1 DAY"),
        (f"{MEANT} WITHIN 5m", f"{MEANT} WITHIN 5 min"),
        (f"{MEANT} WITHIN 1h30m", f"{MEANT} WITHIN 90 min"),
        (f"{MEANT} WITHIN 1 d RETURN a.amount", f"{MEANT} WITHIN 1 d RETURN a.amount AS amount"),
        (f"{MEANT} WHERE partition_contiguity AND [key] WITHIN 1 d", f"{MEANT} WHERE partition_contiguity {{ [key] }}"),
        ("PATTERN SEQ(placed a WHERE a.amount > 3, paid b) WITHIN 1 d", f"{MEANT} WHERE a.amount > 3 WITHIN 1 d"),
    )
)
"""Plain slips: the hint has the text that was meant."""
MISTAKES = (
    _mistake(
        "a column is misspelt",
        run("PATTERN SEQ(placed a, paid b) WHERE b.amuont > 1 WITHIN 1 d", "shop.csv"),
        "no attribute 'amuont'",
        "did you mean `amount`?",
        "^^^",
        "acep look shop.csv",
        code=3,
    ),
    _query(
        "a type that no event has",
        "shipped",
        "shiped",
        "no event has the type 'shiped'",
        "did you mean 'shipped'?",
        code=0,
    ),
    _query("a type in other letters", "shipped", "Shipped", "'Shipped'", "did you mean 'shipped'?", code=0),
    _query("a keyword is misspelt", "WITHIN", "WITIN", "WITIN", "WITHIN", "^^^", code=3),
    _query("PATTERN is misspelt", "PATTERN", "PATERN", "PATERN", "PATTERN", code=3),
    _mistake(
        "no WITHIN", run(SHOP.split(" WITHIN", maxsplit=1)[0], "shop.csv"), "WITHIN", "hint", "WITHIN 10 s", code=3
    ),
    _query("== as in Python, which is understood", "WITHIN", "AND a.amount == 10.5 WITHIN", "1 match", code=0),
    _query("a unit that is none", "1 d", "10 parsec", "parsec", "ms, s, min", code=3),
    _query("a window shorter than all gaps", "1 d", "1 s", "0 matches", "WITHIN|window|1 s", code=0),
    _mistake("the file of the query is not there", run("@shop.acep", "shop.csv"), "shop.acep", "No such file", code=2),
    _events("the file of the events is misspelt", "shp.csv", "no such file", "shop.csv", code=4),
    _query("the key is in no column", "[key]", "[order]", "order", "key", "acep look shop.csv", code=3),
    _mistake(
        "quotes that the shell has eaten",
        ("run", "PATTERN", "SEQ(placed a, paid b)", "WITHIN", "1", "d", "shop.csv"),
        "quotes",
        "acep run 'PATTERN",
        code=2,
    ),
    _events("a workbook of Excel", "events.xlsx", "xlsx|Excel", "CSV", code=4),
    _mistake("a pickle of pandas", ("look", "frame.pkl"), "pickle", "to_parquet", code=4),
    _events("the page of a login, saved as CSV", "login.csv", "HTML", "login", code=4),
    _events("JSON lines that are called CSV", "lines.csv", "json", "--input-format json", code=4),
    _events("the address of a file", "https://example.com/a.csv", "https://example.com/a.csv", "curl", code=4),
    _mistake("a log of Apache, not said to be one", ("look", "access_unsaid.log"), "--line-format apache", code=0),
    _events("a zip with other things", "pictures.zip", "zip", "unzip|unpack", code=4),
    _events("a folder without events", "notes", "notes", "no file", ".csv", code=4),
    _events("what is no text", "picture.bin", "picture.bin", "hint", code=4),
    _mistake(
        "what is no text, said to be CSV",
        run(SHOP, "picture.bin", "--input-format", "csv"),
        "picture.bin",
        "UTF-8|cannot be read",
        code=4,
    ),
    _mistake(
        "the wrong unit",
        run(SHOP.replace("[key]", "[order_id]"), "numbers.csv", "--time", "when_ms", "--unit", "s", "--type", "step"),
        "unit",
        "too large",
        "ms",
        code=4,
    ),
    _mistake(
        "no unit for numbers that are times",
        run(SHOP.replace("[key]", "[order_id]"), "numbers.csv", "--time", "when_ms", "--type", "step"),
        "--unit",
        "acep look numbers.csv",
        code=3,
    ),
    _events("a column twice in the header", "twins.csv", "two columns are named 'key'", "hint", code=4),
    _query(
        "a condition that no event passes",
        "WITHIN",
        "AND b.amount > 1000 WITHIN",
        "0 matches",
        "b.amount > 1000",
        code=0,
    ),
    _query("text compared with a number", "WITHIN", "AND b.amount > 'many' WITHIN", "amount", "number", "^", code=3),
    _query("a window below zero", "1 d", "-1 d", "WITHIN", "^", code=3),
    _mistake(
        "as many errors as events",
        run(SHOP + " ERRORS 3", "shop.csv"),
        "ERRORS",
        "WEIGHTS|fewer|at most",
        code=3,
    ),
    _mistake("a budget of nothing", run(SHOP, "shop.csv", "--budget", "0%"), "0%", "hint", code=2),
    _events("Kafka without a broker", "kafka://localhost:1/orders", "kafka", "broker|localhost:1", code=75),
    _mistake("a command that there is not", ("rnu", "shop.csv"), "rnu", "run", code=2),
    _mistake("an option that there is not", run(SHOP, "shop.csv", "--tim", "ts"), "--tim", "--time", code=2),
    _mistake("a time that is none", run(SHOP, "shop.csv", "--time", "type"), "'placed'", "time", "acep look", code=4),
    _events("an empty file", "empty.csv", "the file is empty", "header", code=4),
    _mistake("no events are named", ("run", SHOP), "INPUT", code=2),
    _mistake(
        "a name of a variable is forgotten",
        run("PATTERN SEQ(placed, paid) WITHIN 1 d", "shop.csv"),
        "^",
        "name|variable",
        code=3,
    ),
    _query("a variable that there is not", "WITHIN", "AND d.amount > 1 WITHIN", "'d'", "a, b|variable", code=3),
    _mistake("the words of a query turned round", run("shop.csv", SHOP), "the query comes first", "acep look", code=2),
    _mistake(
        "results for a file of no known kind",
        run(SHOP, "shop.csv", "-o", "found.xls"),
        "found.xls",
        "jsonl, csv or parquet",
        code=2,
    ),
    _mistake(
        "a unit that cannot be right",
        run(SHOP.replace("[key]", "[order_id]"), "numbers.csv", "--time", "when_ms", "--unit", "us", "--type", "step"),
        "is the unit of the times right?",
        "--unit ms",
        code=0,
    ),
    *LANGUAGES,
    *SLIPS,
    _mistake("a key of another name", run(SHOP, "named.csv", "--type", "step"), "--key-column order_id (", code=4),
    _mistake(
        "a name that is none for the time",
        run(SHOP.replace("[key]", "[order_id]"), "numbers.csv", "--type", "step"),
        "--time when_ms --unit ms (numbers that are times",
        "1711618200000",
        code=4,
    ),
    _mistake(
        "one cell that is no number",
        run("PATTERN SEQ(placed a, paid b) WHERE b.amount > 2 WITHIN 1 d", "stray.csv"),
        "1 of 12 values of 'amount' is no number; the first is 'n/k', in row 1",
        "--null n/k",
        "--on-malformed skip",
        code=3,
    ),
    _mistake("it is taken for nothing", run(SHOP, "stray.csv", "--null", "n/k", "--output", "count"), FOUND, code=0),
    _mistake(
        "the name of a file behind --output",
        run(SHOP, "shop.csv", "--output", "by-habit.csv"),
        "taken as -o by-habit.csv",
        "match",
        code=0,
    ),
    _mistake("a kind of result that there is not", run(SHOP, "shop.csv", "--output", "match"), "matches", code=2),
    _mistake("events behind an option", ("run", SHOP, "--input", "shop.csv", "--output", "count"), FOUND, code=0),
    _mistake("a share as a budget", run(SHOP, "shop.csv", "--budget", "0.1"), "no unit", "write '10%'", code=2),
    _mistake("why of a key without a time", ("why", SHOP, "shop.csv", "--key", "nobody"), "no event has", code=4),
)
