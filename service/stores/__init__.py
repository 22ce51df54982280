"""Models that are kept elsewhere.

- `source` chooses where models come from;
- `store_source` makes a folder of what `object_store` or `hugging_face` lists and reads, with links to the files of the
  `file_pool`; `store_errors` words what went wrong.
"""
