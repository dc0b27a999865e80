"""Speed, memory and quality of the project beside others; README.md says what is measured and how."""
