//! What people and machines read of a run: tables, sentences, JSON, CSV, Markdown.
