"""Fine-tuned models in use.

predict                   predictions for new inputs
streams                   lines or files in, answers out
plain_text                documents and their sentences
formats                   JSON, CoNLL, brat, HTML
page.html, entities.html  templates of an HTML page, and of texts with entities
export                    folders for transformers
"""
