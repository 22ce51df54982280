"""The parser of commands that read their arguments with argparse."""

import argparse
from typing import NoReturn


class CommandParser(argparse.ArgumentParser):
    """A parser whose errors are one line, as those of all commands are."""

    def error(self, message: str) -> NoReturn:
        """End the process with exit code 2, and say what is wrong with the arguments."""
        self.exit(2, f"kuiper: {message}; {self.prog} --help tells what there is\n")
