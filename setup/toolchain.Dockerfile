# What builds and checks the lab's programs, so that a host needs no compiler of its own.
FROM connlab/base AS go
# Debian's Go fetches, through the module proxy, the release that k6 asks for; gcc and libc serve -race.
RUN apt-get update && apt-get install -y golang-go gcc libc6-dev git && apt-get clean
ARG GOPROXY
ENV GOTOOLCHAIN=go1.25.12 GOFLAGS=-buildvcs=false GOPATH=/go PATH=/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
RUN ${GOPROXY:+env GOPROXY="$GOPROXY"} go version

# What only tests and benchmarks need: the linter, network namespaces, a capture, and what others read both with.
FROM go AS go-check
RUN apt-get update && apt-get install -y iproute2 iptables net-tools tcpdump tcptrace tshark && apt-get clean
ARG GOPROXY
RUN ${GOPROXY:+env GOPROXY="$GOPROXY"} go install honnef.co/go/tools/cmd/staticcheck@v0.7.0 \
 && rm -rf /root/.cache/go-build
# The linter of workflows; it asks shellcheck about their commands.
RUN apt-get update && apt-get install -y shellcheck && apt-get clean
RUN ${GOPROXY:+env GOPROXY="$GOPROXY"} go install github.com/rhysd/actionlint/cmd/actionlint@v1.7.12 \
 && rm -rf /root/.cache/go-build

FROM connlab/base AS java
RUN apt-get update && apt-get install -y openjdk-25-jdk-headless maven && apt-get clean

FROM connlab/base AS node
RUN apt-get update && apt-get install -y nodejs npm shellcheck && apt-get clean
