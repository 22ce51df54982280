"""`multipart/form-data`: images as files, and options as fields, as HTML forms and `curl -F` send them."""

from collections.abc import Iterator

from service.codec.decoded import Decoded
from service.codec.format import BINARY_SCHEMA, Example, Format, JsonSchema, RequestBody, Sample
from service.codec.formats.image import IMAGE_FORMAT, bind_images, image_text
from service.codec.multipart import Part, invalid, parse_multipart
from service.codec.options import OPTIONS_SCHEMA, option_names, parse_options
from service.codec.text import decode_text
from service.errors import ServiceError, did_you_mean
from service.images.url import URL_ADVICE, is_url
from service.tasks import task_class

_LONGEST_PATH = 100
"""Characters of the longest text of a field that is shown."""


class FormFormat(Format):
    """A form whose files are images and whose other fields are options."""

    name = "form"
    media_types = ("multipart/form-data",)

    def decode(self, body: RequestBody) -> Decoded:
        """Read files, and fields that begin like an image, as images, and all other fields as options."""
        parameters = task_class(body.config.task).parameters
        images, options, names = [], {}, option_names(parameters)
        for part in parse_multipart(body.data, body.parameters.get("boundary")):
            if part.is_file or IMAGE_FORMAT.matches(part.data):
                images.append((part.name, part.data))
            elif part.name in names:
                options[part.name] = decode_text(part.data, None, "invalid_multipart")
            else:
                raise _unknown_field(part, names)
        if not images:
            raise invalid("the form has no file; expected an image, as curl -F file=@image.png sends it")
        read = parse_options(options, parameters)
        return bind_images(
            images, body.ports, body.config, body.limits, read, dynamic_batch=body.dynamic_batch
        )

    def schema(self) -> JsonSchema:
        """Return the schema: a file, and the options."""
        return {
            "type": "object",
            "properties": {"file": {**BINARY_SCHEMA, "description": "an image"}, **OPTIONS_SCHEMA},
            "required": ["file"],
        }

    def examples(self, sample: Sample) -> Iterator[Example]:
        """Yield a form with one image."""
        if sample.image is not None:
            (media_type,) = self.media_types
            value = {"file": image_text(sample.image)}
            yield Example(media_type, "image file", value, "-F file=@image.png")


def _unknown_field(part: Part, names: list[str]) -> ServiceError:
    """Return the error for a field that is neither a file nor an option: often the name of a file, without its @."""
    field, known = part.name[:40], ", ".join(names)
    message = f"the form's field {field!r} is not a file; expected one, or {known}"
    try:
        text = part.data[: _LONGEST_PATH + 1].decode()
    except UnicodeDecodeError:
        text = ""
    if is_url(text):
        message += f"; {URL_ADVICE}"
    elif hint := did_you_mean(field, names):
        message += hint
    elif text.isprintable() and 0 < len(text) <= _LONGEST_PATH:
        message += f"; it is the text {text!r}: to send a file of that name, write {field}=@{text}"
    return ServiceError(422, "unknown_field", message, {"field": field, "known": names})
