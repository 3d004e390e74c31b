"""InfiniBand ports, from /sys/class/infiniband or what ibstat printed."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

# ibstat's words for what the kernel has in capitals.
STATES = {"Active": "ACTIVE", "Initializing": "INIT", "Initialized": "INIT", "Armed": "ARMED"}
STATES |= {"Initialize": "INIT", "Down": "DOWN", "Active_defer": "ACTIVE_DEFER", "Arm": "ARMED"}

WHY_DOWN = {
    "Polling": "finds nothing at the other end (Polling)",
    "Disabled": "is switched off (Disabled)",
    "Sleep": "sleeps (Sleep)",
}


@dataclass(frozen=True)
class Port:
    """A port of an adapter. What was not told is None, or "".

    layer: "InfiniBand", or "Ethernet" for a port that is an Ethernet one at present.
    state, physical: by the kernel's words, "ACTIVE" and "LinkUp" where all is well.
    rate: in Gb/s; of a port that is down it says nothing.
    width: lanes, "4X".
    card: model and board, for ports that can be compared.
    counters: since boot, or since they were reset.
    """

    adapter: str
    number: str
    layer: str
    state: str
    physical: str
    rate: float | None
    width: str
    model: str
    firmware: str
    card: str
    counters: Mapping[str, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.adapter if self.number == "1" else f"{self.adapter} port {self.number}"

    @property
    def is_active(self) -> bool:
        return self.state in ("ACTIVE", "ACTIVE_DEFER")

    @property
    def is_retrained(self) -> bool:
        """Is it active by name alone? The port then carries nothing until its link is back."""
        return self.state == "ACTIVE_DEFER" or self.physical in ("LinkErrorRecovery", "Training")

    @property
    def is_down(self) -> bool:
        return self.state == "DOWN"

    @property
    def why_down(self) -> str:
        """Its state in words: "mlx5_1 finds nothing at the other end (Polling)"."""
        return f"{self.name} {WHY_DOWN.get(self.physical, f'does not come up ({self.physical})')}"


def parse_ports(text: str) -> list[Port]:
    """The ports of the probe's lines; lines of another form are passed over."""
    ports = {}
    for line in text.splitlines():
        adapter, number_, *rest = [*line.split(" "), ""]
        words = dict(word.split("=", 1) for word in rest if "=" in word)
        if adapter and number_ and "state" in words:
            counted = {key: number(value) for key, value in words.items() if "_" in key}
            ports[adapter, number_] = Port(
                adapter,
                number_,
                words.get("layer", ""),
                words["state"],
                words.get("physical", ""),
                rate(words.get("rate", "")),
                words.get("width", ""),
                words.get("model", ""),
                words.get("firmware", ""),
                f"{words.get('model', '')}/{words.get('board', '')}",
                {key: value for key, value in counted.items() if value is not None},
            )
    return list(ports.values())


def parse_ibstat(text: str) -> list[Port]:
    """The ports that ibstat printed. Old versions have no line on the layer: all was InfiniBand."""
    ports: list[Port] = []
    adapter: dict[str, str] = {}
    port: dict[str, str] = {}

    def put() -> None:
        if port and adapter:
            state = port.get("State", "")
            ports.append(
                Port(
                    adapter["CA"],
                    port["Port"],
                    port.get("Link layer", "InfiniBand"),
                    STATES.get(state, state.upper()),
                    port.get("Physical state", ""),
                    rate(port.get("Rate", "")),
                    "",
                    adapter.get("CA type", ""),
                    adapter.get("Firmware version", ""),
                    adapter.get("CA type", ""),
                )
            )

    for line in text.splitlines():
        key, _, value = map(str.strip, line.partition(":"))
        if start := re.fullmatch(r"CA '(.{1,64})'", line.strip()):
            put()
            adapter, port = {"CA": start[1]}, {}
        elif start := re.fullmatch(r"Port ([0-9]{1,3})", key):
            put()
            port = {"Port": start[1]}
        elif port:
            port[key] = value
        elif adapter:
            adapter[key] = value
    put()
    return ports


def number(text: str) -> int | None:
    """A number that the kernel may have told; None for what is none."""
    return int(text) if re.fullmatch("[0-9]{1,20}", text) else None


def rate(text: str) -> float | None:
    """A rate in Gb/s; None for what is none."""
    return float(text) if re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,3})?", text) else None


def names(of: Iterable[str]) -> str:
    """ "a, b and c"."""
    words = list(of)
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def rates(ports: Iterable[Port]) -> str:
    """ "400 Gb/s on mlx5_0 and mlx5_1"."""
    by_rate: dict[float, list[str]] = {}
    for port in ports:
        by_rate.setdefault(port.rate or 0, []).append(port.name)
    return ", ".join(f"{told:g} Gb/s on {names(of)}" for told, of in sorted(by_rate.items()))
