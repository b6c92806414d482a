import pytest

from orchestrator.study.processors import mixed_note, processor_kinds

AVX512 = {"numpy": ["X86_V3", "X86_V4"], "numba": "znver4", "blas": ["SkylakeX"]}
AVX2 = {"numpy": ["X86_V3"], "numba": "haswell", "blas": ["Haswell"]}


def host(name, cpu=None, arithmetic=None):
    known = {"cpu": cpu, "arithmetic": arithmetic}
    return {"host": name, **{key: value for key, value in known.items() if value}}


@pytest.mark.parametrize(
    ("hosts", "number"),
    [
        ([], 0),
        ([host("a")], 0),
        ([host("a", "EPYC 9B14", AVX512), host("b", "EPYC 9B14", AVX512)], 1),
        ([host("a", "EPYC 9B14", AVX512), host("b", "EPYC 9B15", AVX512)], 1),  # other clock, same code
        ([host("a", "EPYC 9B14", AVX512), host("b", "E5-2680", AVX2)], 2),
        ([host("a", "EPYC 9B14", AVX512), host("b", "EPYC 9B14", AVX2)], 2),  # by environment variables
        ([host("a", "EPYC 9B14"), host("b", "E5-2680")], 2),  # of older runs
        ([host("a", "EPYC 9B14"), host("b", "EPYC 9B14", AVX512)], 1),
        ([host("a", "E5-2680"), host("b", "EPYC 9B14", AVX512)], 2),
        ([host("a", "EPYC 9B14"), host("b")], 1),
    ],
)
def test_processors_are_of_one_kind_if_libraries_chose_the_same_code(hosts, number):
    assert processor_kinds(hosts) == processor_kinds(hosts[::-1]) == number
    assert bool(mixed_note(hosts)) == (number > 1)
    assert not mixed_note(hosts) or f"{number} kinds" in mixed_note(hosts)
