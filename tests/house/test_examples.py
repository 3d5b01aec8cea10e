import runpy
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_two_moons_are_repaired(tmp_path):
    example = runpy.run_path(str(EXAMPLES / "plot_two_moons.py"))
    before, after = example["main"](tmp_path / "moons.png")
    assert after < 0.8 * before
    assert (tmp_path / "moons.png").stat().st_size > 10_000
