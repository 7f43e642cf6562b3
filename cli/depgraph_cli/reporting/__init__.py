"""What the commands print: plain objects for --json, tables for a person."""
