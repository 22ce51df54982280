"""Every malformed file gets an error of its own, which names the place and what was expected there."""

from pathlib import Path

import pytest

from engine.errors import ArchiveError, ParamError
from engine.pnnx import read
from tests.cases import check_each
from tests.malformed.make import make_all

FOLDER = Path(__file__).parent

PARAMS = {
    "attribute_extent_negative": "line 4: operator 'fc', '@bias=(-2)f32': '-2' is a negative extent; expected a",
    "attribute_extent_no_number": "line 4: operator 'fc', '@bias=(two)f32': 'two' is no extent; expected a number",
    "attribute_extent_unknown": "line 4: operator 'fc', '@bias=(?)f32': an unknown extent; expected only numbers",
    "attribute_rank_too_high": "65 dimensions; expected at most 64",
    "attribute_shape_overflows": "line 4: operator 'fc', '@bias=(4294967296,4294967296)f32': the size of shape",
    "attribute_shape_overflows_at_zero": "overflows; expected at most 2**63 - 1 bytes",
    "attribute_twice": "line 4: operator 'fc', '@bias=(2)f32': the operator has this attribute twice; expected",
    "attribute_type_malformed": "'2f32' is not a type; expected a shape and a type such as (1,3,?,224)f32",
    "attribute_type_unknown": "line 4: operator 'fc', '@bias=(2)f8': unknown type 'f8'; expected one of null, f32",
    "attribute_without_type": "line 4: operator 'fc', '@bias': 'bias' is not a type; expected a shape and a type",
    "counts_missing": ": the file ends after the magic number; expected operator and operand count",
    "counts_negative": "line 2: wrong count '-4'; expected a number from 0",
    "counts_no_number": "line 2: wrong count 'four'; expected a number from 0",
    "counts_one_number": "line 2: one number; expected operator count and operand count",
    "counts_too_long": "line 2: wrong count '1000000000000000000000000000000'; expected a number from 0 to",
    "empty": ": the file is empty; expected the magic number 7767517",
    "input_name_foreign": "line 4: operator 'fc', '$input=2': the operator has no input '2'; expected one",
    "input_name_twice": "line 4: operator 'fc', '$input=0': the operator has this input name twice; expected",
    "input_name_without_operand": "line 4: operator 'fc', '$input': the operator has no input ''; expected one",
    "inputs_huge": "line 5: 4 words after the counts; expected 100000000000000000 inputs and 1 outputs",
    "inputs_negative": "line 5: wrong count '-1'; expected a number from 0",
    "inputs_no_number": "line 5: wrong count '1.0'; expected a number from 0",
    "inputs_too_few": "line 5: 2 words after the counts; expected 2 inputs and 1 outputs",
    "inputs_too_many": "line 5: operand '0' after the last output; expected as many operands as the counts say",
    "line_cut_off": "line 5: an operator of 3 words; expected type, name, number of inputs, number of outputs",
    "magic_wrong": "line 1: wrong magic number '7767518'; expected 7767517",
    "not_utf8": "line 5: byte 0xfc is not UTF-8; expected UTF-8 text",
    "operand_extent_negative": "line 5: operator 'relu', '#2=(1,-2)f32': '-2' is a negative extent; expected a",
    "operand_foreign": "line 5: operator 'relu', '#0=(1,4)f32': the operator has no operand '0'; expected an",
    "operand_shape_overflows": "line 5: operator 'relu', '#2=(1000000000000000000,1000000000000000000)f32': the",
    "operand_type_unknown": "line 5: operator 'relu', '#2=(1,2)f8': unknown type 'f8'; expected one of null",
    "operands_huge": "line 2: 3 operands in the file; expected 100000000000000000, as this line says",
    "operands_too_few": "line 2: 3 operands in the file; expected 4, as this line says",
    "operator_name_twice": "line 5: second operator named 'fc'; expected unique operator names",
    "operators_huge": "line 2: 4 operators in the file; expected 100000000000000000, as this line says",
    "operators_too_few": "line 2: 4 operators in the file; expected 5, as this line says",
    "operators_too_many": "line 6: another operator; expected 3, as line 2 says",
    "output_twice": "line 5: operand '2' is produced by 'relu' and again by 'relu'; expected one producer",
    "outputs_huge": "line 5: 4 words after the counts; expected 1 inputs and 100000000000000000 outputs",
    "parameter_too_large": "integer '9223372036854775808' does not fit 64 bits; expected -2**63 to 2**63 - 1",
    "parameter_twice": "line 4: operator 'fc', 'bias=False': the operator has this parameter twice; expected it",
    "producer_missing": "line 5: operator 'relu' reads operand '9', which no operator produces; expected one",
    "producer_twice": "line 5: operand '1' is produced by 'fc' and again by 'relu'; expected one producer",
}

PARAMS_AGAINST_THE_ARCHIVE = {
    "attribute_entry_missing": "entry 'fc.scale': no such entry, for attribute 'scale' of line 4 of the .param",
    "attribute_entry_unknown": "entry 'fc.bias': no attribute of the .param has this name; expected only entries",
    "attribute_size_wrong": "entry 'fc.bias': 8 bytes for attribute 'bias' of line 4 of the .param; expected 12",
    "attributes_share_entry": "entry 'fc.sub.w': two attributes of the .param share this entry, one in line 5",
}

ARCHIVES = {
    "archive_empty": ": truncated to 0 bytes; expected a zip archive",
    "bool_not_0_or_1": "entry 'fc.bias': bytes other than 0 and 1 for attribute 'bias' of line 4",
    "checksum_differs_in_own_header": "entry 'fc.weight': size or checksum 4 in the entry's own header; expected",
    "compressed": "entry 'fc.weight': the entry is compressed (method 8); expected a stored one",
    "compressed_in_own_header": "entry 'fc.weight': the entry is compressed (method 8); expected a stored one",
    "damaged": "entry 'fc.weight': the data is damaged; expected CRC-32 00000004",
    "directory_entry_cut_off": ": the directory entry at byte 169 is cut off; expected 18 bytes more",
    "directory_mark_wrong": ": no directory entry at byte 116; expected 2 of them",
    "directory_outside": ": a directory from byte 2147483648 to 2147483756; expected it to end at byte 224",
    "directory_size_wrong": ": a directory from byte 116 to 126; expected it to end at byte 224",
    "disks": ": the archive spans several disks; expected one file",
    "encrypted": "entry 'fc.weight': the entry is encrypted; expected a plain one",
    "entries_huge": ": 60000 entries in a directory of 108 bytes; expected at most 2",
    "entries_too_few": ": 2 directory entries; expected 1, as the end record says",
    "entry_missing": "entry 'fc.weight': no such entry, for attribute 'weight' of line 4 of the .param; expected",
    "entry_on_other_disk": "entry 'fc.weight': the entry is on another disk; expected one file",
    "entry_outside": "entry 'fc.weight': no entry at byte 2147483648; expected its header there",
    "entry_twice": "entry 'fc.bias': the archive has this entry twice; expected unique names",
    "entry_unknown": "entry 'fc.scale': no attribute of the .param has this name; expected only entries that do",
    "entry_unknown_folder": "entry 'fc/': no attribute of the .param has this name; expected only entries that do",
    "gap": "entry 'fc.weight': 5 bytes before the entry belong to no entry; expected entries side by side",
    "gap_before_directory": ": 5 bytes before the directory belong to no entry; expected entries side by side",
    "name_differs_in_own_header": "entry 'fc.weight': the entry's own header has another name; expected that of",
    "name_not_utf8": r"entry 'fc.w\\xff': the name is not UTF-8; expected UTF-8",
    "not_a_zip": ": not a zip archive; expected a zip end record in the last bytes of the file",
    "overlap": "entry 'fc.weight': the entry's own header has another name; expected that of the directory",
    "overlap_inside": "entry 'fc.weight': the entry overlaps what is before it by 71 bytes; expected no overlap",
    "size_differs_in_own_header": "entry 'fc.weight': size or checksum 4 in the entry's own header; expected 32",
    "sizes_differ": "entry 'fc.weight': 4 bytes packed and 32 unpacked; expected the same number",
    "too_short": "entry 'fc.weight': 28 bytes for attribute 'weight' of line 4 of the .param; expected 32, for",
    "truncated": ": truncated; expected a zip end record in the last bytes of the file",
    "zip64_disks": ": the archive spans several disks; expected one file",
    "zip64_end_length_wrong": ": a zip64 end record of 9223372036854775808 bytes; expected 44 bytes",
    "zip64_end_outside": ": no zip64 end record at byte 9223372036854775808; expected it before its locator",
    "zip64_entries_huge": ": 1152921504606846976 entries in a directory of 108 bytes; expected at most 2",
    "zip64_extra_missing": "entry 'fc.weight': the zip64 extra field is missing or too short; expected a wide",
    "zip64_extra_outside": "entry 'fc.weight': no entry at byte 9223372036854775808; expected its header there",
    "zip64_missing": ": the zip64 records are missing; expected them before the end record",
    "zip64_size_outside": "entry 'fc.weight': the data ends at byte 9223372036854775892; expected at most 266",
}


def beside(name: str, suffix: str) -> Path:
    own = FOLDER / f"{name}.{suffix}"
    return own if own.exists() else FOLDER / f"valid.{suffix}"


def test_a_malformed_param_names_file_and_line() -> None:
    def check(name: str) -> None:
        with pytest.raises(ParamError) as caught:
            read(FOLDER / f"{name}.param", FOLDER / "valid.bin")
        message = str(caught.value)
        assert message.startswith(f"{FOLDER / name}.param")
        assert PARAMS[name] in message
        assert "expected" in message

    check_each(PARAMS, check)


@pytest.mark.parametrize("name", PARAMS_AGAINST_THE_ARCHIVE)
def test_a_param_at_odds_with_its_archive_names_archive_and_entry(name: str) -> None:
    with pytest.raises(ArchiveError) as caught:
        read(FOLDER / f"{name}.param", FOLDER / "valid.bin")
    message = str(caught.value)
    assert message.startswith(f"{FOLDER / 'valid.bin'}, {PARAMS_AGAINST_THE_ARCHIVE[name]}")
    assert "expected" in message


def test_a_malformed_archive_names_file_and_entry() -> None:
    def check(name: str) -> None:
        with pytest.raises(ArchiveError) as caught:
            read(beside(name, "param"), FOLDER / f"{name}.bin")
        message = str(caught.value)
        assert message.startswith(f"{FOLDER / name}.bin")
        assert ARCHIVES[name] in message
        assert "expected" in message

    check_each(ARCHIVES, check)


def test_the_sound_model_they_are_made_from_is_read() -> None:
    graph = read(FOLDER / "valid.param", FOLDER / "valid.bin")
    assert [operator.name for operator in graph.operators] == ["in", "fc", "relu", "out"]


def test_the_files_are_those_that_make_writes_and_each_is_tested() -> None:
    files = {path.name: path.read_bytes() for path in FOLDER.iterdir() if path.suffix in (".param", ".bin")}
    assert files == make_all()
    tested = {*PARAMS, *PARAMS_AGAINST_THE_ARCHIVE, *ARCHIVES, "valid"}
    assert {Path(name).stem for name in files} == tested
