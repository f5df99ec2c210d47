"""The site of the documents, by MkDocs: `make docs`."""
