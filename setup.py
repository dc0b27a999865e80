"""Packages, dependencies and extras; constraints.txt pins the versions that are tested together."""

from pathlib import Path

from setuptools import find_packages, setup

DASK = ["dask", "distributed"]  # for --beam-options='--runner=DaskRunner ...'
SERVE = ["fastapi", "rdflib", "uvicorn"]  # for python -m tasks.linking serve

setup(
    name="luke-from-wikipedia",
    version="0.1.0",
    description="Make and study LUKE (contextualised word and entity representations) from any Wikipedia dump",
    long_description=Path(__file__).with_name("README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.11",
    packages=find_packages(
        include=[f"{name}{rest}" for name in ("pipeline", "model", "tasks", "workflows") for rest in ("", ".*")]
    ),
    package_data={
        "model.hf": ["*.toml", "cards/*"],
        "model.presets": ["*.toml"],
        "model.pretraining": ["*.toml"],
        "pipeline": ["schemas.toml"],
        "pipeline.jobs": ["spark_conf/*"],
        "pipeline.mediawiki": ["data/*"],
        "pipeline.sequences": ["data/*"],
        "tasks": ["presets.toml"],
        "tasks.finetuning": ["paper.json"],
        "tasks.io": ["options.toml"],
        "tasks.linking.formats": ["links.html"],
        "tasks.linking.service": ["page/*"],
        "tasks.serving": ["*.html"],
        "workflows.base": ["luigi.toml"],
        "workflows.planning": ["costs.toml"],
        "workflows.report": ["templates/*"],
        "workflows.report.paper": ["texts.toml"],
        "workflows.run": ["help.toml"],
    },
    install_requires=[
        "apache-beam>=2.77,<2.78",  # pipeline/jobs/beam.py knows one of its threads by name
        "huggingface-hub",
        "jinja2",
        "luigi",
        "marisa-trie",
        "markupsafe",
        "mwparserfromhell",
        "numpy",
        "protobuf",
        "psutil",
        "pyarrow",
        "pyspark",
        "regex",
        "safetensors",
        "scipy",
        "sentencex",
        "threadpoolctl",
        "tokenizers",
        "tomlkit",
        "torch>=2.11",
        "tqdm",
        "transformers>=5.17",
        "vl-convert-python",
    ],
    entry_points={"console_scripts": ["luke = workflows.luke:main"]},
    extras_require={
        "dask": DASK,
        "languages": ["py3langid"],  # for link --language auto
        "serve": SERVE,
        "tensorboard": ["tensorboard"],
        "test": [
            *DASK,
            *SERVE,
            "axe-playwright-python",
            "datasets",
            "duckdb",
            "httpx",
            "hypothesis",
            "mwsql",
            "neleval",
            "pandas<3",
            "playwright",
            "py3langid",
            "pytest",
            "pytest-xdist",
            "pyyaml",
            "scikit-learn",
            "seqeval",
            "tensorboard",
            "triton; sys_platform == 'linux'",  # its interpreter runs the kernels for GPUs on a CPU
        ],
        "docs": ["furo", "myst-parser", "sphinx"],
        "dev": ["mypy", "ruff", "types-psutil", "types-regex", "types-tqdm", "types-PyYAML"],
    },
)
