"""The compiled step: a list of instructions, run for one new token in each of some rows by one call.

An instruction is a row of whole numbers, its code first (`instructions.py` says what the others mean), and a row of
real ones. Streams are places in one workspace: ``place * rows + row * width`` is where a row's numbers begin, counted
in float32 numbers. Everything else is an address. Rows are computed alike however many there are, so that a row is bit
for bit what it is alone.
"""

from typing import Any

import numpy as np

from orrery.kernels.step import instructions as code
from orrery.kernels.step.codes import SCALED, SOFT_CAP, TURN
from orrery.kernels.step.compiling import compiled_step, prange
from orrery.kernels.step.entries import (
    BLOCKS,
    DECODED,
    ELEMENTWISE,
    MIXED,
    NORM,
    PREPARED,
    PRODUCTS,
    QUANTISED,
    SOFTMAX,
    decoded,
    elementwise,
    in_blocks,
    mixed,
    norm,
    prepared,
    products,
    softmax,
    whole_numbers,
)
from orrery.kernels.step.listing import EIGHT_BITS, IN_BLOCKS
from orrery.kernels.step.vectors import (
    BFLOAT16,
    CHANNELS,
    LANES,
    PIECES,
    ROWS,
    bfloat16_at,
    number_at,
    put_bfloat16,
    put_number,
    variant,
)

SHARED_NUMBERS, SHARED_PRODUCTS = 1 << 14, 1 << 16
"""Numbers of an elementwise function, and multiplications of a product or of attention, from which on threads share the
work: to begin together and to wait for each other costs some microseconds, and much more where other programs keep a
thread from its core."""
NOWHERE = np.float32(-np.inf)
variant_of: Any = compiled_step()(variant)


@compiled_step()
def multiply_turn(turn: int, table: Any, first: int, last: int, work: int, rows: int, entries: Any) -> None:
    """Compute some channels of the products of a stream with the matrices ``first`` to ``last`` of the table."""
    product = entries[PRODUCTS]
    matrix = first
    while matrix + 1 < last and turn >= table[matrix + 1, code.FIRST_TURN]:
        matrix += 1
    kind, length = table[matrix, code.KIND], table[matrix, code.LENGTH]
    channel = (turn - table[matrix, code.FIRST_TURN]) * TURN
    many = min(TURN, table[matrix, code.CHANNELS] - channel)
    step, bias = table[matrix, code.STEP], table[matrix, code.BIAS]
    weights = table[matrix, code.MATRIX] + channel * step
    x = work + 4 * table[matrix, code.FROM] * rows
    x_step = 4 * table[matrix, code.FROM_WIDTH]
    out_step = 4 * table[matrix, code.TO_WIDTH]
    out = work + 4 * (table[matrix, code.TO] * rows + channel)
    groups, scale = table[matrix, code.GROUPS], table[matrix, code.SCALE]
    if kind == IN_BLOCKS:
        in_blocks(entries[BLOCKS], scale, weights, step, groups, x, x_step, out, out_step, rows, 0, many)
    elif kind >= EIGHT_BITS:
        whole_numbers(
            entries[QUANTISED], 8 if kind == EIGHT_BITS else 4, table[matrix, code.MATRIX], scale, groups,
            step // groups, x, x_step, out - 4 * channel, out_step, rows, channel, channel + many,
        )  # fmt: skip
    for row in range(0, rows if kind < EIGHT_BITS else 0, ROWS):
        together = min(ROWS, rows - row)
        begin, end = x + row * x_step, out + row * out_step
        # One row reads the matrix from its beginning to its end, which memory likes: twice as fast, measured, as
        # several channels side by side, whose numbers several rows need.
        side_by_side = many - many % CHANNELS if together > 1 else 0
        number = variant_of(kind, CHANNELS, together)
        for one in range(0, side_by_side, CHANNELS):
            products(product, number, weights + one * step, step, begin, x_step, length, end + 4 * one, out_step)
        number = variant_of(kind, 1, together)
        for one in range(side_by_side, many):
            products(product, number, weights + one * step, step, begin, x_step, length, end + 4 * one, out_step)
    if bias != 0:
        for row in range(rows):
            for one in range(many):
                at = out + row * out_step + 4 * one
                put_number(at, number_at(at) + number_at(bias + 4 * (channel + one)))


@compiled_step(parallel=True)
def multiply_shared(turns: int, table: Any, first: int, last: int, work: int, rows: int, entries: Any) -> None:
    """Multiply a stream with matrices, turns of channels shared out among the threads."""
    for turn in prange(turns):
        multiply_turn(turn, table, first, last, work, rows, entries)


@compiled_step()
def multiply(table: Any, first: int, last: int, turns: int, work: int, rows: int, entries: Any) -> None:
    """Multiply a stream with the matrices ``first`` to ``last`` of the table, which all read it."""
    if turns * TURN * table[first, code.LENGTH] * rows >= SHARED_PRODUCTS:
        multiply_shared(turns, table, first, last, work, rows, entries)
    else:
        for turn in range(turns):
            multiply_turn(turn, table, first, last, work, rows, entries)


@compiled_step()
def scored(
    product: int, k: int, step: int, count: int, kind: int, x: int, width: int, heads: int, scores: int, apart: int
) -> None:
    """Write the products of some heads' queries with ``count`` keys."""
    in_groups = count - count % CHANNELS
    number = variant_of(kind, CHANNELS, heads)
    for s in range(0, in_groups, CHANNELS):
        products(product, number, k + s * step, step, x, 4 * width, width, scores + 4 * s, apart)
    number = variant_of(kind, 1, heads)
    for s in range(in_groups, count):
        products(product, number, k + s * step, step, x, 4 * width, width, scores + 4 * s, apart)


@compiled_step()
def blended(
    mixture: int, v: int, step: int, count: int, kind: int, scores: int, apart: int, width: int, heads: int, out: int
) -> None:
    """Write the sums of ``count`` values, weighed by the pattern of some heads."""
    size = step // width
    in_pieces = width - width % (PIECES * LANES)
    number = variant_of(kind, PIECES, heads)
    for c in range(0, in_pieces, PIECES * LANES):
        mixed(mixture, number, v + size * c, step, scores, apart, count, out + 4 * c, 4 * width, width)
    number = variant_of(kind, 1, heads)
    for c in range(in_pieces, width, LANES):
        many = min(LANES, width - c)
        mixed(mixture, number, v + size * c, step, scores, apart, count, out + 4 * c, 4 * width, many)


@compiled_step()
def attend_part(
    item: int, keys: int, values: int, kind: int, slots: int, spans: Any, heads: int, kv_heads: int, width: int,
    q: int, q_step: int, out: int, out_step: int, scratch: int, scratch_step: int,
    scale: float, cap: float, bias: int, bias_step: int, bias_head: int, sinks: int, entries: Any,
) -> None:  # fmt: skip
    """Let some heads of one key-value head, of one row, read that row's keys and values."""
    product, mixture, function, peak = entries[PRODUCTS], entries[MIXED], entries[ELEMENTWISE], entries[SOFTMAX]
    group = heads // kv_heads
    parts = (group + ROWS - 1) // ROWS
    step = (2 if kind == BFLOAT16 else 4) * width
    row, kv_head = item // (kv_heads * parts), item // parts % kv_heads
    first = kv_head * group + item % parts * ROWS
    together = min(ROWS, (kv_head + 1) * group - first)
    begin, count = spans[row, 1], spans[row, 2]
    place = ((row * kv_heads + kv_head) * slots + begin) * step
    x, scores = q + row * q_step + 4 * first * width, scratch + item * ROWS * scratch_step
    scored(product, keys + place, step, count, kind, x, width, together, scores, scratch_step)
    padded = (count + LANES - 1) // LANES * LANES
    for h in range(together):
        at = scores + h * scratch_step
        elementwise(function, SCALED, at, 0, at, padded, np.float32(scale))
        if cap > 0:
            elementwise(function, SOFT_CAP, at, 0, at, padded, np.float32(cap))
        if bias != 0:
            own = bias + row * bias_step + (first + h) * bias_head + 4 * begin
            for s in range(count):
                put_number(at + 4 * s, number_at(at + 4 * s) + number_at(own + 4 * s))
        for s in range(count, padded):
            put_number(at + 4 * s, NOWHERE)
        softmax(peak, at, padded, number_at(sinks + 4 * (first + h)) if sinks != 0 else NOWHERE)
    done = out + row * out_step + 4 * first * width
    blended(mixture, values + place, step, count, kind, scores, scratch_step, width, together, done)


@compiled_step(parallel=True)
def attend_shared(
    items: int, keys: int, values: int, kind: int, slots: int, spans: Any, heads: int, kv_heads: int, width: int,
    q: int, q_step: int, out: int, out_step: int, scratch: int, scratch_step: int,
    scale: float, cap: float, bias: int, bias_step: int, bias_head: int, sinks: int, entries: Any,
) -> None:  # fmt: skip
    """Let all heads of all rows read, shared out among the threads."""
    for item in prange(items):
        attend_part(
            item, keys, values, kind, slots, spans, heads, kv_heads, width, q, q_step, out, out_step,
            scratch, scratch_step, scale, cap, bias, bias_step, bias_head, sinks, entries,
        )  # fmt: skip


@compiled_step()
def attend(
    keys: int, values: int, kind: int, slots: int, spans: Any, heads: int, kv_heads: int, width: int,
    q: int, q_step: int, out: int, out_step: int, scratch: int, scratch_step: int,
    scale: float, cap: float, bias: int, bias_step: int, bias_head: int, sinks: int, rows: int, entries: Any,
) -> None:  # fmt: skip
    """Let each head of each row read its row's keys and values; heads of one key-value head go together."""
    items = rows * kv_heads * ((heads // kv_heads + ROWS - 1) // ROWS)
    seen = 0
    for row in range(rows):
        seen += spans[row, 2]
    if seen * heads * width >= SHARED_PRODUCTS:
        attend_shared(
            items, keys, values, kind, slots, spans, heads, kv_heads, width, q, q_step, out, out_step,
            scratch, scratch_step, scale, cap, bias, bias_step, bias_head, sinks, entries,
        )  # fmt: skip
    else:
        for item in range(items):
            attend_part(
                item, keys, values, kind, slots, spans, heads, kv_heads, width, q, q_step, out, out_step,
                scratch, scratch_step, scale, cap, bias, bias_step, bias_head, sinks, entries,
            )  # fmt: skip


@compiled_step()
def elementwise_row(
    row: int, number: int, x: int, x_step: int, y: int, y_step: int, out: int, out_step: int, width: int, p: float,
    entries: Any,
) -> None:  # fmt: skip
    """Compute a function of each number of one row."""
    elementwise(
        entries[ELEMENTWISE], number, x + row * x_step, y + row * y_step, out + row * out_step, width, np.float32(p)
    )


@compiled_step(parallel=True)
def elementwise_shared(
    rows: int, number: int, x: int, x_step: int, y: int, y_step: int, out: int, out_step: int, width: int, p: float,
    entries: Any,
) -> None:  # fmt: skip
    """Compute a function of each number of each row, rows shared out among the threads."""
    for row in prange(rows):
        elementwise_row(row, number, x, x_step, y, y_step, out, out_step, width, p, entries)


@compiled_step()
def elementwise_rows(
    number: int, x: int, x_step: int, y: int, y_step: int, out: int, out_step: int, width: int, p: float,
    rows: int, entries: Any,
) -> None:  # fmt: skip
    """Compute a function of each number of each row."""
    if rows * width >= SHARED_NUMBERS:
        elementwise_shared(rows, number, x, x_step, y, y_step, out, out_step, width, p, entries)
    else:
        for row in range(rows):
            elementwise_row(row, number, x, x_step, y, y_step, out, out_step, width, p, entries)


@compiled_step()
def normed(
    centred: int, x: int, x_step: int, gain: int, bias: int, gain_step: int, out: int, out_step: int,
    width: int, groups: int, epsilon: float, rows: int, entries: Any,
) -> None:  # fmt: skip
    """Normalise each group of channels of each row."""
    for row in range(rows):
        for group in range(groups):
            at, own = 4 * group * width, group * gain_step
            norm(
                entries[NORM], centred, x + row * x_step + at, gain + own, bias + own, out + row * out_step + at, width,
                np.float32(epsilon),
            )  # fmt: skip


@compiled_step()
def embedded(table: int, kind: int, width: int, tokens: Any, out: int, out_step: int, rows: int) -> None:
    """Write the row of the table that belongs to each token."""
    for row in range(rows):
        if kind == BFLOAT16:
            for i in range(width):
                put_number(out + row * out_step + 4 * i, bfloat16_at(table + 2 * (tokens[row] * width + i)))
        else:
            for i in range(width):
                put_number(out + row * out_step + 4 * i, number_at(table + 4 * (tokens[row] * width + i)))


@compiled_step()
def embedded_blocks(
    table: int, kind: int, many: int, step: int, tokens: Any, out: int, out_step: int, rows: int, entries: Any
) -> None:
    """Write out the row of the table that belongs to each token: ``many`` blocks, in ``step`` bytes."""
    for row in range(rows):
        decoded(entries[DECODED], kind, table + tokens[row] * step, many, out + row * out_step)


@compiled_step()
def prepared_rows(x: int, x_step: int, out: int, out_step: int, width: int, rows: int, entries: Any) -> None:
    """Prepare each row for products with blocks."""
    for row in range(rows):
        prepared(entries[PREPARED], x + row * x_step, out + row * out_step, width)


@compiled_step()
def rotated(
    x: int, x_step: int, heads: int, width: int, turned: int, apart: int, cosine: int, sine: int, step: int, rows: int
) -> None:
    """Turn the pairs of channels of every head; partners are ``apart`` channels away, 1 for neighbours."""
    pairs = turned // 2
    for row in range(rows):
        for head in range(heads):
            for i in range(pairs):
                c, s = number_at(cosine + row * step + 4 * i), number_at(sine + row * step + 4 * i)
                first = x + row * x_step + 4 * (head * width + (2 * i if apart == 1 else i))
                second = first + 4 * apart
                a, b = number_at(first), number_at(second)
                put_number(first, a * c - b * s)
                put_number(second, b * c + a * s)


@compiled_step()
def stored(
    x: int, x_step: int, cache: int, kind: int, slots: int, spans: Any, kv_heads: int, width: int, rows: int
) -> None:
    """Write the new keys, or values, of each row into its slot."""
    for row in range(rows):
        for head in range(kv_heads):
            place = (row * kv_heads + head) * slots + spans[row, 0]
            begin = x + row * x_step + 4 * head * width
            if kind == BFLOAT16:
                for i in range(width):
                    put_bfloat16(cache + 2 * (place * width + i), number_at(begin + 4 * i))
            else:
                for i in range(width):
                    put_number(cache + 4 * (place * width + i), number_at(begin + 4 * i))


@compiled_step()
def run(
    program: Any, reals: Any, table: Any, stores: Any, spans: Any, given: Any, tokens: Any, rows: int,
    work: int, scratch: int, scratch_step: int, entries: Any,
) -> None:  # fmt: skip
    """Run all instructions.

    Args:
        program: the whole numbers of each instruction.
        reals: its real numbers.
        table: of the matrices.
        stores: by depth: addresses of keys and values, their kind, slots of a row, number of the spans.
        spans: by number and row: the slot of the new token, the first that it sees, and how many it sees.
        given: by scheme of positions: an address, a second one, bytes from row to row, bytes from head to head.
        tokens: one a row.
        rows: how many.
        work: address of the workspace.
        scratch: address of the scores.
        scratch_step: bytes of one head's scores.
        entries: addresses of the functions of vectors.
    """
    for at in range(len(program)):
        do, x, y, out = program[at, 0], program[at, 1], program[at, 2], program[at, 3]
        x_step, y_step, out_step = 4 * program[at, 4], 4 * program[at, 5], 4 * program[at, 6]
        a, b, c, d, e = program[at, 7], program[at, 8], program[at, 9], program[at, 10], program[at, 11]
        x_at, y_at, out_at = work + 4 * x * rows, work + 4 * y * rows, work + 4 * out * rows
        if do == code.MULTIPLY:
            multiply(table, a, b, c, work, rows, entries)
        elif do == code.ELEMENTWISE:
            elementwise_rows(
                a, x_at, x_step, y_at if c == 0 else c, y_step, out_at, out_step, b, reals[at, 0], rows, entries
            )
        elif do == code.NORM:
            normed(a, x_at, x_step, c, d, e, out_at, out_step, b, y, reals[at, 0], rows, entries)
        elif do == code.ROTATE:
            rotated(x_at, x_step, a, b, c, d, given[e, 0], given[e, 1], given[e, 2], rows)
        elif do == code.STORE:
            kind, slots, span = stores[a, 2], stores[a, 3], stores[a, 4]
            stored(x_at, x_step, stores[a, 0], kind, slots, spans[span], b, c, rows)
            stored(y_at, y_step, stores[a, 1], kind, slots, spans[span], b, c, rows)
        elif do == code.ATTEND:
            bias, bias_step, bias_head = 0, 0, 0
            if d >= 0:
                bias, bias_step, bias_head = given[d, 0], given[d, 2], given[d, 3]
            attend(
                stores[a, 0], stores[a, 1], stores[a, 2], stores[a, 3], spans[stores[a, 4]], b, c, y,
                x_at, x_step, out_at, out_step, scratch, scratch_step,
                reals[at, 0], reals[at, 1], bias, bias_step, bias_head, e, rows, entries,
            )  # fmt: skip
        elif do == code.EMBED:
            embedded(c, a, b, tokens, out_at, out_step, rows)
        elif do == code.EMBED_BLOCKS:
            embedded_blocks(c, a, b, d, tokens, out_at, out_step, rows, entries)
        elif do == code.PREPARE:
            prepared_rows(x_at, x_step, out_at, out_step, a, rows, entries)
        elif do == code.GIVEN:
            elementwise_rows(a, given[e, 0], given[e, 2], x_at, x_step, out_at, out_step, b, 1.0, rows, entries)
