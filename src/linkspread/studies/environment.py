"""With what, and on what machine, a study was made."""

import datetime
import importlib.metadata
import os
import platform
from pathlib import Path

PACKAGES = ("linkspread", "numpy", "scipy", "scikit-learn", "numba")


def describe_environment() -> dict[str, str]:
    """Return versions, the processor, its cores and the date."""
    versions = {name: importlib.metadata.version(name) for name in PACKAGES}
    return {
        "python": platform.python_version(),
        **versions,
        "processor": name_processor(),
        "cores": str(os.cpu_count()),
        "date": datetime.date.today().isoformat(),
    }


def name_processor() -> str:
    """Return the name of the processor, as far as the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if "model name" in line]
    return names[0] if names else platform.machine()
