"""Makes this folder's files, each a sound model with one thing wrong: `python -m tests.malformed.make`.

`valid.param` and `valid.bin` are the sound model. A malformed `.param` goes with `valid.bin`, a malformed
`.bin` with `valid.param`, unless there is a file of the same name beside it.
"""

from pathlib import Path

import numpy as np

from engine.pnnx import zip_records as zr
from tests.engine.pnnx.zip_builder import Member, build, build_zip64, zip64_extra

FOLDER = Path(__file__).parent

VALID = """7767517
4 3
pnnx.Input  in   0 1 0 #0=(1,4)f32
nn.Linear   fc   1 1 0 1 bias=True in_features=4 @bias=(2)f32 @weight=(2,4)f32 $input=0 #0=(1,4)f32 #1=(1,2)f32
nn.ReLU     relu 1 1 1 2 #1=(1,2)f32 #2=(1,2)f32
pnnx.Output out  1 0 2 #2=(1,2)f32
"""

BIAS = np.array([1, 2], "<f4").tobytes()
WEIGHT = np.arange(8, dtype="<f4").tobytes()
MEMBERS = [Member("fc.bias", BIAS), Member("fc.weight", WEIGHT)]

REPLACEMENTS = {
    "magic_wrong": ("7767517", "7767518"),
    "counts_one_number": ("4 3\n", "4\n"),
    "counts_no_number": ("4 3\n", "four 3\n"),
    "counts_negative": ("4 3\n", "-4 3\n"),
    "counts_too_long": ("4 3\n", f"{10**30} 3\n"),
    "operators_huge": ("4 3\n", f"{10**17} 3\n"),
    "operators_too_few": ("4 3\n", "5 3\n"),
    "operators_too_many": ("4 3\n", "3 3\n"),
    "operands_too_few": ("4 3\n", "4 4\n"),
    "operands_huge": ("4 3\n", f"4 {10**17}\n"),
    "line_cut_off": ("relu 1 1 1 2 #1=(1,2)f32 #2=(1,2)f32", "relu 1"),
    "inputs_too_few": ("relu 1 1 1 2 #1=(1,2)f32 #2=(1,2)f32", "relu 2 1 1 2"),
    "inputs_too_many": ("relu 1 1 1 2 #1", "relu 1 1 1 2 0 #1"),
    "inputs_huge": ("relu 1 1", f"relu {10**17} 1"),
    "outputs_huge": ("relu 1 1", f"relu 1 {10**17}"),
    "inputs_negative": ("relu 1 1", "relu -1 1"),
    "inputs_no_number": ("relu 1 1", "relu 1.0 1"),
    "producer_missing": ("relu 1 1 1 2 #1=(1,2)f32", "relu 1 1 9 2"),
    "producer_twice": ("relu 1 1 1 2 #1=(1,2)f32 #2=(1,2)f32", "relu 1 1 1 1"),
    "output_twice": ("relu 1 1 1 2", "relu 1 2 1 2 2"),
    "operator_name_twice": ("nn.ReLU     relu", "nn.ReLU     fc"),
    "parameter_twice": ("bias=True", "bias=True bias=False"),
    "parameter_too_large": ("in_features=4", f"in_features={2**63}"),
    "attribute_twice": ("@bias=(2)f32", "@bias=(2)f32 @bias=(2)f32"),
    "attribute_without_type": ("@bias=(2)f32", "@bias"),
    "attribute_type_malformed": ("@bias=(2)f32", "@bias=2f32"),
    "attribute_type_unknown": ("@bias=(2)f32", "@bias=(2)f8"),
    "attribute_extent_unknown": ("@bias=(2)f32", "@bias=(?)f32"),
    "attribute_extent_negative": ("@bias=(2)f32", "@bias=(-2)f32"),
    "attribute_extent_no_number": ("@bias=(2)f32", "@bias=(two)f32"),
    "attribute_shape_overflows": ("@bias=(2)f32", f"@bias=({2**32},{2**32})f32"),
    "attribute_shape_overflows_at_zero": ("@bias=(2)f32", f"@bias=(0,{2**62},{2**62})f32"),
    "attribute_rank_too_high": ("@bias=(2)f32", f"@bias=({','.join('1' * 65)})f32"),
    "attribute_size_wrong": ("@bias=(2)f32", "@bias=(3)f32"),
    "attribute_entry_missing": ("@bias=(2)f32", "@bias=(2)f32 @scale=(2)f32"),
    "attribute_entry_unknown": ("@bias=(2)f32 ", ""),
    "operand_type_unknown": ("#2=(1,2)f32", "#2=(1,2)f8"),
    "operand_extent_negative": ("#2=(1,2)f32", "#2=(1,-2)f32"),
    "operand_shape_overflows": ("#2=(1,2)f32", f"#2=({10**18},{10**18})f32"),
    "operand_foreign": ("#2=(1,2)f32", "#0=(1,4)f32"),
    "input_name_foreign": ("$input=0", "$input=2"),
    "input_name_without_operand": ("$input=0", "$input"),
    "input_name_twice": ("$input=0", "$input=0 $input=0"),
}


def make_params() -> dict[str, bytes]:
    """Return every malformed `.param` by name."""
    files = {name: VALID.replace(*change, 1).encode() for name, change in REPLACEMENTS.items()}
    shared = VALID.replace("nn.ReLU     relu 1 1 1 2", "nn.PReLU fc.sub 1 1 1 2 @w=(2)f32")
    return files | {
        "empty": b"",
        "counts_missing": b"7767517\n",
        "not_utf8": VALID.replace("relu", "rel\xfc").encode("latin-1"),
        "attributes_share_entry": shared.replace("@bias=(2)f32", "@bias=(2)f32 @sub.w=(2)f32").encode(),
    }


def make_archives() -> dict[str, bytes]:
    """Return every malformed `.bin` by name."""
    whole = build(MEMBERS)
    return _make_broken_ends(whole) | _make_broken_directories(whole) | _make_broken_entries()


def _make_broken_ends(whole: bytes) -> dict[str, bytes]:
    return {
        "archive_empty": b"",
        "not_a_zip": b"not a zip archive, but long enough to be one",
        "truncated": whole[:-30],
        "disks": build(MEMBERS, end={"disk": 1}),
        "directory_outside": build(MEMBERS, end={"start": 2**31}),
        "directory_size_wrong": build(MEMBERS, end={"size": 10}),
        "entries_huge": build(MEMBERS, end={"entries": 60000, "entries_here": 60000}),
        "entries_too_few": build(MEMBERS, end={"entries": 1, "entries_here": 1}),
        "zip64_missing": build(MEMBERS, end={"start": zr.FULL_32}),
        "zip64_entries_huge": build_zip64(MEMBERS, end={"entries": 2**60, "entries_here": 2**60}),
        "zip64_end_outside": build_zip64(MEMBERS, locator={"start": 2**63}),
        "zip64_end_length_wrong": build_zip64(MEMBERS, end={"length": 2**63}),
        "zip64_disks": build_zip64(MEMBERS, end={"disk": 3}),
    }


def _make_broken_directories(whole: bytes) -> dict[str, bytes]:
    bias = MEMBERS[0]
    return {
        "directory_mark_wrong": whole.replace(zr.CENTRAL_SIGNATURE, b"PK\1\3", 1),
        "directory_entry_cut_off": build([bias, Member("fc.weight", WEIGHT, central={"comment_length": 9})]),
        "entry_twice": build([bias, bias]),
        "entry_missing": build([bias]),
        "entry_unknown": build([*MEMBERS, Member("fc.scale", BIAS)]),
        "entry_unknown_folder": build([*MEMBERS, Member("fc/", b"")]),
        "entry_on_other_disk": build([bias, Member("fc.weight", WEIGHT, central={"disk": 1})]),
        "entry_outside": build([bias, Member("fc.weight", WEIGHT, central={"header_start": 2**31})]),
        "name_not_utf8": build([bias, Member(b"fc.w\xff", WEIGHT)]),
        "zip64_extra_missing": build([bias, Member("fc.weight", WEIGHT, central={"size": zr.FULL_32})]),
        "zip64_extra_outside": build(
            [
                bias,
                Member("fc.weight", WEIGHT, {"header_start": zr.FULL_32}, central_extra=zip64_extra(2**63)),
            ]
        ),
        "zip64_size_outside": build(
            [
                bias,
                Member(
                    "fc.weight",
                    WEIGHT,
                    {"size": zr.FULL_32, "packed": zr.FULL_32},
                    central_extra=zip64_extra(2**63, 2**63),
                ),
            ]
        ),
        "sizes_differ": build([bias, Member("fc.weight", WEIGHT, central={"packed": 4})]),
        "gap": build([bias, Member("fc.weight", WEIGHT, before=b"stray")]),
        "gap_before_directory": build([bias, Member("fc.weight", WEIGHT, after=b"stray")]),
        "overlap": build([bias, Member("fc.weight", WEIGHT, {"header_start": 0})]),
        "overlap_inside": _overlapping(),
    }


def _make_broken_entries() -> dict[str, bytes]:
    bias = MEMBERS[0]
    changes: dict[str, tuple[dict[str, int], dict[str, int]]] = {
        "compressed": ({"method": 8}, {"method": 8}),
        "compressed_in_own_header": ({}, {"method": 8}),
        "encrypted": ({"flags": 1}, {"flags": 1}),
        "size_differs_in_own_header": ({}, {"size": 4}),
        "checksum_differs_in_own_header": ({}, {"checksum": 4}),
        "damaged": ({"checksum": 4}, {"checksum": 4}),
    }
    files = {name: build([bias, Member("fc.weight", WEIGHT, *change)]) for name, change in changes.items()}
    short = build([bias, Member("fc.weight", WEIGHT[:-4])])
    renamed = build(MEMBERS).replace(b"fc.weight", b"fc.height", 1)
    return files | {"too_short": short, "name_differs_in_own_header": renamed}


def _overlapping() -> bytes:
    """Return an archive whose first entry's data is the whole of the second entry."""
    inner = build([Member("fc.weight", WEIGHT)])
    record = inner[: inner.index(zr.CENTRAL_SIGNATURE)]
    outer = build([Member("fc.bias", record)])
    directory = outer.index(zr.CENTRAL_SIGNATURE)
    start = directory - len(record)
    entry = inner[inner.index(zr.CENTRAL_SIGNATURE) : inner.index(zr.END_SIGNATURE)]
    second = entry.replace(bytes(4) + b"fc.weight", start.to_bytes(4, "little") + b"fc.weight")
    entries = outer[directory : outer.index(zr.END_SIGNATURE)] + second
    end = zr.END_RECORD.pack(zr.END_SIGNATURE, 0, 0, 2, 2, len(entries), directory, 0)
    return outer[:directory] + entries + end


def make_pairs() -> dict[str, bytes]:
    """Return the models in which both files had to change."""
    param = VALID.replace("@bias=(2)f32", "@bias=(2)bool").encode()
    archive = build([Member("fc.bias", b"\1\2"), MEMBERS[1]])
    return {"bool_not_0_or_1.param": param, "bool_not_0_or_1.bin": archive}


def make_all() -> dict[str, bytes]:
    """Return the content of every file of this folder by file name."""
    files = {"valid.param": VALID.encode(), "valid.bin": build(MEMBERS)} | make_pairs()
    files |= {f"{name}.param": content for name, content in make_params().items()}
    return files | {f"{name}.bin": content for name, content in make_archives().items()}


def main() -> None:
    for name, content in make_all().items():
        (FOLDER / name).write_bytes(content)


if __name__ == "__main__":
    main()
