"""Facts of the checks link, bond, ib and retrans that tell all that a node ever tells of them."""

LINK = {
    "uptime": "864000.50",
    "interfaces": "lo kind=virtual type=772 carrier=1\n"
    "eno1 kind=real type=1 carrier=1 speed=100 duplex=half route=default set=up vendor=0x8086"
    " model=0x1521 downs=4711 rx_bytes=1000000000 rx_packets=1000000 tx_packets=1000"
    " rx_errors=1923 rx_crc_errors=1900 rx_frame_errors=3 rx_length_errors=20 rx_over_errors=0"
    " rx_fifo_errors=90000 rx_missed_errors=90000 tx_errors=800\n"
    "ens1f0 kind=real type=1 carrier=0 speed=-1 duplex=unknown route=yes set=up vendor=0x15b3"
    " model=0x1017 changes=9 bond=bond0\n"
    "ens1f1 kind=real type=1 carrier=1 speed=25000 duplex=full set=up vendor=0x15b3"
    " model=0x1017 changes=2 bond=bond0\n"
    "ens2 kind=real type=1 carrier=1 speed=4294967295 set=up",
    "again": "eno1 rx_bytes=1000100000 rx_packets=1000100 tx_packets=1000 rx_errors=1940"
    " rx_crc_errors=1917 rx_missed_errors=90001 tx_errors=800",
    "modes": "Settings for eno1:\n\tAdvertised link modes:  100baseT/Full\n"
    "\t                        1000baseT/Full\n"
    "\tLink partner advertised link modes:  100baseT/Full\n"
    "\t                                     1000baseT/Full\n\tAuto-negotiation: on",
}

BOND = {
    "bonds": """\
@bond bond1 up read
Bonding Mode: IEEE 802.3ad Dynamic link aggregation
MII Status: up
MII Polling Interval (ms): 0
802.3ad info
Active Aggregator Info:
Aggregator ID: 1
Number of ports: 1
Partner Mac Address: 50:00:00:00:00:01

Slave Interface: ens1f0
MII Status: up
Speed: 100000 Mbps
Link Failure Count: 0
Aggregator ID: 1
details actor lacp pdu:
port state: 63
details partner lacp pdu:
port state: 63

Slave Interface: ens1f1
MII Status: up
Speed: 25000 Mbps
Link Failure Count: 3
Aggregator ID: 2

Slave Interface: ens1f2
MII Status: down
Speed: Unknown
Link Failure Count: 3
@aggregator 1
@member ens1f0 1 63 63 1
@member ens1f1 1 7 15 2
@member ens1f2 0 7 0 3
@bond bond2 up read
Bonding Mode: fault-tolerance (active-backup)
Currently Active Slave: eth2
MII Status: up
MII Polling Interval (ms): 100

Slave Interface: eth2
MII Status: up
Speed: 100 Mbps
Link Failure Count: 0

Slave Interface: eth3
MII Status: up
Speed: 1000 Mbps
Link Failure Count: 0
@bond bond3 off unread
""",
}

IB = {
    "source": "sys",
    "uptime": "86400.50",
    "ports": "mlx5_0 1 state=INIT physical=LinkUp rate=400 width=4X layer=InfiniBand model=MT4129"
    " board=MT_0000000838 firmware=28.39.1002\n"
    "mlx5_1 1 state=ACTIVE physical=LinkUp rate=200 width=4X layer=InfiniBand model=MT4129"
    " board=MT_0000000838 firmware=28.36.1002 symbol_error=4711 link_downed=50"
    " port_rcv_errors=500 port_rcv_data=1000000\n"
    "mlx5_2 2 state=DOWN physical=Polling rate=10 width=4X layer=InfiniBand model=MT4129\n"
    "mlx5_3 1 state=ACTIVE physical=LinkUp rate=25 width=1X layer=Ethernet model=MT4127",
}
IBSTAT = {
    "source": "ibstat 0",
    "ports": "CA 'mlx5_0'\n\tCA type: MT4129\n\tFirmware version: 28.39.1002\n"
    "\tPort 1:\n\t\tState: Active\n\t\tPhysical state: LinkUp\n\t\tRate: 400\n\t\tBase lid: 14\n"
    "\t\tLink layer: InfiniBand",
}

RETRANS = {
    "looks": "1000.00 1000000 100000 17 5\n1000.20 1000900 100090 17 5\n"
    "1001.20 1019000 100900 17 5",
    "connections": "ESTAB 0 0 10.0.0.1:22 10.0.0.2:41000\n"
    "\tcubic retrans:0/45 dsack_dups:5 segs_out:900\n"
    "ESTAB 0 0 [fd00::1]:22 [fd00::9]:41000\n\tcubic retrans:0/45 data_segs_out:900",
}
RETRANS_IDLE = {**RETRANS, "looks": "1000.00 1000000 1000 17 5\n1000.20 1000004 1000 17 5"}
