# Two of Debian's kernels under emulation, to test what the kernel of this machine may lack or do otherwise: netem, and the
# ladder of SYNs, which tcp_syn_linear_timeouts changed in 6.5.
FROM connlab/collector AS collector

FROM connlab/base
RUN apt-get update && apt-get install -y --no-install-recommends qemu-system-x86 busybox-static cpio iproute2 kmod xz-utils \
 && apt-get clean
# The kernels of the base's Debian and of the one before it, unpacked and not installed.
RUN set -eu; cd /tmp; cp -r /etc/apt /etc/apt-before; \
    find /etc/apt-before -name '*.sources' -o -name 'sources.list' | xargs sed -i 's/trixie/bookworm/g'; \
    for lists in /etc/apt /etc/apt-before; do \
      find=$(apt-config shell x Dir::Etc/d >/dev/null; echo "-o Dir::Etc=$lists"); \
      apt-get $find update; \
      kernel=$(apt-cache $find depends linux-image-cloud-amd64 | sed -n 's/.*Depends: \(linux-image-[0-9.]*.*\)/\1/p' | head -1); \
      apt-get $find download "$kernel"; \
    done; \
    mkdir /kernels; for package in linux-image-*.deb; do dpkg -x "$package" /kernels; done; rm ./*.deb; apt-get clean
COPY --from=collector /usr/local/bin/collector /usr/local/bin/
COPY kernels/boot kernels/init /usr/local/lib/connlab/
ENTRYPOINT ["/usr/local/lib/connlab/boot"]
