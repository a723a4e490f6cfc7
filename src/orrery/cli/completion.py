"""``orrery completion``: what a shell needs to complete verbs, flags and files."""

import re
from typing import Literal

_WITHOUT_ACTION = re.compile(r"^(\s+'(?:\d+|\*):(?:[^:'\\]|\\.|'\\'')*)'( \\)?$", re.MULTILINE)
_FILES = r"\1:_files'\2"
"""An argument of zsh's ``_arguments`` with a message alone, and with file names behind it."""
_READ_OR_LOADED = """if [[ ${funcstack[1]} == _orrery ]]; then
  _cyclopts_orrery "$@"
else
  compdef _cyclopts_orrery orrery
fi"""
"""zsh calls a file of its ``fpath`` by the file's name; one that is read binds the function."""


def completion(shell: Literal["bash", "zsh", "fish"], /) -> None:
    """Print the script with which a shell completes verbs, flags, their choices, and files.

    For one session: eval "$(orrery completion bash)", the same with zsh, or orrery completion fish | source. For
    good, write it to ~/.local/share/bash-completion/completions/orrery, to a file _orrery in a folder of zsh's fpath,
    or to ~/.config/fish/completions/orrery.fish.

    Args:
        shell: bash, zsh or fish.
    """
    from orrery.cli.parser import build
    from orrery.cli.verbs import VERBS

    print(_finished(build(list(VERBS)).generate_completion(shell=shell), shell))


def _finished(script: str, shell: str) -> str:
    """Return the parser's script with file names where it offers nothing, and in zsh to be read as well as loaded."""
    if shell == "bash":
        return script.replace("complete -F", "complete -o bashdefault -o default -F").rstrip()
    if shell == "zsh":
        return f"{_WITHOUT_ACTION.sub(_FILES, script).rstrip()}\n\n{_READ_OR_LOADED}"
    return script.rstrip()
