"""Inputs to try a program on."""

import subprocess
import sys


def test_random_numbers_are_imported_once_a_program_is_tried() -> None:
    code = "import sys, engine.compiler.program.verifier; print('numpy.random' in sys.modules)"
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert ended.stdout == "False\n"
