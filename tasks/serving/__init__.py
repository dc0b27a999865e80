"""Fine-tuned models in use.

predict      answers to questions
recognition  mentions in texts, for their links
export       folders for transformers
usage        what their users give
streams      lines or files in, answers out
plain_text   documents and their sentences
formats      JSON, CoNLL, brat, HTML
documents    what entities are linked in
linking      the commands and the service of entity linking
"""
