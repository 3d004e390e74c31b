"""Which mode SELinux is in, and which it takes at the next boot, by libselinux's own rules.

Sources: libselinux's selinux_getenforcemode(), selinux_init_load_policy() and
init_selinux_config(); the kernel's "selinux=" and "enforcing=" in Documentation/admin-guide.
"""

import re
from typing import Literal, NamedTuple

from clustercheck.check import Facts

Mode = Literal["enforcing", "permissive", "disabled"]

MODES: tuple[Mode, ...] = ("enforcing", "permissive", "disabled")
CONFIG = "/etc/selinux/config"
NO_CONFIG = f"there is no {CONFIG}"


class Config(NamedTuple):
    """What libselinux reads from /etc/selinux/config.

    mode: None where no line gives one.
    policy: the policy's name as it stands there; a comment behind it is part of the name.
    passed_over: lines that look as if they set the mode, and are not read.
    """

    mode: Mode | None
    policy: str
    passed_over: tuple[str, ...]


def read_config(text: str) -> Config:
    """The first good SELINUX= line counts, the last SELINUXTYPE= line.

    SELINUX= must begin its line; blanks may follow the sign, capitals do not matter in the mode,
    and what stands behind the mode is not read. So "SELINUX = enforcing", a blank before it and
    quotes make a line that is passed over.
    """
    mode: Mode | None = None
    policy = "targeted"
    passed_over: list[str] = []
    for line in text.splitlines():
        if "=" not in line:
            continue
        found = _mode_of(line)
        if found:
            mode = mode or found
        elif re.match(r"""\s*["']?selinux\s*=""", line, re.IGNORECASE):
            passed_over.append(line.strip())
        if re.match(r"\s*selinuxtype=", line, re.IGNORECASE):
            policy = line.partition("=")[2].strip()
    return Config(mode, policy, tuple(passed_over))


def _mode_of(line: str) -> Mode | None:
    value = line.removeprefix("SELINUX=").lstrip().lower() if line.startswith("SELINUX=") else ""
    return next((mode for mode in MODES if value.startswith(mode)), None)


def kernel_switch(words: list[str], name: str) -> bool | None:
    """The last good NAME=NUMBER of the kernel command line; None where there is none."""
    on: bool | None = None
    for word in words:
        key, _, value = word.partition("=")
        if key == name and re.fullmatch("[0-9]{1,9}", value):
            on = int(value) != 0
    return on


def switched_by(mode: Mode, words: list[str]) -> str:
    """The word of the kernel command line that makes this mode, whatever the file says; or ""."""
    if mode == "disabled" and kernel_switch(words, "selinux") is False:
        return "selinux=0"
    on = kernel_switch(words, "enforcing")
    if on is not None and mode == ("enforcing" if on else "permissive"):
        return f"enforcing={int(on)}"
    return ""


def mode_at_boot(config: Config | None, words: list[str], lsm: list[str]) -> tuple[Mode, str]:
    """The mode at the next boot and what decides it, should kernel and its command line stay.

    config: None where there is no file.
    words: of the kernel command line.
    lsm: security modules that the kernel started; empty where it does not say.
    """
    if kernel_switch(words, "selinux") is False:
        return "disabled", "selinux=0 on the kernel command line"
    if lsm and "selinux" not in lsm:
        return "disabled", "the kernel's list of security modules"
    if config is None:
        return "disabled", NO_CONFIG
    if config.mode == "disabled":
        return "disabled", CONFIG
    enforcing = kernel_switch(words, "enforcing")
    if enforcing is not None:
        word = f"enforcing={int(enforcing)} on the kernel command line"
        return ("enforcing" if enforcing else "permissive"), word
    if config.mode is None:
        return "permissive", f"no line of {CONFIG} sets a mode"
    return config.mode, CONFIG


def mode_now(facts: Facts) -> tuple[Mode | None, str]:
    """The mode and a sentence about it; None where it cannot be told."""
    enforce, policy = facts.get("enforce", ""), facts.get("policy")
    if enforce in ("0", "1"):
        if enforce == "0" and policy == "none":
            return "disabled", "SELinux is disabled: no policy is loaded" + _others(facts)
        mode: Mode = "enforcing" if enforce == "1" else "permissive"
        return mode, f"SELinux is {mode}"
    label = facts["label"]
    if facts["mount"] == "none":
        if facts["kernel"] == "no":
            return "disabled", "SELinux is disabled" + _others(facts)
        if facts["kernel"] == "yes" and label == "kernel":
            return "disabled", "SELinux is disabled: no policy is loaded" + _others(facts)
        if label.count(":") >= 2:
            # a container sees no selinuxfs, and getenforce then says Disabled
            return None, "a policy is in force, but its mode cannot be seen from here"
    told = facts.get("getenforce", "").strip().lower() or _of_sestatus(facts.get("sestatus", ""))
    for known in MODES:
        if told == known:
            return known, f"SELinux is {known}" + (_others(facts) if known == "disabled" else "")
    return None, "the kernel's mode could not be read, and getenforce did not tell it either"


def _of_sestatus(text: str) -> str:
    fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    status = fields.get("SELinux status", "").strip()
    return status if status == "disabled" else fields.get("Current mode", "").strip()


def _others(facts: Facts) -> str:
    """The security module that stands in SELinux's place, in words."""
    names = {"apparmor": "AppArmor", "smack": "Smack", "tomoyo": "TOMOYO"}
    active = facts["lsm"].split(",")
    if facts["apparmor"] == "Y":
        active.append("apparmor")
    found = [names[name] for name in names if name in active]
    return f"; {' and '.join(found)} is active" if found else ""
