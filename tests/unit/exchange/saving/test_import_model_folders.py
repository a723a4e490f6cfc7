"""A folder that holds no weights, or several files that could be them, is told so."""

import pytest

from orrery.errors import ModelFileError
from orrery.exchange.saving.import_model import import_model


@pytest.mark.parametrize(
    ("files", "said"), [((), "holds no file of weights"), (("a.pt", "b.pt"), "could be each of a.pt, b.pt")]
)
def test_which_file_is_meant_is_asked(files, said, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "gpt2"}')
    for name in files:
        (folder / name).write_bytes(b"x")
    with pytest.raises(ModelFileError, match=said):
        import_model(folder, tmp_path / "out", allow_pickle=True)
