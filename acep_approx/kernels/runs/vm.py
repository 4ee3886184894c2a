"""The block machine: small programs of which every instruction loops over a block of runs.

A program is a list of instructions over one arena of 64-bit words that is seen as integers (``words``) and as floats
(``floats``). Operands are register columns of a pool, scalars (constants and values of the current event), or
temporary columns. NULL is ``NULL`` among integers and truth values, NaN among floats. Nothing is generated per query.

Source: ours; measured against loops written by hand in ``experiments/speed/runs.py``. The idea is that of vectorised
query engines (one interpretation step per column, not per value). Loops over rare operations read their operation
anew for each run: otherwise LLVM would make a loop of each, and compiling would take three times as long.
"""

from __future__ import annotations

from typing import NamedTuple

from acep_approx.arrays import Floats, Ints
from acep_approx.jit.marks import apart, called, inline
from acep_approx.kernels.arithmetic import floor_of, number, rounded
from acep_approx.kernels.runs.layout import TEMPORARIES
from acep_approx.kernels.runs.records import Pools, Program

NULL = -(2**63)
BLOCK = 512
"""Most runs that one instruction loops over."""

WIDTH = 7
"""Words of an instruction: operation, target, kind and number of two operands, flags."""

REGISTER, SCALAR, TEMPORARY = 0, 1, 2

# operations: tests narrow the mask, the others fill the temporary column `target`
TEST_INT, TEST_FLOAT, TEST_TRUTH = 0, 1, 2
COMPARE_INT, COMPARE_FLOAT, COMPARE_TEXT = 3, 4, 5
ADD_INT, SUB_INT, MUL_INT, MOD_INT, NEG_INT = 6, 7, 8, 9, 10
ADD_FLOAT, SUB_FLOAT, MUL_FLOAT, MOD_FLOAT, DIV_FLOAT, NEG_FLOAT = 11, 12, 13, 14, 15, 16
TO_FLOAT, COPY, AND, OR, NOT, NULL_INT, NULL_FLOAT = 17, 18, 19, 20, 21, 22, 23
COUNT_ALL, COUNT_INT, COUNT_FLOAT, SUM_INT, SUM_FLOAT = 24, 25, 26, 27, 28
MIN_INT, MAX_INT, MIN_FLOAT, MAX_FLOAT, MIN_TEXT, MAX_TEXT = 29, 30, 31, 32, 33, 34
LEAST_INT, GREATEST_INT, LEAST_FLOAT, GREATEST_FLOAT, LEAST_TEXT, GREATEST_TEXT = 35, 36, 37, 38, 39, 40
ABS_INT, ABS_FLOAT, FLOOR, CEIL, ROUND, ELSE_INT, ELSE_FLOAT, WHEN, WHOLE = 41, 42, 43, 44, 45, 46, 47, 48, 49

LESS, EQUAL, GREATER = 1, 2, 4
"""Flags of comparisons: which outcomes hold."""

LARGEST = 2**63 - 1
"""Whole numbers reach from ``-LARGEST`` to it: the lowest of 64 bits is NULL."""
SURE = 9.2e18
"""Products that are smaller as floats are whole numbers of 64 bits; those of more than ``BEYOND`` are not."""
BEYOND = 9.3e18
TOO_LARGE = 9223372036854775808.0
"""The least float from 0 up that is no whole number of 64 bits."""


class Operands(NamedTuple):
    """An instruction at work: where it stands, its target, and its operands with their strides (0 for scalars)."""

    code: int
    to: int
    a: int
    sa: int
    b: int
    sb: int
    n: int


@inline
def test(program: Program, pools: Pools, do: Operands, mask: Ints) -> None:
    """Narrow ``mask`` by a comparison of columns, or by a truth value."""
    words, floats = pools.words, pools.floats
    code, _, a, sa, b, sb, n = do
    op, flags = program.tables[code], program.tables[code + 6]
    less, equal, greater = flags & 1, (flags >> 1) & 1, (flags >> 2) & 1
    if op == TEST_FLOAT and sb == 0:
        y = floats[b]
        for j in range(n):
            x = floats[a + j]
            mask[j] &= ((x < y) & less) | ((x == y) & equal) | ((x > y) & greater)
    elif op == TEST_FLOAT:
        for j in range(n):
            x, y = floats[a + sa * j], floats[b + j]
            mask[j] &= ((x < y) & less) | ((x == y) & equal) | ((x > y) & greater)
    elif op == TEST_INT and sb == 0:
        z = words[b]
        known = 1 if z != NULL else 0
        for j in range(n):
            v = words[a + j]
            mask[j] &= (((v < z) & less) | ((v == z) & equal) | ((v > z) & greater)) & (v != NULL) & known
    elif op == TEST_INT:
        for j in range(n):
            v, z = words[a + sa * j], words[b + j]
            mask[j] &= (((v < z) & less) | ((v == z) & equal) | ((v > z) & greater)) & (v != NULL) & (z != NULL)
    else:
        for j in range(n):
            mask[j] &= words[a + sa * j] == 1


@inline
def compare(program: Program, pools: Pools, do: Operands) -> None:
    """Fill the target with truth values."""
    tables, ranks, words, floats = program.tables, program.ranks, pools.words, pools.floats
    code, to, a, sa, b, sb, n = do
    for j in range(n):
        op, flags = tables[code], tables[code + 6]
        if op == COMPARE_FLOAT:
            x, y = floats[a + sa * j], floats[b + sb * j]
            holds = ((x < y) & flags) | ((x == y) & (flags >> 1)) | ((x > y) & (flags >> 2))
            words[to + j] = holds & 1 if x == x and y == y else NULL
            continue
        v, z = words[a + sa * j], words[b + sb * j]
        if v == NULL or z == NULL:
            words[to + j] = NULL
            continue
        if op == COMPARE_TEXT:
            v, z = ranks[v], ranks[z]
        words[to + j] = (((v < z) & flags) | ((v == z) & (flags >> 1)) | ((v > z) & (flags >> 2))) & 1


@inline
def sum_passes(v: int, z: int) -> bool:
    """Whether the sum of two numbers, neither of them NULL, is not between ``-LARGEST`` and ``LARGEST``."""
    return v > LARGEST - z if z > 0 else v < -LARGEST - z


@inline
def product_passes(v: int, z: int) -> bool:
    """The same of a product."""
    about = abs(float(v) * float(z))
    if about < SURE or about > BEYOND:
        return about > BEYOND
    return abs(v) > LARGEST // abs(z)


@inline
def compute_int(tables: Ints, words: Ints, do: Operands, mask: Ints) -> int:
    """Arithmetic on integers; returns 1 where a result passes 64 bits, of a run that is still in the mask."""
    code, to, a, sa, b, sb, n = do
    passed = 0
    for j in range(n):
        op = tables[code]
        v, z = words[a + sa * j], words[b + sb * j]
        if v == NULL or z == NULL or (op == MOD_INT and z == 0):
            words[to + j] = NULL
        elif op == ADD_INT:
            passes = sum_passes(v, z)
            passed |= passes & mask[j]
            words[to + j] = NULL if passes else v + z
        elif op == SUB_INT:
            passes = sum_passes(v, -z)
            passed |= passes & mask[j]
            words[to + j] = NULL if passes else v - z
        elif op == MUL_INT:
            passes = product_passes(v, z)
            passed |= passes & mask[j]
            words[to + j] = NULL if passes else v * z
        elif op == NEG_INT:
            words[to + j] = -v
        else:
            words[to + j] = v % z
    return passed


@inline
def compute_float(tables: Ints, floats: Floats, do: Operands) -> None:
    """Arithmetic on floats; division and modulo by zero give NULL."""
    code, to, a, sa, b, sb, n = do
    if tables[code] == ADD_FLOAT:
        for j in range(n):
            floats[to + j] = number(floats[a + sa * j] + floats[b + sb * j])
        return
    if tables[code] == SUB_FLOAT:
        for j in range(n):
            floats[to + j] = number(floats[a + sa * j] - floats[b + sb * j])
        return
    for j in range(n):
        op = tables[code]
        x, y = floats[a + sa * j], floats[b + sb * j]
        if op == MUL_FLOAT:
            floats[to + j] = number(x * y)
        elif op == NEG_FLOAT:
            floats[to + j] = number(-x)
        elif y == 0.0:
            floats[to + j] = float("nan")
        elif op == DIV_FLOAT:
            floats[to + j] = number(x / y)
        else:
            floats[to + j] = number(x % y)


@inline
def decide(tables: Ints, pools: Pools, do: Operands) -> None:
    """Truth values of truth values, tests for NULL, and changes of type."""
    words, floats = pools.words, pools.floats
    code, to, a, sa, b, sb, n = do
    for j in range(n):
        op = tables[code]
        v = words[a + sa * j]
        if op == AND:
            z = words[b + sb * j]
            words[to + j] = 0 if v == 0 or z == 0 else (NULL if v == NULL or z == NULL else 1)
        elif op == OR:
            z = words[b + sb * j]
            words[to + j] = 1 if v == 1 or z == 1 else (NULL if v == NULL or z == NULL else 0)
        elif op == NOT:
            words[to + j] = NULL if v == NULL else 1 - v
        elif op == NULL_INT:
            words[to + j] = v == NULL
        elif op == NULL_FLOAT:
            x = floats[a + sa * j]
            words[to + j] = x != x
        elif op == TO_FLOAT:
            floats[to + j] = float("nan") if v == NULL else float(v)
        else:
            words[to + j] = v


@inline
def whole(words: Ints, floats: Floats, do: Operands, mask: Ints) -> int:
    """Floats as integers, cut towards 0; returns 1 as ``compute_int``."""
    _, to, a, sa, _, _, n = do
    passed = 0
    for j in range(n):
        x = floats[a + sa * j]
        if x != x:
            words[to + j] = NULL
        elif abs(x) >= TOO_LARGE:
            passed |= mask[j]
            words[to + j] = NULL
        else:
            words[to + j] = int(x)
    return passed


@inline
def aggregate_int(program: Program, words: Ints, do: Operands, mask: Ints) -> int:
    """A running aggregate ``a`` after one more value ``b``; texts go by rank. Returns 1 as ``compute_int``."""
    tables, ranks = program.tables, program.ranks
    code, to, a, _, b, sb, n = do
    passed = 0
    if tables[code] == MAX_INT:  # NULL is the lowest integer
        for j in range(n):
            words[to + j] = max(words[a + j], words[b + sb * j])
        return passed
    if tables[code] == MIN_INT:
        for j in range(n):
            v, z = words[a + j], words[b + sb * j]
            words[to + j] = z if ((z < v) & (z != NULL)) | (v == NULL) else v
        return passed
    for j in range(n):
        op = tables[code]
        v, z = words[a + j], words[b + sb * j]
        if op == COUNT_ALL:
            v += 1
        elif op == COUNT_INT:
            v += z != NULL
        elif op >= LEAST_INT and (v == NULL or z == NULL):
            v = NULL
        elif z != NULL:
            p, q = v, z
            if v != NULL and (op in (MIN_TEXT, MAX_TEXT, LEAST_TEXT, GREATEST_TEXT)):
                p, q = ranks[v], ranks[z]
            if v == NULL:
                v = z
            elif op == SUM_INT:
                passes = sum_passes(v, z)
                passed |= passes & mask[j]
                v = NULL if passes else v + z
            elif op in (LEAST_INT, MIN_TEXT, LEAST_TEXT):
                v = z if q < p else v
            else:
                v = z if q > p else v
        words[to + j] = v
    return passed


@inline
def aggregate_float(tables: Ints, pools: Pools, do: Operands) -> None:
    """The same for floats."""
    words, floats = pools.words, pools.floats
    code, to, a, _, b, sb, n = do
    for j in range(n):
        op = tables[code]
        y = floats[b + sb * j]
        if op == COUNT_FLOAT:
            words[to + j] = words[a + j] + (y == y)
            continue
        x = floats[a + j]
        if x != x or y != y:
            skips = op in (SUM_FLOAT, MIN_FLOAT, MAX_FLOAT)
            floats[to + j] = y if (x != x) == skips else x
        elif op == SUM_FLOAT:
            floats[to + j] = number(x + y)
        elif op in (MIN_FLOAT, LEAST_FLOAT):
            floats[to + j] = min(x, y)
        else:
            floats[to + j] = max(x, y)


@inline
def apply(tables: Ints, pools: Pools, do: Operands) -> None:
    """Functions of the query language; ``ELSE`` is the second operand where the first one is NULL.

    ``WHEN`` puts the second operand into the target where the first one is TRUE, and leaves what else is in it.
    """
    words, floats = pools.words, pools.floats
    code, to, a, sa, b, sb, n = do
    for j in range(n):
        op = tables[code]
        if op == ABS_INT:
            v = words[a + sa * j]
            words[to + j] = -v if v < 0 and v != NULL else v
        elif op == ELSE_INT:
            v = words[a + sa * j]
            words[to + j] = words[b + sb * j] if v == NULL else v
        elif op == ELSE_FLOAT:
            x = floats[a + sa * j]
            floats[to + j] = x if x == x else floats[b + sb * j]
        elif op == WHEN:
            if words[a + sa * j] == 1:
                words[to + j] = words[b + sb * j]
        elif op == ABS_FLOAT:
            floats[to + j] = abs(floats[a + sa * j])
        elif op == FLOOR:
            floats[to + j] = floor_of(floats[a + sa * j])
        elif op == CEIL:
            floats[to + j] = -floor_of(-floats[a + sa * j])
        else:
            floats[to + j] = rounded(floats[a + sa * j], floats[b + sb * j])


@inline
def operand(program: Program, at: int, registers: int, room: int) -> tuple[int, int]:
    """Where the operand at ``at`` begins, and its stride."""
    kind, number = program.tables[at], program.tables[at + 1]
    if kind == REGISTER:
        return registers + number * room, 1
    if kind == TEMPORARY:
        return program.shape[TEMPORARIES] + number * BLOCK, 1
    return number, 0


@called
def run_program(program: Program, pools: Pools, at: int, registers: int, room: int, mask: Ints, n: int) -> int:
    """Run the program that ``tables[at]`` names on ``n`` runs whose first register column begins at ``registers``.

    Columns of the pool are ``room`` words apart. Returns 1 where an integer of a run in the mask passed 64 bits.
    """
    tables, words, floats = program.tables, pools.words, pools.floats
    passed = 0
    for i in range(tables[at + 1]):
        code = tables[at] + i * WIDTH
        op = tables[code]
        a, sa = operand(program, code + 2, registers, room)
        b, sb = operand(program, code + 4, registers, room)
        to = program.shape[TEMPORARIES] + tables[code + 1] * BLOCK
        do = Operands(code, to, a, sa, b, sb, n)
        if op <= TEST_TRUTH:
            test(program, pools, do, mask)
        elif op <= COMPARE_TEXT:
            compare(program, pools, do)
        elif op <= NEG_INT:
            passed |= compute_int(tables, words, do, mask)
        elif op <= NEG_FLOAT:
            compute_float(tables, floats, do)
        elif op <= NULL_FLOAT:
            decide(tables, pools, do)
        elif op == WHOLE:
            passed |= whole(words, floats, do, mask)
        elif op in (COUNT_FLOAT, SUM_FLOAT, MIN_FLOAT, MAX_FLOAT, LEAST_FLOAT, GREATEST_FLOAT):
            aggregate_float(tables, pools, do)
        elif op >= ABS_INT:
            apply(tables, pools, do)
        else:
            passed |= aggregate_int(program, words, do, mask)
    return passed


@apart
def run_rare_program(program: Program, pools: Pools, at: int, registers: int, room: int, mask: Ints, n: int) -> int:
    """``run_program`` where it is seldom asked for: it is large."""
    return run_program(program, pools, at, registers, room, mask, n)
