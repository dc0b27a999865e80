"""The paper's five fine-tuning tasks (section 4), and entity linking.

io            records, labels, spans, metrics
task          what a task is; hyper-parameters
presets       the presets of each task, from presets.toml
presets.toml  their hyper-parameters
markers       texts with marked mentions: input and classifier of two tasks
ner           named entity recognition
typing        entity typing
relations     relation classification
questions     cloze and extractive question answering
finetuning    any task, from a data set to metrics
serving       fine-tuned models in use
linking       entity linking; `python -m tasks.linking`

Commands, as `python -m tasks.predict`:

predict  answers of a fine-tuned model
export   its folder for transformers
score    the scores of two files
"""
