"""The lines that `orrery translate` reads: of a file as editors save it."""

from orrery.cli.translate import read_lines


def test_a_byte_order_mark_and_carriage_returns_are_no_text(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfHello.\r\n\r\nYes.")
    assert read_lines(tmp_path / "a.txt") == ["Hello.", "", "Yes."]
