"""The fence around a method that is being compared: what its process may not do.

An audit hook refuses to open the data sets' files or other processes' memory, to write outside a
temporary folder of its own, to use the network and to start processes; where the kernel can close
files (`landlock`), it does so too. Once up it stays up.

It is there against shortcuts and mistakes: code that reads a file it should not, a cache that the
run before left behind. It is no prison. Code that takes the interpreter apart can get past the
hook, native code past all but what the kernel closes, and a data set that is *made* can be made
again by anyone who knows its recipe and seed.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import joblib
from platformdirs import user_cache_dir

from genrecourse.data import datasets
from genrecourse.evaluation.comparison import landlock

DATA_FILE = re.compile(r".*_(train|test)\.csv(\.\w+)?")
CODE = (".py", ".pyc", ".pyi", ".so", ".pyd", ".dll", ".dylib")
# What a numerical library reads to see how many cores and how much memory there is.
OF_THE_MACHINE = {
    *("cpuinfo", "meminfo", "stat", "self/stat", "self/statm", "self/status", "self/cgroup"),
    *("self/mountinfo", "self/maps", "sys/vm/overcommit_memory"),
}
LIBC = re.compile(r"(libc|libSystem|msvcrt|ucrtbase|kernel32|ntdll)\b", re.I)
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
PROCESSES = {
    *("subprocess.Popen", "os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn"),
    *("os.spawn", "os.startfile", "pty.spawn", "os.kill", "os.killpg"),
}
NETWORK = {
    *("socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo"),
    *("socket.gethostbyname", "socket.gethostbyaddr"),
}
MOVES = {"os.link", "os.symlink", "os.rename", "os.remove", "os.rmdir", "os.truncate"}


@dataclass(frozen=True)
class Fence:
    """What a child may not do; once it is up it stays up."""

    home: str  # the one folder to write to
    closed: tuple[str, ...]  # files and folders not to read

    @classmethod
    def around(cls, home: str, closed: tuple[Path, ...]) -> Fence:
        """closed: besides the folders in which this machine keeps data sets."""
        folders = [Path(user_cache_dir("genrecourse")), datasets.EMBEDDED, *closed]
        named = os.environ.get(datasets.DATA_VARIABLE)
        if named:
            folders.append(Path(named))
        return cls(os.path.realpath(home), tuple(os.path.realpath(f) for f in folders))

    def put_up(self) -> None:
        os.environ.pop(datasets.DATA_VARIABLE, None)
        os.environ["TMPDIR"] = tempfile.tempdir = self.home
        os.chdir(self.home)  # a file named without a folder is one of its own
        for name, entry in list(datasets.DATASETS.items()):
            datasets.DATASETS[name] = replace(entry, read=_no_data_set)
        joblib.cpu_count(only_physical_cores=True)  # asks another program, once, and remembers
        _no_fork_exec()
        landlock.lock(self.closed)
        sys.addaudithook(self._watch)

    def _watch(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            self._open(args[0], args[2])
        elif event in PROCESSES:
            raise _refused("start or signal a process; where it takes n_jobs, use threads")
        elif event in NETWORK:
            raise _refused("use the network")
        elif event in MOVES:
            for path in args:
                if isinstance(path, str | bytes | os.PathLike) and not self._at_home(_real(path)):
                    raise _refused(f"touch {os.fsdecode(path)}")
        elif event == "ctypes.dlopen" and _is_libc(args[0]) and not _is_asked_by("threadpoolctl"):
            raise _refused("call the operating system past Python")

    def _open(self, path: Any, flags: Any) -> None:
        if not isinstance(path, str | bytes | os.PathLike):
            return  # a file that is open already
        real = _real(path)
        if self._at_home(real):
            return
        if (flags or 0) & WRITES and real != os.devnull:
            raise _refused(f"write to {real}; tempfile has a folder of its own for it")
        if self._is_closed(real):
            raise _refused(f"read {real}")

    def _is_closed(self, real: str) -> bool:
        if real.startswith("/proc/"):
            return not _of_the_machine(real)
        if DATA_FILE.fullmatch(os.path.basename(real)):
            return True
        return not real.endswith(CODE) and any(_within(real, folder) for folder in self.closed)

    def _at_home(self, real: str) -> bool:
        return _within(real, self.home)


def _refused(what: str) -> PermissionError:
    return PermissionError(
        f"a method that is being compared may not {what}. It is given training rows, their "
        "labels, h and the schema, and then the people"
    )


def _no_data_set(seed: int) -> Any:
    raise _refused("load a data set")


def _no_fork_exec() -> None:
    """multiprocessing and joblib start processes without telling the audit hook."""

    def refuse(*_: Any) -> int:
        raise _refused("start or signal a process; where it takes n_jobs, use threads")

    for name in ("_posixsubprocess", "_winapi"):
        module = sys.modules.get(name)
        for function in ("fork_exec", "CreateProcess"):
            if hasattr(module, function):
                setattr(module, function, refuse)


def _real(path: Any) -> str:
    return os.path.realpath(os.fsdecode(path))


def _within(real: str, folder: str) -> bool:
    return real == folder or real.startswith(folder.rstrip(os.sep) + os.sep)


def _of_the_machine(real: str) -> bool:
    inside = real.removeprefix("/proc/")
    own = f"{os.getpid()}/"
    if inside.startswith(own):
        inside = "self/" + inside.removeprefix(own)
    return inside in OF_THE_MACHINE


def _is_libc(library: Any) -> bool:
    """The library of the operating system, or the process itself, which has it inside."""
    return library is None or bool(LIBC.match(os.path.basename(os.fsdecode(library))))


def _is_asked_by(module: str) -> bool:
    """Whether code of this module is running, some calls up. scikit-learn counts threads so."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__") != module:
        frame = frame.f_back
    return frame is not None
