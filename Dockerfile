# docker build -t linkspread .
# docker run -p 8000:8000 -e LINKSPREAD_TOKEN=... -v "$PWD/model:/model" linkspread
FROM python:3.13-slim AS build
COPY . /source
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels /source

FROM python:3.13-slim
COPY --from=build /wheels /wheels
RUN wheel="$(ls /wheels/*.whl)" \
  && pip install --no-cache-dir "${wheel}[pictures,postgres,web]" \
  && rm -r /wheels \
  && useradd --uid 10001 --create-home linkspread
# Compiled loops are kept where the user may write.
ENV NUMBA_CACHE_DIR=/tmp/numba PYTHONUNBUFFERED=1
USER 10001
# The model folder; judgements are stored in it, so user 10001 must be able to write there.
VOLUME ["/model"]
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
  CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/health', timeout=4)"]
ENTRYPOINT ["linkspread"]
CMD ["serve", "/model", "--host", "0.0.0.0", "--port", "8000"]
