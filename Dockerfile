# Aegis as an image of one static program: no shell, no package manager, no root.
#
#   docker build --build-arg VERSION=1.2.3 -t aegis:1.2.3 .
#   docker run --read-only -v ./aegis.yaml:/etc/aegis/aegis.yaml:ro -v aegis:/var/lib/aegis -p 8080:8080 aegis:1.2.3
#
# The configuration must say listen: 0.0.0.0:8080 and data_dir: /var/lib/aegis.

ARG GO_VERSION=1.26
FROM --platform=$BUILDPLATFORM golang:${GO_VERSION}-bookworm AS build
ARG TARGETOS=linux
ARG TARGETARCH=amd64
ARG VERSION=0.0.0-dev
WORKDIR /src
# Where modules come from, for builds that cannot reach Go's own proxy.
ARG GOPROXY
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# The flags of deploy/release, so that whoever builds the same gets the same, byte for
# byte; without the demo, which an image has no use for.
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH GOAMD64=v1 GOARM64=v8.0 GOFLAGS= GOTOOLCHAIN=local \
    go build -tags nodemo -trimpath -buildvcs=false -ldflags "-s -w -buildid= -X main.version=$VERSION" -o /image/usr/bin/aegis ./cmd/aegis
RUN mkdir -p /image/etc/ssl/certs /image/etc/aegis /image/usr/share/doc/aegis /image/var/lib /data/aegis \
 && cp /etc/ssl/certs/ca-certificates.crt /image/etc/ssl/certs/ \
 && cp LICENSE /image/usr/share/doc/aegis/ \
 && printf 'aegis:x:65532:65532:Aegis:/var/lib/aegis:/usr/sbin/nologin\n' > /image/etc/passwd \
 && printf 'aegis:x:65532:\n' > /image/etc/group \
 && chmod -R go-w /image && chmod 700 /data/aegis

FROM scratch
ARG VERSION=0.0.0-dev
ARG REVISION=""
ARG CREATED=""
LABEL org.opencontainers.image.title="Aegis" \
      org.opencontainers.image.description="MCP gateway for Gitea" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.created="$CREATED"
COPY --from=build /image/ /
# The folder must exist with its owner: a new volume takes both over.
COPY --from=build --chown=65532:65532 /data/ /var/lib/
USER 65532:65532
WORKDIR /var/lib/aegis
VOLUME /var/lib/aegis
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=6s --start-period=10s --retries=3 CMD ["/usr/bin/aegis", "health", "-c", "/etc/aegis/aegis.yaml"]
ENTRYPOINT ["/usr/bin/aegis"]
CMD ["serve", "-c", "/etc/aegis/aegis.yaml"]
