# An image of a user's own with nginx or HAProxy, and what the lab brings: the entry point of its own image, and a shell
# and tools for that which need nothing of the user's image. ROLE is nginx or haproxy, and LAB the lab's image of it.
ARG LAB IMAGE
FROM ${LAB} AS lab
FROM ${IMAGE}
ARG ROLE STOP_SIGNAL
USER 0:0
COPY --from=lab /usr/bin/bash-static /connlab/bin/bash
COPY --from=lab /usr/bin/busybox /connlab/bin/busybox
COPY --from=lab /usr/share/connlab-${ROLE} /usr/share/connlab-${ROLE}
COPY --from=lab /usr/local/bin/connlab-${ROLE} /connlab/entry
RUN --network=none ["/connlab/bin/busybox", "--install", "-s", "/connlab/bin"]
ENV PATH=/connlab/bin:${PATH:-/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin}
WORKDIR /
RUN --network=none ["/connlab/bin/bash", "/connlab/entry", "adopt"]
USER 10001:10001
STOPSIGNAL ${STOP_SIGNAL}
ENTRYPOINT ["/connlab/bin/bash", "/connlab/entry"]
CMD ["serve"]
