"""Decodes request bodies into arrays and encodes results as response bodies, without sockets, framework or state.

In:

    decode(body, content_type, ports, config, limits) -> Decoded    inputs by operand name, and the body's options
    parse_options(query) -> Options                                 trace, capture, … of a query string
    Options.overridden_by(options)                                  the query wins over the body

Out:

    negotiate(accept) -> media type                                 JSON_TYPE or NPZ_TYPE
    build_response(model, version, request_id, ports, result, predictions, timing) -> dict
    encode(response, media_type, received_ns) -> pieces of bytes      fills timing.encode_ms and timing.total_ms

Each kind of payload is a `Format` in `formats`, where `register_format` adds others. All of the above, the API's
description and its examples read that one list.

Whatever is wrong with a request is reported as a `ServiceError`:

    400  empty_body, invalid_json, invalid_image, invalid_base64, invalid_tensor, invalid_npy, invalid_npz,
         invalid_csv, invalid_text, invalid_multipart: the bytes are not what they claim to be
    406  not_acceptable: none of the formats of responses would do
    413  body_too_large, image_too_large, text_too_long, tensor_too_large, too_many_values, response_too_large
    415  unsupported_media_type, unsupported_charset, unsupported_image_format
    422  unknown_input, duplicate_input, missing_input, wrong_rank, wrong_shape, wrong_dtype, out_of_range,
         not_an_image_model, wrong_image_count, not_a_text_model, wrong_text_count, empty_text,
         unequal_lengths, unknown_field, invalid_parameter: sound, but not for this model

NaN and the infinities, which JSON has no numbers for, are the strings "NaN", "Infinity" and "-Infinity" both ways.
Complex numbers are pairs `[re, im]` both ways.
"""

from service.codec.decoded import Decoded, Picture
from service.codec.format import Example, Format, RequestBody, ResponseFormat, Sample
from service.codec.formats import FORMATS, JSON_TYPE, NPZ_TYPE, decode, encode, negotiate, register_format
from service.codec.options import Options, check_names, parse_options
from service.codec.response import (
    build_response,
    describe_predictions,
    describe_trace,
    leave_out_data,
)

__all__ = [
    "FORMATS",
    "JSON_TYPE",
    "NPZ_TYPE",
    "Decoded",
    "Example",
    "Format",
    "Options",
    "Picture",
    "RequestBody",
    "ResponseFormat",
    "Sample",
    "build_response",
    "check_names",
    "decode",
    "describe_predictions",
    "describe_trace",
    "encode",
    "leave_out_data",
    "negotiate",
    "parse_options",
    "register_format",
]
