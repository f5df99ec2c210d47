# A browser, to look at the lab's pages with. Apart from the toolchains, so that a change here builds none of them anew.
FROM connlab/node
RUN apt-get update && apt-get install -y --no-install-recommends chromium fonts-dejavu-core && apt-get clean
