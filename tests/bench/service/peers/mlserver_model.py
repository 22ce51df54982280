"""MLServer's model. Its HTTP interface takes no binary data; bytes and images come in base64."""

# mypy: disallow-subclassing-any=False

from mlserver import MLModel
from mlserver.codecs import Base64Codec, NumpyCodec
from mlserver.types import InferenceRequest, InferenceResponse

from tests.bench.service.peers.session import Session


class Model(MLModel):
    """Numbers, bytes or an encoded image in, numbers out."""

    async def load(self) -> bool:
        """Load the model."""
        self.session = Session()
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        """Answer a request."""
        tensor = payload.inputs[0]
        if tensor.name == "numbers":
            array = NumpyCodec.decode_input(tensor)
        elif tensor.name == "bytes":
            array = self.session.from_bytes(Base64Codec.decode_input(tensor)[0])
        else:
            array = self.session.from_image(Base64Codec.decode_input(tensor)[0])
        output = NumpyCodec.encode_output("scores", self.session.run(array))
        return InferenceResponse(model_name=self.name, outputs=[output])
