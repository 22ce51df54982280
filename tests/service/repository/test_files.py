import pytest

from engine import ModelFilesError
from service.repository.files import check_name


@pytest.mark.parametrize("name", ["my model", "a&b", "modèle", "a/b", ".", "..", ""])
def test_name_that_a_url_would_mangle_is_an_error(name: str) -> None:
    with pytest.raises(ModelFilesError, match=f"'{name}' is not a model name"):
        check_name(name)
