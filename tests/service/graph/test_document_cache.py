"""Documents are kept for as long as their model is there, and within a number of bytes."""

import gc

from service.graph.document_cache import DocumentCache
from service.tagged_document import tagged


class Model:
    """Something that can be referred to weakly."""


def test_what_was_kept_is_found_by_model_and_options() -> None:
    cache, model, document = DocumentCache(), Model(), tagged(b"drawing")
    cache.keep(model, "all", document)
    assert cache.find(model, "all") is document
    assert cache.find(model, "none") is None
    assert cache.find(Model(), "all") is None


def test_documents_that_nobody_asked_for_give_way() -> None:
    cache, model = DocumentCache(max_bytes=10), Model()
    for name in ("a", "b"):
        cache.keep(model, name, tagged(b"12345"))
    assert cache.find(model, "a") is not None
    cache.keep(model, "c", tagged(b"1"))
    assert [name for name in "abc" if cache.find(model, name)] == ["a", "c"]
    cache.keep(model, "d", tagged(b"x" * 11))
    assert len(cache) == 0


def test_short_documents_are_no_more_than_can_be_kept_beside_each_other() -> None:
    cache, model = DocumentCache(), Model()
    for number in range(1000):
        cache.keep(model, number, tagged(b""))
    assert len(cache) == 256
    assert cache.find(model, 999) is not None


def test_a_document_takes_the_place_of_the_one_before() -> None:
    cache, model = DocumentCache(max_bytes=10), Model()
    for content in (b"123456", b"654321"):
        cache.keep(model, "a", tagged(content))
    found = cache.find(model, "a")
    assert found is not None
    assert found.content == b"654321"


def test_documents_of_models_that_are_gone_are_dropped() -> None:
    cache, model = DocumentCache(), Model()
    cache.keep(model, "a", tagged(b"1"))
    del model
    gc.collect()
    other = Model()
    cache.keep(other, "a", tagged(b"2"))
    assert len(cache) == 1


def test_tags_distinguish_contents() -> None:
    assert tagged(b"a").tag == tagged(b"a").tag != tagged(b"b").tag
