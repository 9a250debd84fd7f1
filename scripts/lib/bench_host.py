"""Describes the machine and the compiler of a measurement for its page of results."""
import os
import platform
import re
import subprocess


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        model = re.search(r"^model name\s*: (.*)$", info.read(), re.MULTILINE)
    system = platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    return f"{model.group(1) if model else platform.machine()}, {os.cpu_count()} cores, {system}"


def compiler(build):
    with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as cache:
        path = re.search(r"^CMAKE_C_COMPILER:[A-Z]+=(.*)$", cache.read(), re.MULTILINE).group(1)
    return subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]


def commit_of(build):
    """The commit of the source of a build."""
    cache = (build / "CMakeCache.txt").read_text(encoding="utf-8")
    source = re.search(r"^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$", cache, re.MULTILINE).group(1)
    return subprocess.run(["git", "-C", source, "describe", "--always", "--dirty"], check=True, capture_output=True,
                          text=True).stdout.strip()


def verdict(met):
    return "met" if met else "**not met**"
