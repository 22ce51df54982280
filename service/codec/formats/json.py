"""`application/json`: images in base64, or tensors as nested lists."""

import re
from collections.abc import Iterator, Mapping
from time import perf_counter_ns
from typing import Any

from service.codec.decoded import Decoded
from service.codec.format import Clock, Example, JsonSchema, RequestBody, ResponseFormat, Sample, curl_file
from service.codec.formats.image import image_text
from service.codec.json_body import decode_json
from service.codec.json_text import dump_json, dump_pieces, join_small
from service.codec.options import OPTIONS_SCHEMA
from service.codec.response import ResponseDocument, complete_timing
from service.config.limits import Limits

JSON_TYPE = "application/json"

_TENSOR_SCHEMA: JsonSchema = {
    "type": "object",
    "required": ["data"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string", "description": "operator or operand name of the input"},
        "shape": {"type": "array", "items": {"type": "integer", "minimum": 0}},
        "dtype": {"type": "string", "description": "f32, float32, FP32, …"},
        "data": {"description": "numbers, nested or flat"},
    },
}
_BODY_SCHEMA: JsonSchema = {
    "type": "object",
    "description": "exactly one of image, images, text, texts and inputs",
    "additionalProperties": False,
    "properties": {
        "image": {"type": "string", "description": "an encoded image as base64 or as a data: URL"},
        "images": {"type": "array", "items": {"type": "string"}, "description": "a batch of images"},
        "text": {"type": "string", "description": "a text, for a model that takes texts"},
        "texts": {"type": "array", "items": {"type": "string"}, "description": "a batch of texts"},
        "inputs": {
            "anyOf": [
                {"type": "array", "items": _TENSOR_SCHEMA},
                {
                    "type": "object",
                    "description": "numbers, or encoded images in base64, by name of the input",
                },
            ]
        },
        "parameters": {"type": "object", "additionalProperties": False, "properties": OPTIONS_SCHEMA},
    },
}


class JsonFormat(ResponseFormat):
    """JSON, which can hold any request and any response."""

    name = "json"
    media_types = (JSON_TYPE,)
    aliases = ("text/json",)
    signatures = (re.compile(rb"(\xef\xbb\xbf)?[ \t\r\n]{0,4096}+\{"),)

    def decode(self, body: RequestBody) -> Decoded:
        """Read images or tensors, and the options."""
        return decode_json(
            body.data, body.charset, body.ports, body.config, body.limits, dynamic_batch=body.dynamic_batch
        )

    def encode(
        self,
        response: ResponseDocument,
        received_ns: int,
        clock: Clock = perf_counter_ns,
        limits: Limits | None = None,
    ) -> list[bytes]:
        """Serialise a response as JSON.

        `timing.encode_ms` is the time that all other members take: each is serialised on its own, and `timing` last,
        before they are put in the response's order.
        """
        started = clock()
        members = {key: dump_pieces(value, limits) for key, value in response.items() if key != "timing"}
        members["timing"] = [dump_json(complete_timing(response, received_ns, started, clock()))]
        if max(map(len, members.values())) > 1:
            return join_small(_members(response, members), limits)
        return [b"{" + b",".join([b'"%b":%b' % (key.encode(), members[key][0]) for key in response]) + b"}"]

    def schema(self) -> JsonSchema:
        """Return the schema of a request."""
        return _BODY_SCHEMA

    def response_schema(self) -> JsonSchema:
        """Return the schema of a response."""
        return {"$ref": "#/components/schemas/InferenceResponse"}

    def examples(self, sample: Sample) -> Iterator[Example]:
        """Yield an image, and tensors."""
        if sample.image is not None:
            image = {"image": image_text(sample.image)}
            yield Example(JSON_TYPE, "image", image, curl_file(JSON_TYPE, "image.json"))
        if sample.text is not None:
            yield Example(JSON_TYPE, "texts", {"texts": [sample.text]}, curl_file(JSON_TYPE, "texts.json"))
        if sample.arrays:
            inputs: list[dict[str, Any]] = [
                {
                    "name": name,
                    "shape": list(array.shape),
                    "dtype": str(array.dtype),
                    "data": array.ravel().tolist(),
                }
                for name, array in sample.arrays.items()
            ]
            yield Example(JSON_TYPE, "tensors", {"inputs": inputs}, curl_file(JSON_TYPE, "tensors.json"))


def _members(response: ResponseDocument, pieces: Mapping[str, list[bytes]]) -> Iterator[bytes]:
    """Yield a response whose members are serialised, in its own order."""
    lead = b"{"
    for key in response:
        yield b"%b%b:" % (lead, dump_json(key))
        yield from pieces[key]
        lead = b","
    yield b"}"
