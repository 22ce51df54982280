"""What `pyproject.toml` cannot say: an editable install has its byte code compiled, as any other that pip makes.

Where Python is told to write none (`PYTHONDONTWRITEBYTECODE`), each start would compile all modules again otherwise,
which takes a third as long as all else that a server does until it is ready.
"""

from compileall import compile_dir

from setuptools import setup
from setuptools.command.editable_wheel import editable_wheel


class CompiledEditableWheel(editable_wheel):
    """Makes an editable install, and the byte code of what is in it."""

    def run(self) -> None:
        """Make both."""
        super().run()
        for package in ("engine", "kuiper", "service"):
            compile_dir(package, quiet=1)


setup(cmdclass={"editable_wheel": CompiledEditableWheel})
