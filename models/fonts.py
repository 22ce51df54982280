"""The fonts that printed digits are drawn in: some to train on, and others that only measure.

Matplotlib bundles the first three families; the others are Debian packages, which `apt-get install` installs.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
from PIL import Image, ImageDraw, ImageFont

FOLDERS = (Path("/usr/share/fonts"), Path.home() / ".local/share/fonts")
LEAST_TRAINED = 25  # families without which nothing is trained
MAX_THICKER = 6  # pixels that the outline of a glyph, 120 pixels high, is moved outwards
DRAWN = 160  # pixels of the size that glyphs are drawn in before they get their own

TRAINED = {
    "matplotlib": ("DejaVuSans", "DejaVuSerif", "STIXGeneral", "cmr10", "cmss10", "cmtt10", "cmb10"),
    "fonts-lato": ("Lato-",),
    "fonts-roboto-unhinted": ("Roboto-", "RobotoCondensed-"),
    "fonts-roboto-slab": ("RobotoSlab-",),
    "fonts-freefont-ttf": ("FreeSans", "FreeSerif", "FreeMono"),
    "fonts-texgyre": ("texgyre",),
    "fonts-linuxlibertine": ("LinLibertine_R", "LinBiolinum_R"),
    "fonts-crosextra-carlito": ("Carlito-",),
    "fonts-crosextra-caladea": ("Caladea-",),
    "fonts-comic-neue": ("ComicNeue-",),
    "fonts-cabin": ("Cabin-",),
    "fonts-quicksand": ("Quicksand-",),
    "fonts-inconsolata": ("Inconsolata",),
    "fonts-dosis": ("Dosis-",),
    "fonts-comfortaa": ("Comfortaa-",),
    "fonts-jura": ("Jura-",),
    "fonts-play": ("Play-",),
    "fonts-oldstandard": ("OldStandard-",),
    "fonts-adf-gillius": ("GilliusADF-",),
    "fonts-adf-universalis": ("UniversalisADFStd-",),
    "fonts-adf-baskervald": ("BaskervaldADFStd",),
    "fonts-averia-sans-gwf": ("AveriaSansGWF-",),
    "fonts-hack": ("Hack-",),
    "fonts-jetbrains-mono": ("JetBrainsMono-",),
    "fonts-go": ("Go-",),
    "fonts-tuffy": ("Tuffy",),
    "fonts-sil-andika": ("Andika-",),
    "fonts-bebas-neue": ("BebasNeue-",),
    "fonts-yanone-kaffeesatz": ("YanoneKaffeesatz-",),
    "fonts-ocr-b": ("OCRB",),
    "fonts-humor-sans": ("Humor-Sans",),
    "fonts-dkg-handwriting": ("dkg",),
    "fonts-femkeklaver": ("femkeklaver",),
}
"""Beginnings of the names of font files to train on, by what brings them."""

MEASURED = {
    "fonts-liberation": ("LiberationSans", "LiberationSerif", "LiberationMono"),
    "fonts-open-sans": ("OpenSans-",),
    "fonts-noto-core": ("NotoSans-", "NotoSerif-"),
    "fonts-cantarell": ("Cantarell-",),
    "fonts-paratype": ("PTS", "PTF", "PTM"),
    "fonts-clear-sans": ("ClearSans-",),
    "fonts-firacode": ("FiraCode-",),
    "fonts-sil-charis": ("CharisSIL-",),
    "fonts-sil-gentiumplus": ("GentiumPlus-",),
    "fonts-b612": ("B612",),
    "fonts-courier-prime": ("Courier Prime",),
}
"""The same of those that nothing is trained on."""


def find_fonts(kinds: dict[str, tuple[str, ...]], folders: list[Path], least: int) -> list[list[Path]]:
    """Return the font files of each family that is there, in the order of their names.

    Raises:
        SystemExit: less than `least` families are there; the message names what to install.
    """
    files: dict[str, Path] = {}
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.suffix in {".ttf", ".otf"}:
                files.setdefault(path.stem, path)
    families = [(source, family) for source, names in kinds.items() for family in names]
    found = {
        one: [files[stem] for stem in sorted(files) if stem.startswith(one[1]) and has_digits(files[stem])]
        for one in families
    }
    present = [fonts for fonts in found.values() if fonts]
    if len(present) < least:
        missing = " ".join(dict.fromkeys(source for (source, _), fonts in found.items() if not fonts))
        raise SystemExit(
            f"{', '.join(map(str, folders))}: {len(present)} of {len(families)} font families found, "
            f"expected at least {least}; install {missing}"
        )
    print(f"{sum(map(len, present))} fonts of {len(present)} families")
    return present


def draw_glyphs(folders: list[Path], count: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Return printed digits to train on, 0 to 9 in turn, as `glyph` draws them: of each family equally many.

    One in two has a thicker outline.

    Raises:
        SystemExit: too few fonts are there; the message names what to install.
    """
    bundled = Path(matplotlib.get_data_path()) / "fonts"
    families = find_fonts(TRAINED, [*folders, bundled], LEAST_TRAINED)
    drawn = []
    for number in range(count):
        family = families[rng.integers(len(families))]
        thicker = int(rng.integers(MAX_THICKER + 1)) if rng.random() < 0.5 else 0
        drawn.append(glyph(family[rng.integers(len(family))], number % 10, thicker))
    return drawn


def has_digits(font: Path) -> bool:
    """Return whether a font draws digits; some of DejaVu's leave them blank."""
    return ImageFont.truetype(str(font), 20).getmask("0").getbbox() is not None


def glyph(font: Path, digit: int, thicker: int = 0) -> np.ndarray:
    """Return a printed digit, cut to its ink: (rows, columns) float32 of values 0 to 1, about 120 rows.

    Args:
        font: the file.
        digit: 0 to 9.
        thicker: pixels that the outline is moved outwards.
    """
    canvas = Image.new("L", (3 * DRAWN, 3 * DRAWN))
    face = ImageFont.truetype(str(font), DRAWN)
    ImageDraw.Draw(canvas).text((DRAWN, DRAWN), str(digit), fill=255, font=face, stroke_width=thicker)
    return np.asarray(canvas.crop(canvas.getbbox()), np.float32) / 255
