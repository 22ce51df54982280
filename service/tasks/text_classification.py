"""Classification of texts: which of several classes each text belongs to."""

from service.config.task_keys import TaskKeys
from service.tasks.classification import Classification, ClassificationConfig
from service.tasks.task import TaskModel


class TextClassification(Classification):
    """The task of models that classify texts; its table and its responses are those of a classification.

    Raises:
        ModelConfigError: as for a classification; or the tokenizer cannot be read.
    """

    name = "text-classification"
    keys = TaskKeys(ClassificationConfig, takes_labels=True)
    draws = False

    def __init__(self, model: TaskModel) -> None:
        super().__init__(model)
        if model.config.text is not None:
            model.config.text.check()
