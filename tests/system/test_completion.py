"""Completion: the real shells, asked what may follow on a line."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import hints
from orrery.cli.program import VERBS, run

SHELLS = ("bash", "zsh", "fish")
LINES = {
    "orrery gen": {"generate"},
    "orrery tok": {"tokenizer"},
    "orrery tokenizer tr": {"train"},
    "orrery generate m p --temp": {"--temperature"},
    "orrery generate m p --truncate ": {"left"},
    "orrery finetune classification --mode ": {"full", "frozen", "partial"},
    "orrery completion ": {"bash", "zsh", "fish"},
    "orrery train r.yaml --dry": {"--dry-run"},
    "orrery data prep": {"prepare"},
    "orrery export m hf out --ty": {"--type"},
    "orrery serve m --cors": {"--cors-origin"},
    "orrery score some.t": {"some.txt"},
}
BASH = """source {script}
complete_it() {{ COMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); COMP_LINE="$*"; COMP_POINT=${{#COMP_LINE}}; COMPREPLY=()
_orrery; [ ${{#COMPREPLY[@]}} -gt 0 ] && printf "%s\\n" "${{COMPREPLY[@]}}" || compgen -f -- "${{@: -1}}"; }}
complete_it {words}"""
ZSH = """zmodload zsh/zpty
zpty z 'zsh -f -i'
zpty -w z 'PS1=; autoload -Uz compinit; compinit -u -D; eval "$(cat {script})"; print READY'
until zpty -r -m z out '*READY*'; do sleep 0.1; done
zpty -w -n z {line}$'\\t'
sleep 1
zpty -w -n z $'\\t'
sleep 0.5
while zpty -r -t z out; do print -rn -- "$out"; done"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The script of a shell, in a folder with a file to complete."""
    folder = tmp_path_factory.mktemp("shells")
    (folder / "some.txt").touch()

    def write(shell: str) -> Path:
        file = folder / f"orrery.{shell}"
        if not file.exists():
            with pytest.MonkeyPatch.context() as patch, file.open("w") as out:
                patch.setattr("sys.stdout", out)
                assert run(["completion", shell]) == 0
        return file

    return write


def offered(shell: str, script: Path, line: str) -> str:
    """Return what a shell offers at the end of a line."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    quoted = "'" + line.replace("'", "'\\''") + "'"
    *begun, last = line.split(" ")
    program = {
        "bash": BASH.format(script=script, words=" ".join([*begun, f"'{last}'"])),
        "fish": f"source {script}; complete -C {quoted}",
        "zsh": ZSH.format(script=script, line=quoted),
    }[shell]
    done = subprocess.run([shell, "-c", program], cwd=script.parent, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("line", LINES)
def test_bash_completes(line: str, script: Callable[[str], Path]) -> None:
    assert set(offered("bash", script("bash"), line).split()) == LINES[line]


@pytest.mark.parametrize("line", LINES)
def test_fish_completes(line: str, script: Callable[[str], Path]) -> None:
    words = {each.partition("\t")[0] for each in offered("fish", script("fish"), line).splitlines()}
    assert LINES[line] <= words


@pytest.mark.parametrize(
    "line", ["orrery gen", "orrery generate m p --temp", "orrery completion ", "orrery score some.t"]
)
def test_zsh_completes(line: str, script: Callable[[str], Path]) -> None:
    shown = offered("zsh", script("zsh"), line)
    assert all(word in shown for word in LINES[line])


@pytest.mark.parametrize("shell", SHELLS)
def test_every_verb_and_flag_is_in_the_script(shell: str, script: Callable[[str], Path]) -> None:
    text = script(shell).read_text("utf-8")
    flags = {flag.removeprefix("--") for verb in VERBS for flag in hints.flags_of(verb) if flag.startswith("--")}
    assert [word for word in (*VERBS, *(flags - {"debug"})) if word not in text] == []


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_has_the_grammar_of_its_shell(shell: str, script: Callable[[str], Path]) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    assert subprocess.run([shell, "-n", script(shell)], capture_output=True).returncode == 0


@pytest.mark.parametrize("shell", ["powershell", "", "csh", "BASH"])
def test_another_shell_is_refused(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", shell]) == 2
    assert "hint: " in capsys.readouterr().err
