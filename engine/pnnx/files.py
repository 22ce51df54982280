"""A model's two files, read and written together."""

import os
from pathlib import Path

import numpy as np

from engine.errors import ArchiveError
from engine.pnnx.archive import EntryCache, read_archive
from engine.pnnx.archive_writer import write_archive
from engine.pnnx.graph import Graph
from engine.pnnx.model import Attribute
from engine.pnnx.param_reader import AttributeDeclaration, read_param
from engine.pnnx.param_writer import format_param
from engine.pnnx.tensor_type import byte_count

PathLike = str | os.PathLike[str]

MAX_ENTRY_NAME = 0xFFFF


def read(param_path: PathLike, bin_path: PathLike, cache: EntryCache | None = None) -> Graph:
    """Read a model.

    Its attributes are views of one copy of the `.bin` in memory: the files may change or go afterwards.

    Args:
        param_path: the `.param`.
        bin_path: the `.bin`.
        cache: cache of the entries of large archives; None for no cache.

    Raises:
        ParamError: the `.param` is malformed; names the line.
        ArchiveError: the `.bin` is malformed, or does not match the `.param`; names the entry.
    """
    bin_path = Path(bin_path)
    text = read_param(Path(param_path))
    entries = read_archive(bin_path, cache)
    _check_names(text.declarations, bin_path)
    for declaration in text.declarations:
        data = _take(entries, declaration, bin_path)
        digest = None if entries.digest is None else f"{declaration.entry} of {entries.digest}"
        attribute = Attribute(declaration.shape, declaration.dtype, data, digest)
        declaration.operator.attrs[declaration.key] = attribute
    for entry in entries:
        raise ArchiveError(
            bin_path, entry, "no attribute of the .param has this name", "only entries that do"
        )
    return text.graph


def write(graph: Graph, param_path: PathLike, bin_path: PathLike) -> None:
    """Write a model, so that `read` gives an equal graph.

    The files come into place when both are complete; so a graph can be written over those it was read from.

    Raises:
        ParamError: the graph is inconsistent, or holds something the format cannot express.
        ArchiveError: two attributes would share an archive entry, or its name is too long.
        OSError: the files cannot be written.
    """
    param_path, bin_path = Path(param_path), Path(bin_path)
    text = format_param(graph, param_path)
    entries = _collect_entries(graph, bin_path)
    partial_param, partial_bin = _partial(param_path), _partial(bin_path)
    try:
        partial_param.write_bytes(text.encode())
        write_archive(partial_bin, entries.items())
        partial_bin.replace(bin_path)
        partial_param.replace(param_path)
    finally:
        partial_param.unlink(missing_ok=True)
        partial_bin.unlink(missing_ok=True)


def _partial(path: Path) -> Path:
    return path.with_name(f"{path.name}.{os.getpid()}.partial")


def _check_names(declarations: list[AttributeDeclaration], path: Path) -> None:
    owners: set[str] = set()
    for declaration in declarations:
        if declaration.entry in owners:
            problem = f"two attributes of the .param share this entry, one in line {declaration.line}"
            raise ArchiveError(path, declaration.entry, problem, "one attribute an entry")
        owners.add(declaration.entry)


def _take(entries: dict[str, memoryview], declaration: AttributeDeclaration, path: Path) -> memoryview:
    """Remove and return the bytes of an attribute, checked to be as many as its type takes."""
    name, shape, dtype = declaration.entry, declaration.shape, declaration.dtype
    what = f"attribute {declaration.key!r} of line {declaration.line} of the .param"
    wanted = byte_count(shape, dtype)
    data = entries.pop(name, None)
    if data is None:
        if dtype == "null":
            return memoryview(b"")
        raise ArchiveError(path, name, f"no such entry, for {what}", f"{wanted} bytes")
    if data.nbytes != wanted:
        extents = ",".join(map(str, shape))
        raise ArchiveError(path, name, f"{data.nbytes} bytes for {what}", f"{wanted}, for ({extents}){dtype}")
    if dtype == "bool" and np.frombuffer(data, np.uint8).max(initial=0) > 1:
        raise ArchiveError(path, name, f"bytes other than 0 and 1 for {what}", "booleans")
    return data


def _collect_entries(graph: Graph, path: Path) -> dict[str, memoryview]:
    entries: dict[str, memoryview] = {}
    for operator in graph.operators:
        for key, attribute in operator.attrs.items():
            name = f"{operator.name}.{key}"
            if name in entries:
                raise ArchiveError(path, name, "two attributes would share this entry", "unique names")
            if "\0" in name or len(name.encode()) > MAX_ENTRY_NAME:
                raise ArchiveError(
                    path, name, "impossible entry name", f"at most {MAX_ENTRY_NAME} bytes, no NUL"
                )
            entries[name] = attribute.data
    return entries
