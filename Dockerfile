# BASE is any image with Python 3.11 or later and its venv module.
ARG BASE=python:3.12-slim

FROM ${BASE} AS build
WORKDIR /src
# every package is pinned by version and hash: `make constraints`
COPY deploy/*constraints.txt deploy/
RUN python3 -m venv /opt/kuiper \
    && /opt/kuiper/bin/pip install --no-cache-dir --require-hashes --requirement deploy/constraints.txt
RUN python3 -m venv /opt/build \
    && /opt/build/bin/pip install --no-cache-dir --require-hashes --requirement deploy/build-constraints.txt
COPY pyproject.toml README.md LICENSE ./
COPY engine engine
COPY kuiper kuiper
COPY service service
RUN /opt/build/bin/pip wheel --no-build-isolation --no-deps --wheel-dir /dist . \
    && /opt/kuiper/bin/pip install --no-cache-dir --no-deps /dist/*.whl \
    && /opt/kuiper/bin/pip check

FROM ${BASE}
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin kuiper
COPY --from=build /opt/kuiper /opt/kuiper
COPY deploy/healthcheck.py /opt/kuiper/healthcheck.py
COPY models /models
ENV PATH=/opt/kuiper/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    KUIPER_HOST=0.0.0.0 \
    KUIPER_PORT=8000 \
    KUIPER_MODELS=/models \
    KUIPER_CACHE=/var/cache/kuiper
RUN install -d -o kuiper -m 755 /var/cache/kuiper
USER 10001
# containers start without compiling; on another kind of processor than this they compile as if there were nothing
RUN kuiper compile --log-level warning
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 \
    CMD ["python", "/opt/kuiper/healthcheck.py"]
ENTRYPOINT ["kuiper"]
CMD ["serve"]
