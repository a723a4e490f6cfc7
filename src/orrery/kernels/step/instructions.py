"""What the instructions of a step are called, and where their numbers stand.

The first seven numbers of an instruction are its code, the places of its streams x, y and out, and their widths; what
the others are stands beside each name.
"""

MULTIPLY = 1
"""The matrices a to b of the table, in c turns of channels."""
ELEMENTWISE = 2
"""The function a of b numbers; y is an address, the same for all rows, where c is one. Real: p."""
NORM = 3
"""Centred or not (a), b channels a group, y groups, gain at c and bias at d, e bytes a group. Real: epsilon."""
ROTATE = 4
"""a heads of b channels, of which c turn with partners d channels away, by the positions e."""
STORE = 5
"""Keys x and values y of depth a: b heads of c channels."""
ATTEND = 6
"""Depth a: b heads over c key-value heads of y channels, bias of the positions d or -1, e sinks. Real: scale, cap."""
EMBED = 7
"""Kind a, b channels, the table at c."""
GIVEN = 8
"""The function a of b numbers that are given as those of the positions e are, and of x."""
PREPARE = 9
"""The a numbers of x as products with blocks read them."""
EMBED_BLOCKS = 10
"""Blocks of the kind a, b a row of the table at c, which takes d bytes."""

NUMBERS, REALS = 12, 2
"""How many whole and real numbers an instruction has."""

KIND, MATRIX, STEP, CHANNELS, LENGTH, BIAS, FROM, FROM_WIDTH, TO, TO_WIDTH, FIRST_TURN, SCALE, GROUPS = range(13)
"""The columns of the table of matrices: how it is stored, its address, bytes a channel, channels, numbers a channel,
address of the bias or 0, place and width of the stream it reads and of that it writes, and its first turn; where it is
stored in whole numbers, the address of the scales and how many a channel has; where in blocks, the number of their kind
and how many a channel has."""
