# One image for every service of docker-compose.yml: the application, luigid, and Spark from pyspark's own jars.
FROM python:3.11-slim-bookworm
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless procps \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY setup.py pyproject.toml constraints.txt README.md ./
COPY pipeline pipeline
COPY model model
COPY tasks tasks
COPY workflows workflows
COPY examples examples
RUN pip install --no-cache-dir -c constraints.txt --editable . \
    && pip install --no-cache-dir -c constraints.txt --no-deps gensim
ENTRYPOINT []
CMD ["luigi", "--module", "workflows", "RunAll"]
