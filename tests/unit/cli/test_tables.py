"""Tables where nobody draws: aligned text, a line a row, and no control character of a file."""

from orrery.cli.tables import print_table


def test_columns_are_as_wide_as_their_widest_cell(capsys):
    print_table(("a", "long head", "c"), [("wide cell", "x", "1"), ("y", "z", "22")])
    assert capsys.readouterr().out.splitlines() == [
        "a          long head  c",
        "wide cell  x          1",
        "y          z          22",
    ]


def test_what_a_terminal_would_obey_is_escaped(capsys):
    print_table(("a",), [("\x1b[2J",)])
    assert "\x1b" not in capsys.readouterr().out
