"""The fence around a method in a comparison: what the process of the method may not do.

A Python audit hook prevents the process from reading the files of data sets or the memory of other
processes, from writing outside its temporary folder, from using the network, and from starting
processes. If the kernel supports it, `landlock` also blocks the files. The fence cannot be removed.

The fence prevents shortcuts and mistakes, for example reading a wrong file or a cache of an earlier
run. It is not a sandbox against attacks: code that manipulates the interpreter can avoid the hook,
native code is only stopped by the kernel, and a synthetic data set can be generated again by
anybody who knows its code and seed.
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
from genrecourse.data.own_table import own_files
from genrecourse.evaluation.comparison import landlock

DATA_FILE = re.compile(r".*_(train|test)\.csv(\.\w+)?")
CODE = (".py", ".pyc", ".pyi", ".so", ".pyd", ".dll", ".dylib")
# Files that numerical libraries read to find the number of cores and the size of the memory.
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
    """The limits of a child process.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as home:
    ...     fence = Fence.around(home, (Path("results.jsonl"),))
    >>> any(path.endswith("results.jsonl") for path in fence.closed)
    True
    """

    home: str  # the only folder that the process may write to
    closed: tuple[str, ...]  # files and folders that the process may not read

    @classmethod
    def around(cls, home: str, closed: tuple[Path, ...]) -> Fence:
        """Return a fence that closes these paths and the folders of data sets."""
        folders = [Path(user_cache_dir("genrecourse")), datasets.EMBEDDED, *closed, *own_files()]
        named = os.environ.get(datasets.DATA_VARIABLE)
        if named:
            folders.append(Path(named))
        return cls(os.path.realpath(home), tuple(os.path.realpath(f) for f in folders))

    def put_up(self) -> None:
        """Limit this process; this cannot be undone."""
        os.environ.pop(datasets.DATA_VARIABLE, None)
        os.environ["TMPDIR"] = tempfile.tempdir = self.home
        os.chdir(self.home)  # relative paths are inside the folder
        for name, entry in list(datasets.DATASETS.items()):
            datasets.DATASETS[name] = replace(entry, read=_no_data_set)
        joblib.cpu_count(only_physical_cores=True)  # runs a program once and caches the result
        _no_fork_exec()
        landlock.lock(self.closed)
        sys.addaudithook(self._watch)

    def _watch(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            self._open(args[0], args[2])
        elif event in PROCESSES:
            raise _refused("start or signal a process; if it uses n_jobs, use threads")
        elif event in NETWORK:
            raise _refused("use the network")
        elif event in MOVES:
            for path in args:
                if isinstance(path, str | bytes | os.PathLike) and not self._at_home(_real(path)):
                    raise _refused(f"touch {os.fsdecode(path)}")
        elif event == "ctypes.dlopen" and _is_libc(args[0]) and not _is_asked_by("threadpoolctl"):
            raise _refused("call the C library directly")

    def _open(self, path: Any, flags: Any) -> None:
        if not isinstance(path, str | bytes | os.PathLike):
            return  # the file is already open
        real = _real(path)
        if self._at_home(real):
            return
        if (flags or 0) & WRITES and real != os.devnull:
            raise _refused(f"write to {real}; use the folder of tempfile instead")
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
        f"a method in a comparison may not {what}. It gets only the training rows, their labels, "
        "h and the schema, and then the people"
    )


def _no_data_set(seed: int) -> Any:
    raise _refused("load a data set")


def _no_fork_exec() -> None:
    """Block the functions of multiprocessing and joblib that the audit hook does not see."""

    def refuse(*_: Any) -> int:
        raise _refused("start or signal a process; if it uses n_jobs, use threads")

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
    """Return whether this is the C library, or the process itself, which contains it."""
    return library is None or bool(LIBC.match(os.path.basename(os.fsdecode(library))))


def _is_asked_by(module: str) -> bool:
    """Return whether this module is in the call stack; scikit-learn counts threads this way."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__") != module:
        frame = frame.f_back
    return frame is not None
