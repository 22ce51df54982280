"""`text/plain`: one text, for a model that takes texts."""

from collections.abc import Iterator

from service.codec.decoded import Decoded
from service.codec.format import Example, Format, JsonSchema, RequestBody, Sample, curl_file
from service.codec.text import codec_of, not_of_charset
from service.codec.texts import bind_texts


class TextFormat(Format):
    """One text. Several make a batch in JSON, as `texts`."""

    name = "text"
    media_types = ("text/plain",)

    def decode(self, body: RequestBody) -> Decoded:
        """Tokenize the text as the model's configuration says.

        A model that takes no texts is sent its usual bodies as text/plain by clients that name no type of their own:
        their first bytes show what they are.
        """
        if body.config.text is None:
            # the list that has this format in it
            from service.codec.formats import sniff  # noqa: PLC0415

            found = sniff(body.data)
            if found is not None:
                return found.decode(body)
        try:
            text = body.data.decode(codec_of(body.charset))
        except UnicodeDecodeError as error:
            raise not_of_charset(body.charset, error.start, error.reason, "invalid_text") from error
        return bind_texts([text], body.ports, body.config, body.limits)

    def examples(self, sample: Sample) -> Iterator[Example]:
        """Yield the text."""
        if sample.text is not None:
            yield Example("text/plain", "text", sample.text, curl_file("text/plain", "text.txt"))

    def schema(self) -> JsonSchema:
        """Return the schema: a text."""
        return {"type": "string"}
