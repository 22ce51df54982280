"""Contents of a `.param`: operators, parameters, and attributes with their bytes."""

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from engine.dtypes import PNNX_STORAGE, Array, pnnx_name
from engine.errors import PnnxError
from engine.pnnx.tensor_type import ELEMENT_SIZES, byte_count

ParameterValue: TypeAlias = (
    bool
    | int
    | float
    | complex
    | str
    | tuple[int, ...]
    | tuple[float, ...]
    | tuple[complex, ...]
    | tuple[str, ...]
    | None
)
"""A parameter: null, bool, int, float, complex, string, or a non-empty array of one of the last four."""


class Attribute:
    """A tensor stored in the `.bin`, such as a weight.

    Two attributes are equal when type, shape and bytes are.

    Attributes:
        shape: extents.
        dtype: PNNX type name of the stored elements.
        data: the elements in row-major order, little-endian; read-only. Of an attribute that was read from a
            file it is a view of the block that holds them all, which stays as long as a view of it is alive.
        digest: digest of `data`, if known without reading it, else None.
    """

    __slots__ = ("data", "digest", "dtype", "shape")

    def __init__(
        self, shape: tuple[int, ...], dtype: str, data: bytes | memoryview, digest: str | None = None
    ) -> None:
        """Check that `data` is what `shape` and `dtype` take.

        Raises:
            PnnxError: the type is unknown, an extent negative, or the number of bytes another.
        """
        if dtype not in ELEMENT_SIZES:
            raise PnnxError(
                f"attribute type {dtype!r} is unknown; expected one of {', '.join(ELEMENT_SIZES)}"
            )
        if any(extent < 0 for extent in shape):
            raise PnnxError(f"attribute shape {shape} has a negative extent")
        view = memoryview(data).toreadonly().cast("B")
        try:
            wanted = byte_count(shape, dtype)
        except ValueError as error:
            raise PnnxError(str(error)) from error
        if view.nbytes != wanted:
            raise PnnxError(f"{view.nbytes} bytes for an attribute of {shape} {dtype}; expected {wanted}")
        self.shape = shape
        self.dtype = dtype
        self.data = view
        self.digest = digest

    @classmethod
    def from_array(cls, array: npt.ArrayLike) -> "Attribute":
        """Store a copy of an array under the PNNX type that is its dtype.

        Raises:
            PnnxError: PNNX has no type for the dtype.
        """
        source = np.asarray(array)
        little = source.astype(source.dtype.newbyteorder("<"))
        return cls(source.shape, pnnx_name(little.dtype), little.tobytes())

    def array(self) -> Array:
        """Return the elements as they are stored: read-only, without a copy, possibly unaligned.

        bf16 comes as its bits in uint16, c32 as pairs of float16: see `engine.dtypes.widen`.

        Raises:
            PnnxError: the attribute has no type (`null`), so it has no elements either.
        """
        if self.dtype == "null":
            raise PnnxError("an attribute of type null has no elements")
        return np.frombuffer(self.data, PNNX_STORAGE[self.dtype]).reshape(self.shape)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Attribute):
            return NotImplemented
        same_type = self.shape == other.shape and self.dtype == other.dtype
        return same_type and np.array_equal(
            np.frombuffer(self.data, np.uint8), np.frombuffer(other.data, np.uint8)
        )

    __hash__ = None  # type: ignore[assignment]  # compared by content, which may be large

    def __repr__(self) -> str:
        return f"Attribute(shape={self.shape}, dtype={self.dtype!r})"


@dataclass
class Operator:
    """One line of a `.param`.

    Attributes:
        type: PNNX type, such as `nn.Conv2d`.
        name: unique in its graph.
        inputs: names of the operands read, in order; one operand may be read more than once.
        outputs: names of the operands produced, in order.
        params: `key=value`, in file order.
        attrs: `@key=(shape)dtype`, in file order.
        input_names: `$key=operand`: key -> operand name, in file order; several keys may name one operand.
        spellings: parameter key -> the text its value had in the file. No part of the operator's value: the
            writer keeps to it, for as long as it still means the parameter's value.
    """

    type: str
    name: str
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    params: dict[str, ParameterValue] = field(default_factory=dict)
    attrs: dict[str, Attribute] = field(default_factory=dict)
    input_names: dict[str, str] = field(default_factory=dict)
    spellings: dict[str, str] = field(default_factory=dict, compare=False, repr=False)
