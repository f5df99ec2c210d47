# The one base of every image: Debian trixie with the host's own CA certificates.
ARG TRIXIE_SLIM
FROM ${TRIXIE_SLIM}
COPY --from=ca-certificates . /usr/local/share/ca-certificates/
# Packages come from the archive in the image's own apt sources; recommendations and documents stay out.
# dpkg need not write each file to the disk at once, as it does for a machine that may lose power: it takes half the time.
# The man1 folder: packages of Java and others want it, and slim images lack it.
RUN printf 'APT::Install-Recommends "false";\nAcquire::Retries "3";\n' >/etc/apt/apt.conf.d/90connlab \
 && echo force-unsafe-io >/etc/dpkg/dpkg.cfg.d/90connlab \
 && apt-get update \
 && apt-get install -y ca-certificates \
 && update-ca-certificates \
 && apt-get clean \
 && mkdir -p /usr/share/man/man1 \
 && useradd --uid 10001 --user-group --no-create-home --shell /usr/sbin/nologin connlab
