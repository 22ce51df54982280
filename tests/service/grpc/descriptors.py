"""Makes the descriptors that the messages are made from. Run: python -m tests.service.grpc.descriptors."""

from pathlib import Path
from tempfile import TemporaryDirectory

from grpc_tools import protoc

from service.grpc.messages import DESCRIPTORS


def compiled() -> bytes:
    """Return what `protoc` makes of the `.proto` files."""
    folder = DESCRIPTORS.parent
    sources = sorted(path.name for path in folder.glob("*.proto"))
    with TemporaryDirectory() as scratch:
        target = Path(scratch) / DESCRIPTORS.name
        code = protoc.main(["protoc", f"-I{folder}", f"--descriptor_set_out={target}", *sources])
        if code:
            raise RuntimeError(f"protoc ended with {code}")
        return target.read_bytes()


if __name__ == "__main__":
    DESCRIPTORS.write_bytes(compiled())
