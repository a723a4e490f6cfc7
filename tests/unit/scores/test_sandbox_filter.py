"""The filter of system calls, carried out by hand: what is refused, missing, allowed, and what kills."""

import errno
import struct

import pytest

from orrery.sandbox import kernel, syscalls

ALLOW, REFUSE, MISSING, KILL = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS, 0x80000000
OTHERS = {"x86_64": 0xC00000B7, "aarch64": 0xC000003E}
"""Of each machine the number of the other, as audit.h has them."""


def answer(machine, number, argument=0, architecture=None):
    """Return what the kernel would do with a call: linux/seccomp.h has the layout of what the filter reads."""
    own = OTHERS["aarch64" if machine == "x86_64" else "x86_64"]
    data = struct.pack("<IIQ6Q", number, own if architecture is None else architecture, 0, argument, *[0] * 5)
    program, place, value = list(struct.iter_unpack("HBBI", syscalls.filter_of(machine))), 0, 0
    while True:
        code, yes, no, given = program[place]
        place += 1
        if code == 0x06:  # return
            return given
        if code == 0x20:  # load a word
            (value,) = struct.unpack_from("<I", data, given)
            continue
        holds = {0x15: value == given, 0x35: value >= given, 0x45: bool(value & given)}[code]
        place += yes if holds else no


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_every_call_on_the_list_is_refused_and_its_neighbours_are_not(machine):
    column = list(syscalls.MACHINES).index(machine)
    listed = {numbers[column] for numbers in syscalls.REFUSED.values()}
    assert len(listed) == len(syscalls.REFUSED)
    bound = {numbers[column] for numbers, _ in syscalls.ONLY.values()}
    for number in range(500):
        if number in listed:
            assert answer(machine, number) == REFUSE
        elif number in bound:
            continue
        elif number != syscalls.CLONE3[column]:
            assert answer(machine, number) == ALLOW
    assert answer(machine, syscalls.CLONE3[column]) == MISSING


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_a_clone_is_refused_for_each_kind_of_namespace_and_allowed_for_threads(machine):
    clone = syscalls.CLONE[list(syscalls.MACHINES).index(machine)]
    kinds = [1 << bit for bit in range(32) if kernel.NAMESPACES >> bit & 1]
    assert len(kinds) == 7
    for kind in kinds:
        assert answer(machine, clone, kind | 0x11) == REFUSE
    assert answer(machine, clone, 0x003D0F00) == ALLOW  # what the C library starts a thread with
    assert answer(machine, clone + 1, kinds[0]) == ALLOW  # an argument of another call
    assert answer(machine, clone, 17) == ALLOW


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize(("call", "allowed"), [("socket", {1, 2, 10}), ("socketpair", {1}), ("prlimit64", {0})])
def test_a_first_argument_is_one_of_a_few(machine, call, allowed):
    number = syscalls.ONLY[call][0][list(syscalls.MACHINES).index(machine)]
    for argument in range(64):
        assert answer(machine, number, argument) == (ALLOW if argument in allowed else REFUSE)
        # The kernel reads 32 bits of it.
        assert answer(machine, number, argument | 1 << 32) == (ALLOW if argument in allowed else REFUSE)
    assert answer(machine, number, (1 << 32) - 1) == REFUSE
    assert answer(machine, 0, 40) == ALLOW  # an argument of another call


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_a_process_of_another_architecture_is_killed(machine):
    assert answer(machine, 0, architecture=OTHERS[machine]) == KILL
    assert answer(machine, 0, architecture=0x40000003) == KILL  # 32 bits
    assert answer(machine, 0x40000000) == KILL  # x32
    assert answer(machine, 0x40000001) == KILL


def test_known_numbers_stand_at_their_machine():
    # arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h
    for name, numbers in {"ptrace": (101, 117), "mount": (165, 40), "unshare": (272, 97), "bpf": (321, 280)}.items():
        assert syscalls.REFUSED[name] == numbers
    assert {name: numbers for name, (numbers, _) in syscalls.ONLY.items()} == {
        "socket": (41, 198), "socketpair": (53, 199), "prlimit64": (302, 261),
    }  # fmt: skip
    assert (syscalls.CLONE, syscalls.CLONE3) == ((56, 220), (435, 435))


def test_a_process_that_filters_gives_up_new_rights_first(monkeypatch):
    asked = []
    monkeypatch.setattr(syscalls.os, "uname", lambda: type("Here", (), {"machine": "x86_64"}))
    monkeypatch.setattr(syscalls.kernel, "control", lambda *words: asked.append(words))
    syscalls.install()
    assert asked[0] == (kernel.NO_NEW_PRIVILEGES, 1)
    assert asked[1][:2] == (kernel.SECCOMP, 2)
    assert len(asked) == 2
