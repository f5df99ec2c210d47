"""The engine Docker Compose."""
