"""Scores of extractive question answering: `python -m tasks.extractive_qa score DATA PREDICTIONS` prints JSON.

DATA is a file of SQuAD 1.1, PREDICTIONS a JSON object of answers by question id.
"""

from tasks.io.score_command import score_command
from tasks.questions.extractive import score_files

main = score_command("tasks.extractive_qa", score_files)

if __name__ == "__main__":
    main()
