# A Prometheus, to ask the queries of docs/boards with. Only tests use it.
FROM connlab/base
RUN apt-get update && apt-get install -y prometheus && apt-get clean
USER connlab
ENTRYPOINT ["prometheus"]
