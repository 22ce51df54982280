"""Fonts to train on and fonts of the exam are apart, found by name, and named where they are missing."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import matplotlib
import pytest

FILE = Path(__file__).parents[2] / "models" / "fonts.py"
BUNDLED = Path(matplotlib.get_data_path()) / "fonts"


def load() -> Any:
    spec = spec_from_file_location("fonts", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MODULE = load()


def test_no_font_of_the_exam_is_trained_on() -> None:
    trained, measured = (
        [name for names in kinds.values() for name in names] for kinds in (MODULE.TRAINED, MODULE.MEASURED)
    )
    assert not [(a, b) for a in trained for b in measured if a.startswith(b) or b.startswith(a)]


def test_families_that_are_bundled_are_found() -> None:
    families = MODULE.find_fonts(MODULE.TRAINED, [BUNDLED], 7)
    assert len(families) == 7
    assert [font.stem for font in families[3]] == ["cmr10"]


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        SystemExit, match=r"0 of 3 font families found, expected at least 2; install lato roboto"
    ):
        MODULE.find_fonts({"lato": ("Lato-",), "roboto": ("Roboto-", "RobotoCondensed-")}, [tmp_path], 2)


def test_a_glyph_is_cut_to_its_ink_and_grows_with_its_outline() -> None:
    font = BUNDLED / "ttf" / "DejaVuSans.ttf"
    usual, thick = MODULE.glyph(font, 1), MODULE.glyph(font, 1, 4)
    for edge in (usual[0], usual[-1], usual[:, 0], usual[:, -1]):
        assert edge.max() > 0
    assert (thick.shape[0] - usual.shape[0], thick.shape[1] - usual.shape[1]) == (8, 8)
