"""Scores of cloze-style question answering: `python -m tasks.cloze_qa score DATA PREDICTIONS` prints JSON.

DATA is a file of ReCoRD, PREDICTIONS the answers by question id, in ReCoRD's own layout or SuperGLUE's.
"""

from tasks.io.score_command import score_command
from tasks.questions.cloze import score_files

main = score_command("tasks.cloze_qa", score_files)

if __name__ == "__main__":
    main()
