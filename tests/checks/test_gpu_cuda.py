"""The check gpu on a CUDA version that is wanted: the driver's three ways, and the GPUs' code."""

import pytest

from tests.gpu_node import facts, gpu, listed
from tests.made_up import judged


def wanted(
    version: str,
    driver: str,
    *,
    name: str = "NVIDIA A100-SXM4-80GB",
    capability: str = "8.0",
    compat: str = "",
) -> tuple[str, str]:
    """What is said of the driver and of the GPU."""
    told = facts(listed(gpu(0, name=name, driver=driver, capability=capability)), compat=compat)
    found = judged("gpu", told, require_cuda=version)
    of_driver = next(f for f in found if f.split()[1] == "cuda:")
    return of_driver, next((f for f in found if f.split()[1] == "capability:"), "")


@pytest.mark.parametrize(
    ("version", "driver", "said"),
    [
        ("12.4", "550.54.14", "pass cuda: driver 550.54.14 runs CUDA 12.4 by itself (550.54.14 or"),
        ("12.4.1", "550.54.14", "pass cuda: driver 550.54.14 runs CUDA 12.4.1 by minor-version"),
        ("11.0", "620.10", "pass cuda: driver 620.10 runs CUDA 11.0 by itself"),
        # versions are numbers, field by field
        ("12.8", "570.26", "pass cuda: driver 570.26 runs CUDA 12.8 by itself (570.26 or newer)"),
        ("12.8.1", "570.26", "pass cuda: driver 570.26 runs CUDA 12.8.1 by minor-version"),
        ("12.2.2", "535.86.09", "pass cuda: driver 535.86.09 runs CUDA 12.2.2 by minor-version"),
        # inside one major family
        (
            "12.4",
            "535.183.01",
            "pass cuda: driver 535.183.01 runs CUDA 12.4 by minor-version compatibility (525.60.13"
            " or newer); code shipped as PTX alone and calls that are newer than the driver fail"
            " below 550.54.14",
        ),
        ("11.3", "460.32.03", "pass cuda: driver 460.32.03 runs CUDA 11.3 by minor-version"),
        (
            "11.8",
            "450.51.06",
            "fail cuda: driver 450.51.06 is too old for CUDA 11.8, should be 450.80.02 or newer;"
            " cuda-compat-11-8, which may do instead, is not installed",
        ),
        # across families
        (
            "13.0",
            "535.183.01",
            "fail cuda: driver 535.183.01 is too old for CUDA 13.0, should be 580.65.06 or newer;"
            " cuda-compat-13-0, which may do instead, is not installed",
        ),
        (
            "12.4",
            "384.183",
            "fail cuda: driver 384.183 is too old for CUDA 12.4, should be 525.60.13 or newer",
        ),
        # there was no package yet
        ("9.2", "390.46", "fail cuda: driver 390.46 is too old for CUDA 9.2, should be 396.26 or"),
        # not in the table
        (
            "12.7",
            "550.54.14",
            "unknown cuda: CUDA 12.7 is not in the table, which goes from 8.0 to 13.5; before and"
            " after it come 12.6 and 12.8",
        ),
        ("13.9", "580.65.06", "unknown cuda: CUDA 13.9 is not in the table"),
        (
            "13.9",
            "575.57.08",
            "fail cuda: driver 575.57.08 is too old for any CUDA 13, should be 580.65.06 or newer",
        ),
        ("14.0", "575.57.08", "unknown cuda: CUDA 14.0 is not in the table"),
    ],
)
def test_the_driver(version: str, driver: str, said: str) -> None:
    assert wanted(version, driver)[0].startswith(said)


@pytest.mark.parametrize(
    ("name", "version", "driver", "library", "said"),
    [
        (
            "NVIDIA A100-SXM4-80GB",
            "13.0",
            "535.183.01",
            "/usr/local/cuda-13.0/compat/libcuda.so.580.65.06",
            "pass cuda: driver 535.183.01 runs CUDA 13.0 by the package in"
            " /usr/local/cuda-13.0/compat, for programs that load it; by itself it is too old"
            " (580.65.06 or newer)",
        ),
        (  # the package of an older version does not do
            "NVIDIA A100-SXM4-80GB",
            "13.0",
            "535.183.01",
            "/usr/local/cuda-12.9/compat/libcuda.so.575.57.08",
            "fail cuda: driver 535.183.01 is too old for CUDA 13.0",
        ),
        (
            "Tesla V100-SXM2-32GB",
            "12.0",
            "470.256.02",
            "/usr/local/cuda-12.0/compat/libcuda.so.525.60.13",
            "warn cuda: driver 470.256.02 runs CUDA 12.0 by the package in"
            " /usr/local/cuda-12.0/compat, for programs that load it; branch 470 has come to its"
            " end since; should be 525.60.13 or newer",
        ),
        (
            "Tesla V100-SXM2-32GB",
            "12.0",
            "460.32.03",
            "/usr/local/cuda-12.0/compat/libcuda.so.525.60.13",
            "fail cuda: driver 460.32.03 is too old for CUDA 12.0, should be 525.60.13 or newer;"
            " cuda-compat-12-0 does not work with branch 460",
        ),
        (
            "NVIDIA GeForce RTX 3090",
            "13.0",
            "535.183.01",
            "/usr/local/cuda-13.0/compat/libcuda.so.580.65.06",
            "fail cuda: driver 535.183.01 is too old for CUDA 13.0, should be 580.65.06 or newer;"
            " compatibility packages do not work on NVIDIA GeForce RTX 3090",
        ),
        (
            "NVIDIA RTX A6000",
            "13.0",
            "535.183.01",
            "/usr/local/cuda-13.0/compat/libcuda.so.580.65.06",
            "warn cuda: driver 535.183.01 runs CUDA 13.0 by the package in"
            " /usr/local/cuda-13.0/compat, for programs that load it; whether NVIDIA RTX A6000"
            " takes it is not in the table; should be 580.65.06 or newer",
        ),
    ],
)
def test_the_compatibility_package(
    name: str, version: str, driver: str, library: str, said: str
) -> None:
    assert wanted(version, driver, name=name, compat=library)[0].startswith(said)


@pytest.mark.parametrize(
    ("name", "capability", "version", "said"),
    [
        ("NVIDIA A100-SXM4-80GB", "8.0", "12.4", "pass capability: NVIDIA A100-SXM4-80GB has"),
        (
            "Tesla V100-SXM2-32GB",
            "7.0",
            "13.0",
            "fail capability: Tesla V100-SXM2-32GB has compute capability 7.0, CUDA 13.0 begins at"
            " 7.5, the last for it is 12.9",
        ),
        (
            "Tesla K80",
            "[N/A]",
            "12.0",
            "fail capability: Tesla K80 has compute capability 3.7, CUDA 12.0 begins at 5.0, the"
            " last for it is 11.8",
        ),
        (
            "NVIDIA B200",
            "10.0",
            "12.4",
            "warn capability: NVIDIA B200 has compute capability 10.0, for which CUDA 12.4 makes no"
            " code: it should be 12.8 or newer; only programs that bring PTX run",
        ),
        # the code for 8.0 and 10.0 runs on later ones of the same major capability
        ("NVIDIA L40S", "8.9", "11.0", "pass capability: NVIDIA L40S has compute capability 8.9"),
        ("NVIDIA B300", "10.3", "12.8", "pass capability: NVIDIA B300 has compute capability 10.3"),
        ("NVIDIA GB10", "12.1", "12.8", "pass capability: NVIDIA GB10 has compute capability 12.1"),
        (
            "NVIDIA Next",
            "15.0",
            "13.5",
            "unknown capability: NVIDIA Next has compute capability 15",
        ),
        (
            "NVIDIA Next",
            "[N/A]",
            "13.5",
            "unknown capability: NVIDIA Next: its compute capability is told by nobody, and it is"
            " not in the table",
        ),
    ],
)
def test_the_gpu(name: str, capability: str, version: str, said: str) -> None:
    assert wanted(version, "620.10", name=name, capability=capability)[1].startswith(said)


@pytest.mark.parametrize(
    ("name", "capability"),
    [
        ("A10", "8.6"),
        ("NVIDIA A10G", "8.6"),
        ("NVIDIA A100-PCIE-40GB", "8.0"),
        ("NVIDIA Tesla T4", "7.5"),
        ("Quadro RTX 6000", "7.5"),
        ("NVIDIA RTX 6000 Ada Generation", "8.9"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "12.0"),
        ("NVIDIA GeForce RTX 2080 Ti", "7.5"),
        ("NVIDIA GeForce RTX 3080 Laptop GPU", "8.6"),
        ("NVIDIA GH200 480GB", "9.0"),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", "9.0"),
        ("GRID A100-10C", "8.0"),
    ],
)
def test_a_product_gives_its_capability_where_the_driver_does_not(
    name: str, capability: str
) -> None:
    said = wanted("13.0", "620.10", name=name, capability="[N/A]")[1]
    assert f"has compute capability {capability}," in said


def test_each_kind_of_gpu_is_judged_once() -> None:
    rows = [gpu(n, name=name) for n, name in enumerate(["NVIDIA A100", "NVIDIA H100"] * 4)]
    found = judged("gpu", facts(listed(*rows)), require_cuda="12.4")
    assert sum(f.split()[1] == "cuda:" for f in found) == 1
    assert sum(f.split()[1] == "capability:" for f in found) == 2


def test_nothing_is_said_of_cuda_where_none_is_wanted() -> None:
    found = [f.split()[1] for f in judged("gpu", facts(listed(gpu(0))))]
    assert found == ["driver:", "count:", "memory:"]
