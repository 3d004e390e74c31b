"""Node sets in output: read back, they are the same nodes."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustercheck import fold as fold_module
from clustercheck.fold import fold, shorten
from clustercheck.nodeset import evaluate, expand

from .made_up import names


@pytest.mark.parametrize(
    ("nodes", "folded"),
    [
        ("gpu01 gpu02 gpu03", "gpu[01-03]"),
        ("gpu3 gpu1 gpu2", "gpu[1-3]"),
        ("gpu07", "gpu07"),
        ("login gpu01 gpu02", "gpu[01-02],login"),
        ("master login", "master,login"),
        ("r1n1 r1n2 r2n1 r2n2", "r[1-2]n[1-2]"),
        ("10.0.0.1 10.0.0.2", "10.0.0.[1-2]"),
        ("fe80::1 fe80::2", "fe80::1,fe80::2"),
        ("node%1 node%2", "node%1,node%2"),
        ("节点01 节点02", "节点01,节点02"),
    ],
)
def test_fold(nodes: str, folded: str) -> None:
    assert fold(nodes.split()) == folded


@settings(deadline=None)
@given(st.lists(names, unique=True, min_size=1, max_size=40), st.booleans())
def test_a_folded_set_is_read_back_as_the_same_nodes(nodes: list[str], many: bool) -> None:
    few = fold_module.MANY
    fold_module.MANY = 0 if many else few
    fold_module._fold.cache_clear()
    try:
        folded = fold(nodes)
    finally:
        fold_module.MANY = few
    read = evaluate(folded, lambda text: dict.fromkeys(expand(text)))
    assert set(read) == set(nodes)


@pytest.mark.parametrize("name", ["n{}.rack{}.example.com", "10.0.{1}.{0}", "r{1}n{0}"])
def test_ten_thousand_names_are_folded_in_a_moment(name: str) -> None:
    nodes = [name.format(number, number % 7) for number in range(10_000)]
    began = time.process_time()
    folded = fold(nodes)
    assert time.process_time() - began < 5  # ClusterShell alone: 3 s and more on an idle machine
    assert len(evaluate(folded, lambda text: dict.fromkeys(expand(text)))) == 10_000


@pytest.mark.parametrize(
    ("folded", "count", "longest", "short"),
    [
        ("gpu[01-16],login", 17, 20, "gpu[01-16],login"),
        ("gpu[01-16],login1", 17, 12, "gpu[01-16],… (17 nodes)"),
        ("gpu[01,03,05,07]", 4, 11, "gpu[01,03,…] (4 nodes)"),
        ("averylongnamewithoutacomma,b", 2, 10, "averylongn… (2 nodes)"),
    ],
)
def test_shorten(folded: str, count: int, longest: int, short: str) -> None:
    assert shorten(folded, count, longest) == short
