"""Fine-tuned models in use.

predict               predictions for new inputs
streams               lines or files in, answers out
plain_text            documents and their sentences
formats               JSON, CoNLL, brat, HTML
page.html, marks.css  the beginning of an HTML page, and the style of entities
export                folders for transformers
"""
