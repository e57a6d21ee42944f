"""Time and peak memory of the demo, measured in a process of its own.

python -m benchmarks.bench_demo   # prints, and writes benchmarks/results/demo.json
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RESULTS = Path(__file__).parent / "results" / "demo.json"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        command = [sys.executable, "-m", "genrecourse", "demo", "--folder", folder]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        seconds = time.perf_counter() - started
        report = (Path(folder) / "report.html").stat().st_size
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss  # kB on Linux, bytes on macOS
    found = {
        "seconds": round(seconds),
        "peak_mb": round(peak / (1024 if sys.platform != "darwin" else 1024**2)),
        "report_kb": round(report / 1024),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
    }
    print(found)
    RESULTS.write_text(json.dumps(found) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
