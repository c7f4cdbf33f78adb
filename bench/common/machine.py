"""The machine and the commit that a page of figures is of."""
import os
import platform
import subprocess

# What the program calls a processor, as pages are named. Others keep their name.
NAMES = {"znver2": "zen2", "znver3": "zen3", "znver4": "zen4", "znver5": "zen5", "skylake-avx512": "skylake-server", "cascadelake": "cascade-lake",
         "cooperlake": "cooper-lake", "icelake-server": "ice-lake-server", "sapphirerapids": "sapphire-rapids",
         "emeraldrapids": "emerald-rapids", "graniterapids": "granite-rapids"}
SPOKEN = {"zen2": "AMD Zen 2", "zen3": "AMD Zen 3", "zen4": "AMD Zen 4", "zen5": "AMD Zen 5"}


def name_of(arch):
    return NAMES.get(arch, arch or "unknown")


def spoken(name):
    return SPOKEN.get(name, name.replace("-", " ").title() if name in NAMES.values() else name)


def command_output(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def describe():
    facts = {}
    for line in command_output("lscpu").splitlines():
        key, _, value = line.partition(":")
        facts[key.strip()] = value.strip()
    flags = facts.get("Flags", "").split()
    wide = [f for f in ("avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile") if f in flags]
    with open("/proc/meminfo") as file:
        memory = int(file.readline().split()[1]) / 1e6
    caches = ", ".join(f"{key.removesuffix(' cache')} {facts[key]}" for key in ("L1d cache", "L2 cache", "L3 cache") if key in facts)
    name = f"{facts.get('Model name', platform.processor())} (family {facts.get('CPU family', '?')}, model {facts.get('Model', '?')})"
    return f"{name}, {facts.get('CPU(s)', '?')} CPUs, {' '.join(wide) or platform.machine()}; {caches}; {memory:.0f} GB; Linux {platform.release().split('-')[0]}"


def commit():
    name = command_output("git", "rev-parse", "--short=10", "HEAD")
    return name + (" with changes" if command_output("git", "status", "--porcelain", "--untracked-files=no") else "")
