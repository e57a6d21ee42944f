# The web service of genrecourse. It runs as a user without rights, with a read-only file system:
#
#   docker build -t genrecourse .
#   docker run --read-only --tmpfs /tmp --cap-drop ALL --security-opt no-new-privileges \
#     -p 127.0.0.1:8000:8000 -v "$PWD/model:/model:ro" -v "$PWD/keys.txt:/keys.txt:ro" genrecourse
#
# Everything comes from package registries: the base image, and what pip installs.
FROM python:3.11-slim

ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HOME=/tmp \
    MPLCONFIGDIR=/tmp \
    OMP_NUM_THREADS=2

WORKDIR /build
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src ./src
# The constraints name one version of torch; the CPU build of it has no CUDA.
ARG TORCH_INDEX=""
RUN python -m pip install ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} -c constraints.txt ".[serve]" \
 && rm -rf /build

WORKDIR /tmp
RUN useradd --uid 10001 --no-create-home --home-dir /tmp --shell /usr/sbin/nologin genrecourse
USER 10001

EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 CMD ["python", "-c", \
  "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/v2/health/ready', timeout=4)"]

# Other machines reach a container, so it needs keys: `genrecourse serve-key NAME --file keys.txt`.
ENTRYPOINT ["genrecourse"]
CMD ["serve", "/model", "--host", "0.0.0.0", "--port", "8000", "--api-keys", "/keys.txt"]
