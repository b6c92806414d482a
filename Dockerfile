# One image for the scheduler, the workers and the client. See docker-compose.yml.
ARG BASE_IMAGE=python:3.11-slim
FROM ${BASE_IMAGE}

WORKDIR /build
COPY requirements.lock ./
RUN python -m pip install --no-cache-dir --disable-pip-version-check --require-hashes -r requirements.lock
COPY pyproject.toml README.md svmbench.py ./
COPY conf conf
COPY solvers solvers
COPY orchestrator orchestrator
RUN python -m pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir dist . \
    && python -m pip install --no-cache-dir --no-deps --no-index dist/*.whl \
    && rm -rf /build/*

# The file system may be read-only, except for these folders and /tmp.
RUN mkdir -p /certs/scheduler /certs/worker /certs/client /cache /results /data \
    && chown -R 10001:10001 /certs /cache /results
ENV HOME=/tmp \
    MPLCONFIGDIR=/tmp/matplotlib \
    NUMBA_CACHE_DIR=/cache/numba \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    SVMBENCH_CACHE=/cache \
    SVMBENCH_DATA=/data
WORKDIR /tmp
USER 10001:10001
ENTRYPOINT ["python", "-m", "orchestrator"]
CMD ["--help"]
